"""Received messages about a path that an object has left since they were created: they count no more for alerts.

Its track shows a manoeuvre since, or an operator's newer ephemeris is on another path than the message's state. A newer
ephemeris on the same path confirms the message.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIS_COLUMNS
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest, TableSnapshot
from sda_platform.lake.planning import sequence_read
from sda_platform.lake.table import COMMIT_SEQUENCE

STATES: Final = tuple(f"{name}_{n}" for n in (1, 2) for name in ("reference_frame", "state", "covariance"))
"""The columns of `received_cdms` that say on which paths a message is."""
_MOVED, _LEFT = "has manoeuvred since", "has a newer ephemeris on another path"
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class PathChanges:
    """What is known of the paths of some objects: ``manoeuvre_ns`` by catalogue number, and rows of `ephemerides`."""

    manoeuvre_ns: Mapping[int, int]
    ephemerides: Sequence[Row]
    new: frozenset[int] = frozenset()
    """Those of which a row is new since the previous commit of alerts."""

    def since(self, message: Row) -> str:
        """Say how an object of a message has left its path since it was created; empty: none has, as far as known.

        ``message`` has `STATES`, the numbers of its objects, its TCA and its times.
        """
        created_ns = reported_ns(message)
        for n in (1, 2):
            number = message[f"norad_id_{n}"]
            if self.manoeuvre_ns.get(number, 0) > created_ns:
                return f"{number} {_MOVED}"
            paths = [dict(row) for row in self.ephemerides if row["norad_id"] == number]
            is_older = message[f"state_{n}"] and any(reported_ns(row) > created_ns for row in paths)
            if is_older and _has_left(message, n, paths):
                return f"{number} {_LEFT}"
        return ""


def reported_ns(message: Row) -> int:
    """Return the creation time of a message, or the time of its arrival if it has none; ns since the Unix epoch."""
    created: int | None = message["created_time_ns"]
    return int(message["received_time_ns"]) if created is None else created


def _has_left(message: Row, n: int, rows: Sequence[dict[str, Any]]) -> bool:
    """Tell whether the ephemeris of object ``n`` (1, 2) that counts at TCA is newer than the message, and elsewhere."""
    # Lists of alerts start without these numerics.
    from sda_platform.conjunction import operator_ephemerides as operators
    from sda_platform.orbits.covariance import rtn_to_teme
    from sda_platform.orbits.earth_orientation import states_in_teme
    from sda_platform.orbits.earth_parameters import UnknownOrientation
    from sda_platform.orbits.ephemerides import covariances_from_lower

    known = operators.OperatorEphemerides.none().and_paths(operators.OperatorEphemerides.of(rows))
    number, time_ns = np.array([message[f"norad_id_{n}"]]), np.array([message["tca_time_ns"]])
    chosen = known.covering(number, time_ns)
    if chosen[0] == operators.NONE or known.created_ns[chosen[0]] <= reported_ns(message):
        return False
    r, v = np.split(np.array([message[f"state_{n}"]], np.float64), 2, axis=1)
    try:
        r, v = states_in_teme(message[f"reference_frame_{n}"], r, v, time_ns)
    except UnknownOrientation:
        return False
    own = rtn_to_teme(covariances_from_lower([message[f"covariance_{n}"]]), r, v)
    state, covariance = known.at(chosen, time_ns)
    apart = operators.in_sigmas(state[:, :3] - r, (own + covariance)[:, :3, :3])
    return bool(apart[0] > operators.AGREEING_SIGMAS)


NO_CHANGES: Final = PathChanges({}, ())


def path_changes(
    store: Lake,
    snapshots: Iterable[TableSnapshot],
    objects: Collection[int],
    previous: CommitManifest | None = None,
) -> PathChanges:
    """Read what the pinned ``snapshots`` of `tracks` and `ephemerides` have of some objects; without the engine."""
    read = {each.table: each for each in snapshots if each.sequence}
    if not objects:
        return NO_CHANGES
    where, tracks, paths = ds.field("norad_id").isin(sorted(objects)), [], []
    if pinned := read.get(TRACKS.name):
        columns = ["norad_id", "last_manoeuvre_ns", COMMIT_SEQUENCE]
        rows = store.log(TRACKS).rows(columns, where, version=pinned.version).to_pylist()
        tracks = [row for row in rows if row["last_manoeuvre_ns"]]
    if pinned := read.get(EPHEMERIDES.name):
        where &= ds.field("error_kind").is_null() & (ds.field(COMMIT_SEQUENCE) <= pinned.sequence)
        paths = store.log(EPHEMERIDES).rows([*EPHEMERIS_COLUMNS, COMMIT_SEQUENCE], where).to_pylist()
    seen = ((TRACKS, tracks), (EPHEMERIDES, paths))
    return PathChanges(
        {row["norad_id"]: row["last_manoeuvre_ns"] for row in tracks},
        paths,
        frozenset(
            row["norad_id"]
            for table, rows in seen
            for row in rows
            if row[COMMIT_SEQUENCE] > sequence_read(previous, table)
        ),
    )


def path_changes_in_force(lake: Lake, messages: Iterable[Row]) -> PathChanges:
    """Return the same of the objects of ``messages``, as the newest alerts have read it."""
    commit = lake.log(CONJUNCTION_ALERTS).head().commit
    return path_changes(lake, commit.manifest.snapshots, objects_of(messages)) if commit else NO_CHANGES


def objects_of(messages: Iterable[Row]) -> set[int]:
    """Return the catalogue numbers that messages name."""
    return {number for message in messages for n in (1, 2) if (number := message[f"norad_id_{n}"])}
