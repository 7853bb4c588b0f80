"""The history of a close approach: all its assessments from the correction log, and the received CDMs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from sda_platform.conjunction.alert_ids import UnknownAlert
from sda_platform.conjunction.alert_policy import GREEN, LEVEL_COLUMNS, AlertPolicy
from sda_platform.conjunction.cdm_comparison import comparisons_with
from sda_platform.conjunction.policy_in_force import policy_in_force
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.orbits.risk.levels import RISK_LEVELS
from sda_platform.units import HOUR_NS


@dataclass(frozen=True)
class EventHistory:
    """Assessments of one event as rows of their table, oldest first, never none; and whether the last still holds.

    ``opinions`` are the messages of others about it, oldest first. ``policy`` is the alert policy in force.
    """

    assessments: tuple[dict[str, Any], ...]
    is_current: bool
    opinions: tuple[dict[str, Any], ...]
    policy: AlertPolicy

    @classmethod
    def of_correction_log(
        cls, entries: Sequence[dict[str, Any]], opinions: Sequence[dict[str, Any]], policy: AlertPolicy
    ) -> "EventHistory":
        """Fold the event's entries of the correction log, in any order. Raises UnknownAlert where there is none."""
        if not entries:
            raise UnknownAlert(
                "only received messages have this event, our screening does not: `sda alert show` and "
                "`sda alert trace` name them"
            )
        ordered = sorted(entries, key=lambda row: (row["sequence"], row["op"]))
        inserts = tuple(row for row in ordered if row["op"] == INSERT)
        return cls(inserts, ordered[-1]["op"] == INSERT, tuple(opinions), policy)

    @property
    def last(self) -> dict[str, Any]:
        """Return the newest assessment."""
        return self.assessments[-1]

    @property
    def hours_to_tca(self) -> list[float]:
        """Compute the hours from each assessment to the closest approach, as then known."""
        return [hours_ahead(row["tca_time_ns"], row["as_of_ns"]) for row in self.assessments]

    @property
    def thresholds(self) -> dict[str, float]:
        """The Pc from which this event is a yellow and a red alert."""
        return dict(zip(RISK_LEVELS[1:], self.policy.thresholds(self.last), strict=True))

    @property
    def levels(self) -> list[str]:
        """The alert level of each assessment by the policy, which keeps a level until its hysteresis is passed."""
        found, level = [], GREEN
        for row in self.assessments:
            columns = {name: np.array([row[name]], dtype=object) for name in LEVEL_COLUMNS}
            level = int(self.policy.levels(columns, [level], row["as_of_ns"])[0])
            found.append(RISK_LEVELS[level])
        return found

    def values(self, column: str) -> list[Any]:
        """Return a column of the assessments."""
        return [row[column] for row in self.assessments]


def event_history(lake: Lake, event_id: str) -> EventHistory:
    """Return the history of an event that was assessed. Raises UnknownAlert for another one."""
    rows = lake.log(CONJUNCTION_ASSESSMENTS).rows(where=ds.field("event_id") == event_id)
    history = EventHistory.of_correction_log(rows.to_pylist(), (), policy_in_force(lake))
    return replace(history, opinions=comparisons_with(lake, history.last))


def hours_ahead(tca_ns: int, time_ns: int) -> float:
    """Compute how many hours ``tca_ns`` is after ``time_ns``."""
    return (tca_ns - time_ns) / HOUR_NS
