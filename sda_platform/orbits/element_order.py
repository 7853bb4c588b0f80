"""The total order by which one element set of an object is better than another.

Of sets that are in force the one with the latest epoch, of sets that are all ahead the first. Source priority, set
number and source decide ties (CM-14). Segment and record decide the last ones, so that the result does not depend on
the order of arrival. `catalog.transforms` has the same order for Spark; a test compares both.
"""

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from typing import Any, Final

from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

Row = Mapping[str, Any]
Rank = tuple[bool, int, int, int, str, str, int]


def rank(row: Row, as_of_ns: int) -> Rank:
    """The place of a set in the total order as of mission time ``as_of_ns``; the greater is the better."""
    epoch_ns = row["epoch_time_ns"]
    in_force = epoch_ns <= as_of_ns + EPOCH_TOLERANCE_NS
    return (
        in_force,
        epoch_ns if in_force else -epoch_ns,
        row["source_priority"],
        row["element_set_number"] or 0,
        row["originator"] or "",
        row["segment_sha256"],
        row["record_number"],
    )


_REASONS: Final = (
    "its epoch is ahead",
    "older epoch",
    "lower source priority",
    "lower set number",
    "source later in the alphabet wins",
    "same set from the same source",
    "same set from the same source",
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
