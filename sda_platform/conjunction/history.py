"""The history of a close approach: all its assessments from the correction log, and the received CDMs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.dataset as ds

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.cdm_comparison import comparisons_with
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake

_HOUR_NS = 3600 * NANOSECONDS_PER_SECOND


@dataclass(frozen=True)
class EventHistory:
    """Assessments of one event as rows of their table, oldest first, never none; and whether the last still holds.

    ``opinions`` are the messages of others about it, oldest first.
    """

    assessments: tuple[dict[str, Any], ...]
    is_current: bool
    opinions: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of_correction_log(
        cls, entries: Sequence[dict[str, Any]], opinions: Sequence[dict[str, Any]] = ()
    ) -> "EventHistory":
        """Fold the event's journal entries, in any order."""
        ordered = sorted(entries, key=lambda row: (row["sequence"], row["op"]))
        inserts = tuple(row for row in ordered if row["op"] == INSERT)
        return cls(inserts, ordered[-1]["op"] == INSERT, tuple(opinions))

    @property
    def last(self) -> dict[str, Any]:
        """The newest assessment."""
        return self.assessments[-1]

    @property
    def hours_to_tca(self) -> list[float]:
        """How far ahead of the closest approach, as then known, each assessment was."""
        return [hours_ahead(row["tca_time_ns"], row["as_of_ns"]) for row in self.assessments]

    def values(self, column: str) -> list[Any]:
        """A column of the assessments."""
        return [row[column] for row in self.assessments]


def event_history(lake: Lake, event_id: str) -> EventHistory:
    """The history of an event that was assessed."""
    rows = lake.log(CONJUNCTION_ASSESSMENTS).rows(where=ds.field("event_id") == event_id)
    history = EventHistory.of_correction_log(rows.to_pylist())
    return replace(history, opinions=comparisons_with(lake, history.last))


def hours_ahead(tca_ns: int, time_ns: int) -> float:
    """How far ``tca_ns`` lies after ``time_ns``, hours."""
    return (tca_ns - time_ns) / _HOUR_NS
