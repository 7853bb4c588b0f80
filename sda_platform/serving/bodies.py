"""The body of a request that writes: its format by the media type, and its bytes within bounds of size and time."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import ClientDisconnect, Request

from sda_platform.fair_share import FairShare, peer_of
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.puts import MOST_BYTES
from sda_platform.serving.requests import BadRequest, TooSlow

MOST_AT_ONCE: Final = 4 * MOST_BYTES
"""Bound of the bodies of all requests together, of which each peer has a fair share."""
WITHIN_S: Final = 30.0
"""Within this time a body must have arrived."""


def media_type_of(request: Request, formats: Mapping[str, str]) -> str:
    """Return the format of ``formats`` that the request's Content-Type names. Raises BadRequest."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in formats:
        raise BadRequest(f"Content-Type is {media_type[:40]!r}, must be one of {', '.join(formats)}")
    return formats[media_type]


class Bodies:
    """The bodies that are being received and used: bounded together, of each peer and each alone, with a deadline."""

    def __init__(
        self, most_bytes: int = MOST_AT_ONCE, within_s: float = WITHIN_S, largest_bytes: int = MOST_BYTES
    ) -> None:
        self._share, self._within_s, self._largest_bytes = FairShare(most_bytes), within_s, largest_bytes

    @asynccontextmanager
    async def received(self, request: Request) -> AsyncIterator[bytes]:
        """The body, which counts while the context lasts.

        Raises BadRequest where it is empty or too large, TooSlow after the deadline, and Busy where the bodies of
        others take up the bound.
        """
        parts: list[bytes] = []
        peer = peer_of(request.client)
        try:
            await self._receive(request, peer, parts)
            parts[:] = [b"".join(parts)]
            yield parts[0]
        finally:
            self._share.give_back(peer, sum(map(len, parts)))

    async def _receive(self, request: Request, peer: str, parts: list[bytes]) -> None:
        size = 0
        try:
            async with asyncio.timeout(self._within_s):
                async for part in request.stream():
                    size += len(part)
                    if size > self._largest_bytes:
                        more = "; use `sda land` for large files" if self._largest_bytes == MOST_BYTES else ""
                        raise BadRequest(f"the body is larger than {self._largest_bytes:,} bytes{more}")
                    if not self._share.takes(peer, len(part)):
                        raise Busy("bodies of other requests take up the memory for them; try again")
                    parts.append(part)
        except TimeoutError:
            raise TooSlow(f"the body did not arrive within {self._within_s:g} s") from None
        except ClientDisconnect:
            raise TooSlow("the connection ended before its body") from None
        if not size:
            raise BadRequest("the body is empty")


def bodies_of(request: Request) -> Bodies:
    """Return the bound on bodies of the endpoint."""
    bodies: Bodies = request.app.state.bodies
    return bodies


def bodies_of_logins() -> Bodies:
    """Make the bound on bodies that anybody may send, without a token: apart, so that they hold up no other."""
    return Bodies(most_bytes=2**20, within_s=5.0, largest_bytes=4 * 2**10)
