"""A small HTTP server for pages that a process makes on request; it changes nothing."""

import logging
import socket
import socketserver
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from sda_platform.fair_share import FairShare, peer_of
from sda_platform.http_gate import REFUSED_HOST, is_own_host

_BYTE_WITHIN_S = 10.0
_WITHIN_S = 30.0
_MOST_AT_ONCE = 64


@dataclass(frozen=True)
class PageAnswer:
    """What a page answers."""

    content: bytes
    media_type: str
    status: HTTPStatus = HTTPStatus.OK


Page = Callable[[], PageAnswer]


class Pages(socketserver.ThreadingMixIn, HTTPServer):
    """Serves ``pages``, by path, at ``host`` and ``port`` (0: any) while the context lasts.

    A request has its time as a whole. Requests are bounded together, and an address has a fair share of them.
    """

    daemon_threads = True
    within_s: float = _WITHIN_S

    def __init__(self, host: str, port: int, pages: Mapping[str, Page], hosts: Collection[str] = ()) -> None:
        """``hosts``: names under which it is reached, besides those of `http_gate.is_own_host`."""
        super().__init__((host, port), _Exchange)
        self.pages, self.hosts = pages, hosts
        self._lock, self._share = Lock(), FairShare(_MOST_AT_ONCE)
        self._ends_s: dict[socket.socket, float] = {}

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Let a connection in if its address has a share left."""
        with self._lock:
            if not self._share.takes(peer_of(client_address)):
                return False
            self._ends_s[request] = time.monotonic() + self.within_s
        return True

    def service_actions(self) -> None:
        """End the requests whose time is over; called twice a second."""
        now_s = time.monotonic()
        with self._lock:
            late = [request for request, end_s in self._ends_s.items() if end_s < now_s]
        for request in late:
            with suppress(OSError):  # it has ended in this moment
                request.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection, and give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._ends_s[request]
                self._share.give_back(peer_of(client_address))

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, name="pages", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()


class _Exchange(BaseHTTPRequestHandler):
    server: Pages
    timeout = _BYTE_WITHIN_S

    def do_GET(self) -> None:
        if not is_own_host(self.headers.get("Host", ""), self.server.hosts):
            self._send(PageAnswer(f"{REFUSED_HOST}\n".encode(), "text/plain", HTTPStatus.FORBIDDEN))
            return
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            known = ", ".join(sorted(self.server.pages))
            self._send(PageAnswer(f"there is: {known}\n".encode(), "text/plain", HTTPStatus.NOT_FOUND))
            return
        try:
            self._send(page())
        except Exception as error:
            logging.getLogger(__name__).exception("%s failed", self.path)
            body = f"{type(error).__name__}\n".encode()
            self._send(PageAnswer(body, "text/plain", HTTPStatus.INTERNAL_SERVER_ERROR))

    def _send(self, answer: PageAnswer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing for a request."""
