"""A bounded channel between two stages: items with weights, and one declared policy for when it is full.

Capacity is returned when the receiver has finished with an item, not when it takes it. What is in flight therefore
never exceeds the capacity. Senders that wait are served in the order in which they came.
"""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

Item = TypeVar("Item")


class OverflowPolicy(StrEnum):
    """What happens to an item that does not fit."""

    BLOCK = "block"
    """The sender waits, and with it the socket that it reads."""
    SHED = "shed"
    """The item is refused and counted; the sender decides what becomes of it."""
    DEADLINE = "deadline"
    """The sender waits until the deadline; then the item is refused and counted."""


@dataclass(frozen=True)
class Edge:
    """A declared edge: from which stage to which, how many bytes it holds, its policy, and why."""

    name: str
    sender: str
    receiver: str
    capacity: int
    policy: OverflowPolicy
    reason: str
    deadline_s: float | None = None


class ChannelClosed(Exception):
    """The receiver is gone; distinct from a full channel."""


class Overdue(Exception):
    """The item did not fit before the edge's deadline."""


@dataclass
class EdgeCounts:
    """What happened on an edge since the start; counts of records, except `stalls` (of waits) and `stalled_s`."""

    passed: int = 0
    stalls: int = 0
    stalled_s: float = 0.0
    refused: dict[str, int] = field(default_factory=dict)


class Channel(Generic[Item]):
    """The channel of an edge. Used from one event loop only."""

    def __init__(self, edge: Edge) -> None:
        if edge.capacity <= 0:
            raise ValueError(f"edge {edge.name}: capacity is {edge.capacity}, must be above 0")
        if (edge.policy is OverflowPolicy.DEADLINE) != (edge.deadline_s is not None):
            raise ValueError(f"edge {edge.name}: only policy {OverflowPolicy.DEADLINE} has a deadline")
        self.edge = edge
        self.counts = EdgeCounts()
        self.used = 0
        self._queued = 0
        self._first_s = 0.0
        self._items: deque[Item] = deque()  # bounded by the capacity: each item has a weight above 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()  # bounded by the number of senders
        self._arrived, self._is_enough = asyncio.Event(), asyncio.Event()
        self._enough = edge.capacity
        self._is_closed = self._is_hurried = False

    @property
    def occupancy(self) -> float:
        """The share of the capacity that is in use, 0 to 1; above 1 for one item larger than the channel."""
        return self.used / self.edge.capacity

    @property
    def waiting(self) -> int:
        """How many senders wait."""
        return len(self._waiting)

    async def put(self, item: Item, weight: int, *, records: int = 1, kind: str = "") -> None:
        """Send ``item`` according to the policy. Raises ChannelClosed, and Overdue where the edge has a deadline.

        On an edge that sheds, use `offer`.
        """
        if self._is_closed:
            raise ChannelClosed(self.edge.name)
        if self._waiting or not self._fits(weight):
            await self._wait(weight, records, kind)
        else:
            self.used += weight
        self._append(item, weight, records)

    def offer(self, item: Item, weight: int, *, records: int = 1, kind: str = "") -> bool:
        """Hand ``item`` over if it fits now. False: it does not, and its ``records`` are counted as refused."""
        if self._is_closed:
            raise ChannelClosed(self.edge.name)
        if self._waiting or not self._fits(weight):
            self._refuse(records, kind)
            return False
        self.used += weight
        self._append(item, weight, records)
        return True

    async def take(self, enough: int, within_s: float) -> list[Item]:
        """All that waits, as soon as it weighs ``enough``, a sender waits, or the first has waited ``within_s``.

        An empty list: the channel is closed and empty. The caller returns the weights with `release`.
        """
        while not self._items and not self._is_closed:
            self._arrived.clear()
            await self._arrived.wait()
        self._enough = enough
        if self._queued < enough and not self._waiting and not (self._is_closed or self._is_hurried):
            self._is_enough.clear()
            left_s = self._first_s + within_s - asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_enough.wait(), max(left_s, 0.0))
        taken = list(self._items)
        self._items.clear()
        self._queued = 0
        return taken

    def release(self, weight: int) -> None:
        """The receiver has finished with items of this weight."""
        self.used -= weight
        while self._waiting and self._fits(self._waiting[0][1]):
            future, needed = self._waiting.popleft()
            if not future.done():
                self.used += needed
                future.set_result(None)

    def hurry(self) -> None:
        """From now on `take` waits for nothing more than the first item."""
        self._is_hurried = True
        self._is_enough.set()

    def close(self) -> None:
        """Take no more items; what waits is still received. Senders that wait get ChannelClosed."""
        self._is_closed = True
        while self._waiting:
            future, _ = self._waiting.popleft()
            if not future.done():
                future.set_exception(ChannelClosed(self.edge.name))
        self._arrived.set()
        self._is_enough.set()

    def _fits(self, weight: int) -> bool:
        return self.used + weight <= self.edge.capacity or self.used == 0

    def _append(self, item: Item, weight: int, records: int) -> None:
        if not self._items:
            self._first_s = asyncio.get_running_loop().time()
            self._arrived.set()
        self._items.append(item)
        self._queued += weight
        self.counts.passed += records
        if self._queued >= self._enough:
            self._is_enough.set()

    async def _wait(self, weight: int, records: int, kind: str) -> None:
        """Return with ``weight`` reserved."""
        loop = asyncio.get_running_loop()
        began_s, turn = loop.time(), loop.create_future()
        self._waiting.append((turn, weight))
        self._is_enough.set()
        self.counts.stalls += 1
        try:
            async with asyncio.timeout(self.edge.deadline_s):
                await turn
        except BaseException as error:
            self._give_up(turn, weight)
            if isinstance(error, TimeoutError):
                self._refuse(records, kind)
                raise Overdue(f"{self.edge.name} was full for {self.edge.deadline_s} s") from None
            raise
        finally:
            self.counts.stalled_s += loop.time() - began_s

    def _give_up(self, turn: "asyncio.Future[None]", weight: int) -> None:
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self.release(weight)  # it was reserved in the moment of the cancellation
            return
        turn.cancel()
        self._waiting = deque(each for each in self._waiting if each[0] is not turn)
        self.release(0)  # a smaller one behind it may fit

    def _refuse(self, records: int, kind: str) -> None:
        self.counts.refused[kind] = self.counts.refused.get(kind, 0) + records
