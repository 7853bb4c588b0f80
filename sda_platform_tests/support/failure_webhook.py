"""A real HTTP server that takes the reports of failed runs."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class FailureWebhook(ThreadingHTTPServer):
    """Takes reports; answers with ``statuses`` first, then with 204."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Exchange)
        self.statuses: deque[int] = deque()
        self.raw: list[tuple[dict[str, str], bytes]] = []
        """Headers, by names in lower case, and body of each request."""
        self.received: list[tuple[str, dict[str, Any]]] = []
        """``(idempotency key, report)`` of what was accepted."""

    @property
    def url(self) -> str:
        """Its address, with secrets that no one may see."""
        return f"http://me:secret@127.0.0.1:{self.server_address[1]}/failures?key=secret"


@contextmanager
def failure_webhook(port: int = 0) -> Iterator[FailureWebhook]:
    """The server, in a thread of this process."""
    with FailureWebhook(port) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


class _Exchange(BaseHTTPRequestHandler):
    server: FailureWebhook

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.raw.append(({name.lower(): value for name, value in self.headers.items()}, raw))
        body = json.loads(raw)
        status = self.server.statuses.popleft() if self.server.statuses else 204
        if status < 300:
            self.server.received.append((str(self.headers["Idempotency-Key"]), body))
        self.send_response(status)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Quiet."""
