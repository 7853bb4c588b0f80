"""Received messages about a path that an object has left since they were created: they count no more for alerts.

Its track shows a manoeuvre since, or an operator's newer ephemeris is on another path than the message's state. A newer
ephemeris on the same path confirms the message.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIS_COLUMNS
from sda_platform.conjunction.creation_times import reported_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, SAME_EVENT_NS
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest, TableSnapshot
from sda_platform.lake.planning import sequence_read
from sda_platform.lake.table import COMMIT_SEQUENCE

if TYPE_CHECKING:
    from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides

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
            is_older = message[f"state_{n}"] and self._newest_ns.get(number, 0) > created_ns
            if is_older and _has_left(message, n, self._paths_of(number)):
                return f"{number} {_LEFT}"
        return ""

    @cached_property
    def _newest_ns(self) -> dict[int, int]:
        """By catalogue number, when the newest ephemeris was created."""
        found: dict[int, int] = {}
        for row in self.ephemerides:
            found[row["norad_id"]] = max(found.get(row["norad_id"], 0), reported_ns(row))
        return found

    @cached_property
    def _paths(self) -> dict[int, "OperatorEphemerides"]:
        return {}

    def _paths_of(self, number: int) -> "OperatorEphemerides":
        """Return what counts of the ephemerides of an object; made once, for however many messages."""
        # Lists of alerts start without these numerics.
        from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides

        if number not in self._paths:
            rows = [dict(row) for row in self.ephemerides if row["norad_id"] == number]
            self._paths[number] = OperatorEphemerides.none().and_paths(OperatorEphemerides.of(rows))
        return self._paths[number]


def _has_left(message: Row, n: int, known: "OperatorEphemerides") -> bool:
    """Tell whether the ephemeris of object ``n`` (1, 2) that counts at TCA is newer than the message, and elsewhere."""
    from sda_platform.conjunction import operator_ephemerides as operators
    from sda_platform.orbits.covariance import rtn_to_teme
    from sda_platform.orbits.earth_orientation import states_in_teme
    from sda_platform.orbits.earth_parameters import UnknownOrientation
    from sda_platform.orbits.ephemerides import covariances_from_lower

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
    messages: Iterable[Row],
    previous: CommitManifest | None = None,
) -> PathChanges:
    """Read what the pinned ``snapshots`` of `tracks` and `ephemerides` have of the objects of ``messages``, or of
    events; without the engine. Of the ephemerides those are read that reach one of their closest approaches.
    """
    read, messages = {each.table: each for each in snapshots if each.sequence}, list(messages)
    objects = objects_of(messages)
    if not objects:
        return NO_CHANGES
    where, tracks, paths = ds.field("norad_id").isin(sorted(objects)), [], []
    if pinned := read.get(TRACKS.name):
        columns = ["norad_id", "last_manoeuvre_ns", COMMIT_SEQUENCE]
        rows = store.log(TRACKS).rows(columns, where, version=pinned.version).to_pylist()
        tracks = [row for row in rows if row["last_manoeuvre_ns"]]
    if pinned := read.get(EPHEMERIDES.name):
        # A message about an event may state an earlier closest approach.
        first_ns = min(message["tca_time_ns"] for message in messages) - SAME_EVENT_NS
        where &= ds.field("error_kind").is_null() & (ds.field(COMMIT_SEQUENCE) <= pinned.sequence)
        where &= ds.field("usable_until_ns") >= first_ns
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
    return path_changes(lake, commit.manifest.snapshots, messages) if commit else NO_CHANGES


def objects_of(messages: Iterable[Row]) -> set[int]:
    """Return the catalogue numbers that messages name."""
    return {number for message in messages for n in (1, 2) if (number := message[f"norad_id_{n}"])}
