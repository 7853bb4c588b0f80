"""The alerts of now, as rules see them: the newest entry of each whose TCA is ahead, and who acknowledged it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.conjunction.acknowledging import known_acknowledgements
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.formats.markings import MARKS
from sda_platform.lake.correction_log import INSERT, last_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE

_COLUMNS: Final = [
    "event_id", "sequence", "op", "status", "risk", "rule", "norad_id_1", "norad_id_2", "object_name_1",
    "object_name_2", "tca_time_ns", "miss_distance_km", "collision_probability", "stated_probability", "stated_by",
    *MARKS,
]  # fmt: skip


@dataclass(frozen=True)
class AlertsNow:
    """The newest entry of each alert whose TCA is after ``now_ns``, by its id; withdrawn ones have another op.

    ``acknowledged``: by alert, the newest revision that a person has acknowledged.
    """

    now_ns: int
    alerts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    acknowledged: Mapping[str, int] = field(default_factory=dict)

    def is_active(self, event_id: str) -> bool:
        """Return whether an alert is current."""
        alert = self.alerts[event_id]
        return bool(alert["op"] == INSERT and alert["status"] != "closed")


class AlertReader:
    """Reads the alerts of now for several threads: the table only where it has changed."""

    def __init__(self, lake: Lake, landing_uri: str) -> None:
        self._lake, self._landing_uri = lake, landing_uri
        self._lock = Lock()
        self._kept: tuple[int, list[dict[str, Any]]] | None = None

    def now(self) -> AlertsNow:
        """Return the alerts of now; of verified commits alone, as the subscriber gets them."""
        with self._lock:
            now_ns, upto = self._lake.clock.now_ns(), self._lake.readable(CONJUNCTION_ALERTS).head.sequence
            if self._kept is None or self._kept[0] != upto:
                self._kept = upto, self._read(now_ns, upto)
            alerts = {row["event_id"]: row for row in self._kept[1] if row["tca_time_ns"] > now_ns}
            known = known_acknowledgements(self._lake, self._landing_uri, alerts) if alerts else {}
            return AlertsNow(now_ns, alerts, {name: max(e["revision"] for e in known[name]) for name in known})

    def _read(self, now_ns: int, upto: int) -> list[dict[str, Any]]:
        where = (ds.field("tca_time_ns") > now_ns) & (ds.field(COMMIT_SEQUENCE) <= upto)
        found: list[dict[str, Any]] = last_rows(
            self._lake.log(CONJUNCTION_ALERTS).rows(_COLUMNS, where), "event_id"
        ).to_pylist()
        return found
