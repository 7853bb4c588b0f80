"""The HTTP protocol of the platform's servers: uvicorn's, with a deadline for the headers of each request.

uvicorn bounds how long a connection is idle between two requests, but not how long one request takes to arrive. A peer
who sends a byte now and then would hold a connection for ever.
"""

import asyncio
from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_S: Final = 10.0
"""Within this time of a connection, or of the first byte of a later request, the headers must be complete."""
_TOO_SLOW: Final = (
    f"HTTP/1.1 {HTTPStatus.REQUEST_TIMEOUT} {HTTPStatus.REQUEST_TIMEOUT.phrase}\r\n"
    "content-length: 0\r\nconnection: close\r\n\r\n"
).encode()


class DeadlineProtocol(HttpToolsProtocol):
    """Answers 408 and closes the connection where headers are not complete within ``headers_s``.

    Bounded: the server's limit of requests at once, twice, is how many connections may be open. More are closed.
    """

    headers_s: float = HEADERS_S
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > 2 * self.limit_concurrency:
            transport.abort()
            return
        self._begin()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._begin()
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        self._deadline = self.loop.call_later(self.headers_s, self._close)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()


def with_deadline(headers_s: float = HEADERS_S) -> type[DeadlineProtocol]:
    """The protocol with another deadline, seconds; uvicorn makes one of this class for each connection."""
    return type("DeadlineProtocol", (DeadlineProtocol,), {"headers_s": headers_s})
