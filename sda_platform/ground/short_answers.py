"""A bound for what is read of an answer: whatever answers instead of a station fills no memory."""

from collections.abc import Iterator
from typing import Final

import httpx

_MOST_BYTES: Final = 65_536


class ShortAnswers(httpx.BaseTransport):
    """Passes on answers of at most 64 kB, and no compressed ones."""

    def __init__(self, over: httpx.BaseTransport | None = None) -> None:
        self._over = over or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; raises httpx.RemoteProtocolError while a longer answer is read."""
        request.headers["Accept-Encoding"] = "identity"
        answer = self._over.handle_request(request)
        if "Content-Encoding" in answer.headers:
            answer.close()
            raise httpx.RemoteProtocolError("the answer is compressed", request=request)
        assert isinstance(answer.stream, httpx.SyncByteStream)
        answer.stream = _Bounded(answer.stream, request)
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._over.close()


class _Bounded(httpx.SyncByteStream):
    def __init__(self, over: httpx.SyncByteStream, request: httpx.Request) -> None:
        self._over, self._request = over, request

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._over:
            size += len(part)
            if size > _MOST_BYTES:
                raise httpx.RemoteProtocolError(f"the answer has more than {_MOST_BYTES} bytes", request=self._request)
            yield part

    def close(self) -> None:
        self._over.close()
