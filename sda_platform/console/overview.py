"""All conjunctions ahead, with everything that a row of the table shows, and what the table rests on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Self

import numpy as np

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.conjunction.acknowledging import Actions, acknowledgements_among, assignee, known_actions
from sda_platform.conjunction.alert_policy import LEVEL_COLUMNS
from sda_platform.conjunction.cdm_comparison import open_comparisons
from sda_platform.conjunction.currency import Currency
from sda_platform.conjunction.data_origins import DataOrigin, Key, data_origins
from sda_platform.conjunction.policy_in_force import policy_in_force
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.conjunction.unalerted_cdms import unalerted_cdms
from sda_platform.formats.markings import of_event
from sda_platform.lake.correction_log import current_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.orbits.risk.levels import RISK_LEVELS
from sda_platform.units import MINUTE_NS

NOT_JUDGED: Final = "not judged yet"
"""The rule of a conjunction whose level is that of the policy now; the next commit of alerts makes an alert of it."""
_LEFT_OUT: Final = {"state_1", "state_2", "covariance_1", "covariance_2"}
_UNASSESSED: Final = dict.fromkeys((
    "radial_miss_km", "in_track_miss_km", "cross_track_miss_km", "state_source_1", "state_source_2", "data_of_1",
    "data_of_2", "data_time_1_ns", "data_time_2_ns",
))  # fmt: skip
"""What an alert lacks that only received messages have."""
_OF_ALERT: Final = ("status", "rule", "change", "stated_probability", "stated_by")
_CHANGING: Final = (
    CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS, CONJUNCTION_CANDIDATES, RECEIVED_CDMS, ORBITAL_CATALOG,
)  # fmt: skip
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Overview:
    """The conjunctions after now, and alerts that are still open, as rows with their level as ``risk``; ``missing``
    are messages at the level of an alert that no alert matches."""

    currency: Currency
    rows: Sequence[Row]
    missing: Sequence[str]

    @classmethod
    def of(cls, lake: Lake, actions: Actions) -> Self:
        """Read the overview of now; ``actions``: what people did about alerts."""
        currency = Currency.of(lake)
        alerts = {row["event_id"]: row for row in _current(lake, CONJUNCTION_ALERTS) if row["status"] != "closed"}
        assessed = [
            row
            for row in _current(lake, CONJUNCTION_ASSESSMENTS)
            if row["tca_time_ns"] > currency.now_ns or row["event_id"] in alerts
        ]
        levels, origins = _levels(lake, assessed, currency.now_ns), data_origins(lake, assessed)
        rows = [
            {
                **row,
                **_judged(alerts.get(row["event_id"]), level),
                **_data(origins, row["event_id"]),
                **of_event(row, *filter(None, [alerts.get(row["event_id"])])).columns(),
            }
            for row, level in zip(assessed, levels, strict=True)
        ]
        known = {row["event_id"] for row in assessed}
        rows += [
            {
                **_UNASSESSED,
                **alert,
                "revision": alert["sequence"],
                "why_unassessed": currency.why_unassessed(alert["tca_time_ns"]),
            }
            for event_id, alert in alerts.items()
            if event_id not in known
        ]
        received = defaultdict(list)
        for opinion in open_comparisons(lake, currency.now_ns):
            if opinion.event:
                received[opinion.event["event_id"]].append(opinion)
        for row in rows:
            row["received"] = received[row["event_id"]]
            row |= _seen(actions.get(row["event_id"], ()), alerts.get(row["event_id"]))
        return cls(currency, rows, [message.text for message in unalerted_cdms(lake, currency.now_ns)])


def _current(lake: Lake, table: Table) -> list[dict[str, Any]]:
    """Return the current rows of a correction log, with the columns that a row of the table shows."""
    log = lake.log(table)
    if log.version() < 0:
        return []
    columns = [column.name for column in table.columns if column.name not in _LEFT_OUT]
    found: list[dict[str, Any]] = current_rows(log.rows(columns), table.key[0]).to_pylist()
    return found


def _judged(alert: Row | None, level: int) -> dict[str, Any]:
    """Return what the alert states; without one, the ``level`` by the policy, which the next commit makes an alert."""
    if alert:
        return {**{name: alert[name] for name in (*_OF_ALERT, "risk")}, "revision": alert["sequence"]}
    rule = NOT_JUDGED if level else None
    return {**dict.fromkeys(_OF_ALERT), "revision": None, "risk": RISK_LEVELS[level], "rule": rule}


def _data(origins: Mapping[Key, DataOrigin], event_id: str) -> dict[str, Any]:
    known = {n: origins[event_id, n] for n in (1, 2)}
    data: dict[str, Any] = {f"data_of_{n}": each.data for n, each in known.items()}
    data |= {f"data_time_{n}_ns": each.time_ns for n, each in known.items()}
    return data


def _levels(lake: Lake, assessed: Sequence[Row], now_ns: int) -> Sequence[int]:
    """Return the level of each assessment by the policy in force now: that of an alert which is not made yet."""
    if not assessed:
        return ()
    columns = {name: np.array([row[name] for row in assessed], dtype=object) for name in LEVEL_COLUMNS}
    found: Sequence[int] = policy_in_force(lake).levels(columns, np.zeros(len(assessed)), now_ns).tolist()
    return found


def _seen(actions: Sequence[Row], alert: Row | None) -> dict[str, Any]:
    """Return who acknowledged an alert last, whether it was revised since, and to whom it is assigned."""
    last: Row = next(reversed(acknowledgements_among(actions)), {})
    is_older = bool(last and alert and last["revision"] < alert["sequence"])
    stated = {name: last.get(name, "") for name in ("acknowledged_by", "comment")}
    return {**stated, "is_revised_since": is_older, "assigned_to": assignee(actions)}


class Overviews:
    """The overview of now, which requests share: it is read again when a table has changed, and each minute."""

    def __init__(self, lake: Lake, landing_uri: str) -> None:
        self._lake, self._landing_uri = lake, landing_uri
        self._lock = Lock()
        self._kept: tuple[object, Overview] | None = None

    def now(self) -> Overview:
        """Return the overview of now."""
        with self._lock:
            versions = tuple(self._lake.log(table).version() for table in _CHANGING)
            known = known_actions(self._lake, self._landing_uri)
            state = versions, sum(map(len, known.values())), self._lake.clock.now_ns() // MINUTE_NS
            if self._kept is None or self._kept[0] != state:
                self._kept = state, Overview.of(self._lake, known)
            return self._kept[1]
