"""The total order by which one element set of an object is better than another.

Of sets that are in force the one with the latest epoch, of sets that are all ahead the first. Source priority, set
number and source decide ties (CM-14). Segment and record decide the last ones, so that the result does not depend on
the order of arrival. `catalog.transforms` has the same order for Spark; a test compares both.
"""

from collections.abc import Mapping
from typing import Any

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
