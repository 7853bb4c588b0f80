"""Vectors of events: an order of events that needs no synchronised time, and shows when there is none.

Two edits of which neither had seen the other are concurrent, whatever their wall times and whichever arrives first.
Wall clocks are not compared anywhere here, so a clock that is wrong cannot choose a winner.
"""

from collections.abc import Mapping
from enum import Enum


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
