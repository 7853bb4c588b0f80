"""A small HTTP server for pages that a process makes on request; it changes nothing."""

import logging
import socketserver
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import TracebackType
from typing import Self

from sda_platform.http_gate import REFUSED_HOST, is_own_host

_REQUEST_WITHIN_S = 10.0


@dataclass(frozen=True)
class PageAnswer:
    """What a page answers."""

    content: bytes
    media_type: str
    status: HTTPStatus = HTTPStatus.OK


Page = Callable[[], PageAnswer]


class Pages(socketserver.ThreadingMixIn, HTTPServer):
    """Serves ``pages``, by path, at ``host`` and ``port`` (0: any) while the context lasts."""

    daemon_threads = True

    def __init__(self, host: str, port: int, pages: Mapping[str, Page], hosts: Collection[str] = ()) -> None:
        """``hosts``: names under which it is reached, besides those of `http_gate.is_own_host`."""
        super().__init__((host, port), _Exchange)
        self.pages, self.hosts = pages, hosts

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.server_address[1])

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
    timeout = _REQUEST_WITHIN_S

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
