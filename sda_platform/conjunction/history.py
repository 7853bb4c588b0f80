"""A close approach over time: what each assessment said of it, from the journal that keeps them all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.lake.journal import INSERT
from sda_platform.lake.lake import Lake

_HOUR_NS = 3600 * NANOSECONDS_PER_SECOND


@dataclass(frozen=True)
class EventHistory:
    """Assessments of one event as rows of their table, oldest first, never none; and whether the last still holds."""

    assessments: tuple[dict[str, Any], ...]
    stands: bool

    @classmethod
    def of_journal(cls, entries: Sequence[dict[str, Any]]) -> "EventHistory":
        """Fold the event's journal entries, in any order."""
        ordered = sorted(entries, key=lambda row: (row["sequence"], row["op"]))
        return cls(tuple(row for row in ordered if row["op"] == INSERT), ordered[-1]["op"] == INSERT)

    @property
    def last(self) -> dict[str, Any]:
        """What was said last."""
        return self.assessments[-1]

    @property
    def hours_to_tca(self) -> list[float]:
        """How far ahead of the closest approach, as then known, each assessment was."""
        return [(row["tca_time_ns"] - row["as_of_ns"]) / _HOUR_NS for row in self.assessments]

    def values(self, column: str) -> list[Any]:
        """A column of the assessments."""
        return [row[column] for row in self.assessments]


def event_history(lake: Lake, event_id: str) -> EventHistory:
    """The history of an event that was assessed."""
    rows = lake.log(CONJUNCTION_ASSESSMENTS).rows(where=ds.field("event_id") == event_id)
    return EventHistory.of_journal(rows.to_pylist())
