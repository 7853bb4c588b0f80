"""Where the first copies of duplicates are: a duplicate is left out and acknowledged only once its first copy is safe.

A hand-over is first in hand: what waits for room may still be dropped. Then it is in memory until it is sealed, and
nothing drops it any more. Which of the hand-overs has a first copy is not recorded: that would be an object per frame.
Duplicates wait for all that began before.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sda_platform.edge.batch import BatchReceipt


class FirstCopies:
    """The hand-overs of all sources that share a memory of keys. Bounded by what the edges hold, and by the senders."""

    def __init__(self) -> None:
        self._in_hand: set[asyncio.Event] = set()
        self._unsealed: dict[int, BatchReceipt] = {}  # in the order in which they ended
        self._ended = 0

    @contextmanager
    def handing_over(self, receipt: BatchReceipt) -> Iterator[None]:
        """While a hand-over of ``receipt`` lasts."""
        ended = asyncio.Event()
        self._in_hand.add(ended)
        try:
            yield
        finally:
            self._in_hand.remove(ended)
            ended.set()
            while self._unsealed and self._unsealed[oldest := next(iter(self._unsealed))].is_settled:
                del self._unsealed[oldest]
            self._ended += 1
            self._unsealed[self._ended] = receipt

    def in_hand(self) -> list[asyncio.Event]:
        """An event of each hand-over that lasts, set at its end: what it holds may be dropped until then."""
        return list(self._in_hand)

    def follow(self, receipt: BatchReceipt) -> None:
        """Have ``receipt`` be that of the hand-overs that have ended by now, too."""
        receipt.follow(partial(self._sealed, self._ended))

    async def _sealed(self, last: int) -> None:
        """Wait until the first ``last`` hand-overs are settled."""
        while self._unsealed and (oldest := next(iter(self._unsealed))) <= last:
            await self._unsealed[oldest].settled()
            self._unsealed.pop(oldest, None)
