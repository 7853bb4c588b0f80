"""Batches: records on their way from a source to a segment, and the receipt that is resolved when they are durable."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sda_platform.edge.priority import Priority
from sda_platform.formats.markings import UNMARKED, Marking

BATCH_OVERHEAD = 512
"""Fixed bytes counted per batch in addition to its records, so that many small batches are bounded too."""


class BatchReceipt:
    """Resolved once all parts of a hand-over are in sealed segments. Awaiting it may be repeated."""

    def __init__(self) -> None:
        self._open = 0
        self._done = asyncio.Event()
        self._done.set()
        self._firsts: Callable[[], Awaitable[None]] | None = None
        self.lost = 0

    def expect(self) -> None:
        """One more part has been handed over."""
        self._open += 1
        self._done.clear()

    def settle(self, lost: int = 0) -> None:
        """One part is durable, but for ``lost`` records that were dropped by policy."""
        self.lost += lost
        self._open -= 1
        if self._open == 0:
            self._done.set()

    def follow(self, firsts: Callable[[], Awaitable[None]]) -> None:
        """Be the receipt of records of earlier hand-overs too; they are durable once ``firsts`` returns."""
        self._firsts = firsts

    @property
    def is_settled(self) -> bool:
        """Whether every part of its own is durable or dropped."""
        return self._open == 0

    async def settled(self) -> None:
        """Wait until every part of its own is settled."""
        await self._done.wait()

    async def durable(self) -> bool:
        """Wait until all whose receipt this is are settled; False if records were dropped."""
        await self.settled()
        if self._firsts is not None:
            await self._firsts()
        return self.lost == 0


@dataclass(slots=True)
class ReceivedBatch:
    """Records of one source and one priority, as bytes of a segment.

    ``received_s``: when they left the socket, by the loop's clock. ``peer``, ``is_conflict`` and ``marking`` as in
    `Origin`.
    """

    source: str
    priority: Priority
    data: bytes
    records: int
    received_s: float
    receipt: BatchReceipt
    peer: str | None = None
    is_conflict: bool = False
    marking: Marking = UNMARKED

    @property
    def weight(self) -> int:
        """Bytes that it occupies on an edge."""
        return len(self.data) + BATCH_OVERHEAD
