"""The total order by which one element set of an object is better than another, for rows and for columns.

Of sets that are in force the one with the latest epoch, of sets that are all ahead the first. `TIES` decide between
equal epochs (CM-14). Segment and record decide the last ones, so that the result does not depend on the order of
arrival.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

Row = Mapping[str, Any]
Rank = tuple[Any, ...]


@dataclass(frozen=True)
class Tie:
    """A column that decides between sets of one epoch: the greater value is the better, null counts as ``absent``."""

    column: str
    absent: int | str
    reason: str
    """Why the set with the lower value has lost."""


_BY_RECORD: Final = "equal rank, decided by segment and record"
TIES: Final = (
    Tie("source_priority", 0, "lower source priority"),
    Tie("element_set_number", 0, "lower set number"),
    Tie("originator", "", "originator later in the alphabet wins"),
    Tie("segment_sha256", "", _BY_RECORD),
    Tie("record_number", 0, _BY_RECORD),
)
"""What decides between sets of one epoch, the most significant first."""
AHEAD: Final = "its epoch is ahead"
OLDER: Final = "older epoch"
"""Why a set has lost whose epoch decides."""


def rank(row: Row, as_of_ns: int) -> Rank:
    """Return the place of a set in the total order as of mission time ``as_of_ns``; the greater is the better."""
    epoch_ns = row["epoch_time_ns"]
    in_force = epoch_ns <= as_of_ns + EPOCH_TOLERANCE_NS
    return (in_force, epoch_ns if in_force else -epoch_ns, *(row[tie.column] or tie.absent for tie in TIES))
