"""Logical clocks: an order of events that needs no synchronised time.

A Lamport clock gives one order that agrees with causality (Lamport 1978). A vector clock also shows when there is no
order: two edits of which neither had seen the other are concurrent, whatever their wall times and whichever arrives
first. Wall clocks are not compared anywhere here, so a clock that is wrong cannot choose a winner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class Ordering(Enum):
    """The order of two vectors."""

    BEFORE = "before"
    AFTER = "after"
    EQUAL = "equal"
    CONCURRENT = "concurrent"


Vector = Mapping[str, int]
"""Events seen by origin; an origin that is missing counts 0, so that sites may join at any time."""


def compare(a: Vector, b: Vector) -> Ordering:
    """The order of ``a`` relative to ``b``: before it, after it, equal, or concurrent with it."""
    below = any(count < b.get(origin, 0) for origin, count in a.items()) or any(
        count > a.get(origin, 0) for origin, count in b.items()
    )
    above = any(count > b.get(origin, 0) for origin, count in a.items())
    if below and above:
        return Ordering.CONCURRENT
    if below:
        return Ordering.BEFORE
    return Ordering.AFTER if above else Ordering.EQUAL


def merged(*vectors: Vector) -> dict[str, int]:
    """The least vector that has seen what each of ``vectors`` has: the maximum by origin, without zeros."""
    origins = sorted({origin for vector in vectors for origin in vector})
    greatest = {origin: max(vector.get(origin, 0) for vector in vectors) for origin in origins}
    return {origin: count for origin, count in greatest.items() if count}


class ScalarClock(Protocol):
    """A counter that respects causality; a hybrid clock may take the place of Lamport's."""

    def tick(self) -> int:
        """Advance for a local event, and return its stamp."""

    def observe(self, stamp: int) -> int:
        """Advance past a received stamp, and return the stamp of the reception."""


@dataclass
class LamportClock:
    """Lamport's clock: +1 on a local event, max(local, received) + 1 on a reception."""

    current: int = 0

    def tick(self) -> int:
        """Advance for a local event."""
        self.current += 1
        return self.current

    def observe(self, stamp: int) -> int:
        """Advance past ``stamp``."""
        self.current = max(self.current, stamp) + 1
        return self.current


@dataclass
class VectorClock:
    """The vector of one site."""

    site: str
    seen: dict[str, int] = field(default_factory=dict)

    def tick(self) -> dict[str, int]:
        """Count a local event, and return the vector to send with it."""
        self.seen[self.site] = self.seen.get(self.site, 0) + 1
        return self.snapshot()

    def merge(self, other: Vector) -> None:
        """Take in what ``other`` has seen; a repeated one changes nothing."""
        self.seen = merged(self.seen, other)

    def compare(self, other: Vector) -> Ordering:
        """The order of this clock relative to ``other``."""
        return compare(self.seen, other)

    def snapshot(self) -> dict[str, int]:
        """The vector now."""
        return dict(self.seen)
