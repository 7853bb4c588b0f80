"""Large answers leave in pieces, each when the client has taken the one before; their bytes are bounded together."""

import asyncio
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sda_platform.serving.requests import problem

MOST_BYTES: Final = 256 * 2**20
"""Bound of the large answers that are on their way; beyond it a request is answered 503."""
_PIECE_BYTES: Final = 2**16
_BUSY: Final = "too many large answers are on their way to slow clients; try again"


class BoundedAnswers:
    """An ASGI application that sends the answers of ``app`` so that a stalled client costs a piece, not an answer.

    Clients that are sent the same bytes share them, and they count once.
    """

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES) -> None:
        self._app, self._most_bytes = app, most_bytes
        self._leaving: dict[int, tuple[int, int]] = {}  # by identity of the bytes: their length, how many clients

    @property
    def bytes_leaving(self) -> int:
        """The bytes of large answers that are on their way."""
        return sum(length for length, _ in self._leaving.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        start: Message | None = None

        async def steadily(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            body = message.get("body", b"")
            if start is not None and len(body) > _PIECE_BYTES:
                if self._has_room_for(body):
                    await self._in_pieces(start, body, message, send)
                else:
                    await problem(_BUSY, 503, {"Retry-After": "1"})(scope, receive, send)
            else:
                if start is not None:
                    await send(start)
                await send(message)
            start = None

        await self._app(scope, receive, steadily if scope["type"] == "http" else send)

    def _has_room_for(self, body: bytes) -> bool:
        return id(body) in self._leaving or self.bytes_leaving + len(body) <= self._most_bytes

    async def _in_pieces(self, start: Message, body: bytes, message: Message, send: Send) -> None:
        length, clients = self._leaving.get(id(body), (len(body), 0))
        self._leaving[id(body)] = length, clients + 1
        try:
            await send(start)
            view = memoryview(body)
            for begin in range(0, len(body), _PIECE_BYTES):
                is_last = begin + _PIECE_BYTES >= len(body)
                piece: dict[str, Any] = {**message, "body": bytes(view[begin : begin + _PIECE_BYTES])}
                await send({**piece, "more_body": not is_last or message.get("more_body", False)})
                await asyncio.sleep(0)  # others have their turn
        finally:
            length, clients = self._leaving.pop(id(body))
            if clients > 1:
                self._leaving[id(body)] = length, clients - 1
