"""Large answers leave in pieces, each when the client has taken the one before; their bytes are bounded together."""

import asyncio
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sda_platform.fair_share import FairShare, peer_of
from sda_platform.serving.answering import problem

MOST_BYTES: Final = 256 * 2**20
"""Bound of the large answers that are on their way, of which each peer has a fair share; beyond it a request is
answered 503."""
_PIECE_BYTES: Final = 2**16
_BUSY: Final = "too many large answers are on their way to slow clients; try again"


class BoundedAnswers:
    """An ASGI application that sends the answers of ``app`` so that a stalled client costs a piece, not an answer.

    Clients that are sent the same bytes share them, and they count once.
    """

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES) -> None:
        self._app, self._share = app, FairShare(most_bytes)
        self._leaving: dict[int, tuple[str, int]] = {}  # by identity of the bytes: for whom they count, clients

    @property
    def bytes_leaving(self) -> int:
        """The bytes of large answers that are on their way."""
        return self._share.held

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
                if self._is_leaving(body, peer_of(scope.get("client"))):
                    await self._in_pieces(start, body, message, send)
                else:
                    await problem(_BUSY, 503, {"Retry-After": "1"})(scope, receive, send)
            else:
                if start is not None:
                    await send(start)
                await send(message)
            start = None

        await self._app(scope, receive, steadily if scope["type"] == "http" else send)

    def _is_leaving(self, body: bytes, peer: str) -> bool:
        """Count one client more for ``body``, if there is room for it; return whether there is."""
        payer, clients = self._leaving.get(id(body), (peer, 0))
        if not (clients or self._share.takes(peer, len(body))):
            return False
        self._leaving[id(body)] = payer, clients + 1
        return True

    async def _in_pieces(self, start: Message, body: bytes, message: Message, send: Send) -> None:
        try:
            await send(start)
            view = memoryview(body)
            for begin in range(0, len(body), _PIECE_BYTES):
                is_last = begin + _PIECE_BYTES >= len(body)
                piece: dict[str, Any] = {**message, "body": bytes(view[begin : begin + _PIECE_BYTES])}
                await send({**piece, "more_body": not is_last or message.get("more_body", False)})
                await asyncio.sleep(0)  # others have their turn
        finally:
            payer, clients = self._leaving.pop(id(body))
            if clients > 1:
                self._leaving[id(body)] = payer, clients - 1
            else:
                self._share.give_back(payer, len(body))
