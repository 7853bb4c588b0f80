"""The merge of sorted sources of element sets by `element_order.rank`: the oracle of the catalogue's merges."""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from typing import Final

from sda_platform.orbits.element_order import Row, rank

_REASONS: Final = (
    "its epoch is ahead",
    "older epoch",
    "lower source priority",
    "lower set number",
    "originator later in the alphabet wins",
    "equal rank, decided by segment and record",
    "equal rank, decided by segment and record",
)


def reason_against(loser: Row, winner: Row, as_of_ns: int) -> str:
    """Why ``loser`` is not in force: the first part of the order in which it is below ``winner``."""
    pairs = zip(rank(loser, as_of_ns), rank(winner, as_of_ns), strict=True)
    return next((reason for reason, (low, high) in zip(_REASONS, pairs, strict=True) if low != high), _REASONS[-1])


def merge_sorted_sources(sources: Iterable[Iterable[Row]], as_of_ns: int) -> Iterator[tuple[Row, list[Row]]]:
    """Of each object the set in force and the sets that lost, best first; objects ascending.

    ``sources`` are k streams of sets, each ascending by ``norad_id``, and are merged in one pass with a heap. This is
    the oracle of the catalogue's merge. Raises ValueError where a stream is not sorted (CM-17).
    """
    merged = merge(*map(_sorted_only, sources), key=_norad_id)
    for _, group in groupby(merged, key=_norad_id):
        best, *losers = sorted(group, key=lambda row: rank(row, as_of_ns), reverse=True)
        yield best, losers


def _norad_id(row: Row) -> int:
    return int(row["norad_id"])


def _sorted_only(rows: Iterable[Row]) -> Iterator[Row]:
    previous = -1
    for row in rows:
        if _norad_id(row) < previous:
            raise ValueError(f"a source must be sorted by object: {_norad_id(row)} follows {previous}")
        previous = _norad_id(row)
        yield row
