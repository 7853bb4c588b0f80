"""The reference receiver of docs/reference/webhook.md: a real HTTP server whose seen-set is a SQLite file.

``python -m sda_platform_tests.support.webhook_receiver FILE`` serves on a free port, which it prints. A test that runs
it in its own process can have it misbehave: each of `Receiver.faults` is what happens to one POST, and one that
`is_away` answers no question.
"""

import base64
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel

from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, EntryKey, Outcome
from sda_platform.delivery.webhook_messages import Entries, EntryReceipt, HeldMark, WebhookAnswer

Fault = Literal["none", "hang up", "apply and hang up", "apply and hang", "apply twice", "apply and say conflict"]


class Receiver(ThreadingHTTPServer):
    """Serves the contract for ``store``; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, store: SqliteSubscriber, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Exchange)
        self.store = store
        self.faults: deque[Fault | int] = deque()
        self.is_away = False
        """What happens to the next POSTs: a fault, or a status that is answered without applying anything."""
        self.password: str | None = None
        """What it asks of every client (HTTP basic authentication); None: nothing."""
        self.accepts: Callable[[Mapping[str, str], bytes], bool] = lambda _headers, _body: True
        """Judges headers, by names in lower case, and body of every request."""
        self.refused: set[str] = set()
        """Alerts whose entries it does not accept."""
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """``(method, path with query, headers)`` of every request."""
        self.closing = Event()

    @property
    def url(self) -> str:
        """Its address, as the setting names it."""
        return f"http://127.0.0.1:{self.server_address[1]}/alerts"

    def server_close(self) -> None:
        """Stop, also what hangs on purpose."""
        self.closing.set()
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of the tests."""


@contextmanager
def receiving(store: SqliteSubscriber, port: int = 0) -> Iterator[Receiver]:
    """A receiver that serves in a thread of this process."""
    with Receiver(store, port) as receiver:
        Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield receiver
        finally:
            receiver.shutdown()


class _Exchange(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._note()
        if not self._is_known(b""):
            self._say(401)
        elif self.server.is_away:
            self._say(503)
        else:
            self._answer_question()

    def _answer_question(self) -> None:
        url = urlsplit(self.path)
        prefix = parse_qs(url.query).get("prefix", [""])[0]
        match url.path.split("/")[2:]:
            case ["batches", batch_id]:
                known = self.server.store.answer(unquote(batch_id))
                self._say(404) if known is None else self._say(200, _answer(known))
            case ["mark"]:
                self._say(200, HeldMark.of(self.server.store.mark(prefix)))
            case ["alerts"]:
                self._say(200, Entries.of(self.server.store.held(prefix)))
            case _:
                self._say(404)

    def do_POST(self) -> None:
        self._note()
        body = self._body()
        if not self._is_known(body):
            return self._say(401)
        fault = self.server.faults.popleft() if self.server.faults else "none"
        entries = [e.entry() for e in Entries.model_validate_json(body).entries]
        if isinstance(fault, int):
            return self._say(fault)
        if any(entry.alert_id in self.server.refused for entry in entries):
            return self._say(422)
        if fault == "hang up":
            return self._hang_up()
        answer = self._apply(entries, times=2 if fault == "apply twice" else 1)
        match fault:
            case "apply and hang up":
                return self._hang_up()
            case "apply and hang":
                self.server.closing.wait(30)
                return self._hang_up()
            case "apply and say conflict":
                return self._say(409)
        return self._say(200, answer)

    def _is_known(self, body: bytes) -> bool:
        if not self.server.accepts({name.lower(): value for name, value in self.headers.items()}, body):
            return False
        if self.command == "POST" and self.headers.get("Webhook-Id") not in (None, self.headers["Idempotency-Key"]):
            return False
        given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        return self.server.password in (None, given.partition(":")[2])

    def _apply(self, entries: list[AlertEntry], times: int) -> WebhookAnswer:
        key = str(self.headers["Idempotency-Key"])
        for _ in range(times):
            outcomes = self.server.store.apply(key, entries)
        return _answer(dict(zip((entry.key for entry in entries), outcomes, strict=True)))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _note(self) -> None:
        self.server.requests.append((self.command, self.path, dict(self.headers)))

    def _hang_up(self) -> None:
        self.close_connection = True

    def _say(self, status: int, message: BaseModel | None = None) -> None:
        body = message.model_dump_json().encode() if message else b"{}"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet: the test has `Receiver.requests`."""


def _answer(outcomes: dict[EntryKey, Outcome]) -> WebhookAnswer:
    return WebhookAnswer(
        receipts=[
            EntryReceipt(alert_id=a, epoch=e, sequence=s, op=op, outcome=o) for (a, e, s, op), o in outcomes.items()
        ]
    )


if __name__ == "__main__":
    with Receiver(SqliteSubscriber(Path(sys.argv[1]))) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.serve_forever()
