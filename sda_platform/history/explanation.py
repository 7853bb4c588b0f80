"""What was known when an alert was decided, and what is known now: the same rows of two states, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sda_platform.conjunction.alert_ids import complete_alert_id
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    SAME_EVENT_NS,
)
from sda_platform.history.moments import vector_of, vector_of_alert
from sda_platform.history.pinned_view import PinnedView
from sda_platform.history.table_diff import same
from sda_platform.history.version_vector import VersionVector, newest_vector
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

_OF_THE_EVENT = {
    "alert": CONJUNCTION_ALERTS.name,
    "assessment": CONJUNCTION_ASSESSMENTS.name,
    "candidate": CONJUNCTION_CANDIDATES.name,
}
_OF_THE_OBJECTS = {"element set": "orbital_catalog", "track": "tracks"}
# Of many rows the newest; there may be none. Their long lists of states are left out.
_NEWEST_EPHEMERIS = (
    "SELECT norad_id, originator, created_time_ns, usable_from_ns, usable_until_ns, covariance_source, segment_name "
    "FROM ephemerides WHERE norad_id = ? AND error_kind IS NULL "
    "ORDER BY commit_sequence DESC, record_number DESC LIMIT 1"
)
_NEWEST_MESSAGE = (
    "SELECT originator, message_id, created_time_ns, tca_time_ns, miss_distance_km, stated_probability, "
    "recomputed_probability FROM received_cdms WHERE error_kind IS NULL AND least(norad_id_1, norad_id_2) = ? AND "
    f"greatest(norad_id_1, norad_id_2) = ? AND abs(tca_time_ns - ?) < {SAME_EVENT_NS} "
    "ORDER BY received_time_ns DESC, record_number DESC LIMIT 1"
)
# The columns of each row that describe the world; the others describe how and when it was stored.
_STORAGE = {COMMIT_SEQUENCE, "segment_sha256", "record_number", "received_time_ns"}


@dataclass(frozen=True)
class Known:
    """One fact about an alert: its row in the earlier state and now (None: there is none)."""

    what: str
    then: Mapping[str, Any] | None
    now: Mapping[str, Any] | None

    @property
    def changed(self) -> list[str]:
        """The columns whose values differ between two rows that both exist."""
        if self.then is None or self.now is None:
            return []
        now = self.now
        return [n for n, v in self.then.items() if n not in _STORAGE and n in now and not same(v, now[n])]


@dataclass(frozen=True)
class Explanation:
    """An alert at the time of its decision (or at another time), and its current state."""

    alert_id: str
    then: VersionVector
    now: VersionVector
    facts: Sequence[Known]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation for JSON; ``as_of.versions`` can be given to ``--as-of`` again."""
        return {
            "alert_id": self.alert_id,
            "as_of": as_of_dict(self.then),
            "now": as_of_dict(self.now),
            "facts": [{**asdict(fact), "changed": fact.changed} for fact in self.facts],
        }


def as_of_dict(vector: VersionVector) -> dict[str, Any]:
    """A vector as JSON: what it belongs to, and the Delta version of each table."""
    versions = {name: each.version for name, each in sorted(vector.snapshots.items())}
    return {"moment": vector.moment, "versions": versions, **vector.facts}


def explain_alert(lake: Lake, tables: Mapping[str, Table], alert: str, as_of: str = "") -> Explanation:
    """Explain ``alert`` (id or its beginning, with @N its revision N) as of its decision, or another moment.

    Raises UnknownAlert, UnknownMoment, VersionExpired.
    """
    if as_of:  # the commit of the decision may have left the log
        then, event_id = vector_of(lake, tables, as_of), complete_alert_id(lake, alert.partition("@")[0])
    else:
        then = vector_of_alert(lake, tables, alert)
        event_id = str(then.facts["alert_id"])
    now = newest_vector(lake, tables)
    old, new = (PinnedView(lake, tables, vector) for vector in (then, now))
    named = new.rows(
        f"SELECT norad_id_1, norad_id_2, tca_time_ns FROM {CONJUNCTION_ALERTS.name} WHERE event_id = ? LIMIT 1",
        [event_id],
    )
    *pair, tca_ns = (column[0].as_py() for column in named.columns)
    objects = [number for number in pair if number]
    stated = (*sorted(objects), tca_ns) if len(objects) == len(pair) else ()
    return Explanation(event_id, then, now, list(_facts(old, new, event_id, objects, stated)))


def _facts(
    then: PinnedView, now: PinnedView, event_id: str, objects: Sequence[int], stated: Sequence[int]
) -> Iterator[Known]:
    for what, table in _OF_THE_EVENT.items():
        rows = [_row(view, table, f"SELECT * FROM active.{table} WHERE event_id = ?", event_id) for view in (then, now)]
        yield Known(what, *rows)
    if stated:
        rows = [_row(view, "received_cdms", _NEWEST_MESSAGE, *stated) for view in (then, now)]
        if any(rows):
            yield Known("message", *rows)
    for what, table in _OF_THE_OBJECTS.items():
        for number in objects:
            sql = f"SELECT * FROM {table} WHERE norad_id = ?"
            yield Known(f"{what} of {number}", *(_row(view, table, sql, number) for view in (then, now)))
    for number in objects:
        rows = [_row(view, "ephemerides", _NEWEST_EPHEMERIS, number) for view in (then, now)]
        if any(rows):
            yield Known(f"ephemeris of {number}", *rows)


def _row(view: PinnedView, table: str, sql: str, *values: Any) -> dict[str, Any] | None:
    """Return the one row that a query finds, or None; a table that the state does not have holds none."""
    if table not in view.vector.snapshots:
        return None
    return next(iter(view.rows(sql, list(values)).to_pylist()), None)
