"""A real SMTP server on a free port of loopback, which keeps what it takes."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread
from typing import Any

from aiosmtpd.smtp import SMTP


class MailServer:
    """``messages``: what it took. ``refusal``: what it answers in place of taking a message; empty: nothing."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.refusal = ""
        self.port = 0

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        """Take or refuse a message."""
        if self.refusal:
            return self.refusal
        made = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(made, EmailMessage)
        self.messages.append(made)
        return "250 OK"

    @property
    def url(self) -> str:
        """Its address for the notification library, with a password that no one may see."""
        return f"mailto://127.0.0.1:{self.port}?from=sda@example.org&to=desk@example.org"


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """The server, in a thread of this process."""
    kept, loop = MailServer(), asyncio.new_event_loop()
    listening = loop.run_until_complete(loop.create_server(lambda: SMTP(kept, loop=loop), "127.0.0.1", 0))
    kept.port = listening.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(listening.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
