"""The HTTP protocol of the platform's servers: uvicorn's, with bounds of headers, and deadlines for them and answers.

uvicorn bounds how long a connection is idle between two requests. It does not bound how long one request takes to
arrive, nor how large its headers are. Nor does it bound how long a peer takes no byte of its answer. Such a peer would
hold a connection, and its answer, for ever, or fill the memory.
"""

import asyncio
from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sda_platform.fair_share import is_fair, peer_of

HEADERS_S: Final = 10.0
"""Within this time of a connection, or of the first byte of a later request, the headers must be complete."""
HEADER_BYTES: Final = 65_536
"""Most bytes of the headers of a request, trailers and the sizes of chunks included, beside one read of the socket."""
STALLED_S: Final = 30.0
"""A connection that takes nothing of its answer for so long is closed."""
# So many bytes may frame a byte of a body that comes in chunks: more is no body.
_FRAMING: Final = 8


def _refusal(status: HTTPStatus) -> bytes:
    return f"HTTP/1.1 {status} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


_TOO_SLOW, _TOO_LARGE = (
    _refusal(each) for each in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
)


class DeadlineProtocol(HttpToolsProtocol):
    """Answers 408 and closes the connection where headers are not complete within ``headers_s``; 431 above
    `HEADER_BYTES`.

    A connection whose peer stops to read its answer is closed after ``stalled_s``. Bounded: as many connections as the
    server's limit may be open, of which a peer has a fair share. More are closed.
    """

    headers_s: float = HEADERS_S
    stalled_s: float = STALLED_S
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _beside_body = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        if self.limit_concurrency is not None:
            peer = peer_of(self.client)
            # A WebSocket has another protocol here, with the same name for who connects.
            own = sum(peer_of(getattr(each, "client", None)) == peer for each in self.connections)
            if not is_fair(own, len(self.connections), self.limit_concurrency):
                transport.abort()
                return
        self._begin()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._begin()
        before = self.cycle
        self._beside_body += len(data)
        super().data_received(data)
        if self.cycle is not before or self.transport.get_protocol() is not self:  # a request, or a WebSocket's
            self._end()
        if self._beside_body > HEADER_BYTES:
            self._close(_TOO_LARGE)

    def on_message_begin(self) -> None:
        self._beside_body = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._beside_body = max(0, self._beside_body - (1 + _FRAMING) * len(body))
        super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._resume()
        super().connection_lost(exc)

    def _begin(self) -> None:
        self._deadline = self.loop.call_later(self.headers_s, self._close)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _resume(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _close(self, answer: bytes = _TOO_SLOW) -> None:
        if not self.transport.is_closing():
            if self._deadline is not None:  # no request of this connection is being answered
                self.transport.write(answer)
            self.transport.close()


def with_deadline(headers_s: float = HEADERS_S, stalled_s: float = STALLED_S) -> type[DeadlineProtocol]:
    """Return the protocol with other deadlines, seconds; uvicorn makes one of this class for each connection."""
    return type("DeadlineProtocol", (DeadlineProtocol,), {"headers_s": headers_s, "stalled_s": stalled_s})
