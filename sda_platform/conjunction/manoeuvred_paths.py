"""Paths of objects that are suspected of a manoeuvre, by their tracks: they are screened on them, not on old elements.

Few objects at a time: the newest suspicions. Their element sets follow within the hour, from the track or from others.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.arrays import IntArray
from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.best_states import FUSED_TRACK
from sda_platform.conjunction.operator_ephemerides import NONE, OperatorEphemerides
from sda_platform.conjunction.tables import TRACK_REACH_NS
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.tables import ALIVE, TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan, sequence_read, snapshot_of
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.earth_orientation import teme_of_gcrf
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.orbits.ephemerides import Ephemeris

MOST_OBJECTS = 20
"""More are not screened on their tracks: a screening of one against the fleet takes the time of a member's own."""
SUSPECTED = ds.field("state").isin(ALIVE) & ds.field("manoeuvre_time_ns").is_valid()
"""The rows of `tracks` that are live and show a suspected manoeuvre."""
BY_TRACK = "track"
_STATE_NS, _COVARIANCE_NS = 300 * 1_000_000_000, 600 * 1_000_000_000


def suspected_tracks(store: Lake, plan: Plan, *, is_wanted: bool) -> tuple[pa.Table, set[int]]:
    """Live tracks with a suspected manoeuvre, as ``plan`` pins them, and the objects new since its predecessor.

    None where they are not wanted, or where the plan repeats a commit of a version that did not read tracks.
    """
    snapshot = snapshot_of(plan, TRACKS)
    if not (is_wanted and snapshot.sequence):
        return pa.schema([TRACKS.arrow_schema.field(name) for name in TRACK_COLUMNS]).empty_table(), set()
    rows = store.log(TRACKS).rows([*TRACK_COLUMNS, COMMIT_SEQUENCE], SUSPECTED, version=snapshot.version)
    is_new = rows.filter(ds.field(COMMIT_SEQUENCE) > sequence_read(plan.previous, TRACKS))
    return rows.select(TRACK_COLUMNS), set(is_new.column("norad_id").to_pylist())


def paths_by_tracks(
    rows: pa.Table, catalogue: Catalogue, ephemerides: OperatorEphemerides, dynamics: Dynamics, as_of_ns: int
) -> OperatorEphemerides:
    """Return the paths of at most MOST_OBJECTS objects for a day from ``as_of_ns``, each after its suspected manoeuvre.

    Left out are objects whose element set or ephemeris is newer than the manoeuvre. A path ends where another set comes
    into force.
    """
    tracks = Tracks.of(rows.filter(pa.array(np.isin(rows.column("norad_id").to_numpy(), catalogue.norad_id))), dynamics)
    row = catalogue.rows_in_force(tracks.norad_id, tracks.epoch_ns)
    until_ns = np.full(len(row), FOREVER_NS) if catalogue.terms is None else catalogue.terms.until_ns[row]
    until_ns = np.minimum(until_ns, as_of_ns + TRACK_REACH_NS)
    stated = ephemerides.covering(tracks.norad_id, np.full(len(row), as_of_ns))
    created_ns = np.append(ephemerides.created_ns, 0)[stated]
    is_news = tracks.manoeuvre_ns >= catalogue.propagator.elements.epoch_time_ns[row]
    is_news &= (stated == NONE) | (tracks.manoeuvre_ns > created_ns)
    is_news &= until_ns > np.maximum(as_of_ns, tracks.epoch_ns) + _COVARIANCE_NS
    newest = np.lexsort((tracks.norad_id, -tracks.manoeuvre_ns, ~is_news))[: min(MOST_OBJECTS, int(is_news.sum()))]
    chosen = np.sort(newest)
    paths = [_path(tracks, each, until_ns[each], as_of_ns) for each in chosen.tolist()]
    return OperatorEphemerides(
        tracks.norad_id[chosen],
        tracks.manoeuvre_ns[chosen],
        (BY_TRACK,) * len(chosen),
        tuple(paths),
        (FUSED_TRACK,) * len(chosen),
    )


def _path(tracks: Tracks, row: int, until_ns: int, as_of_ns: int) -> Ephemeris:
    """Return the path of a track as an ephemeris."""
    rows = np.array([row])
    begin_ns = max(as_of_ns, int(tracks.epoch_ns[row]))
    orbit = orbits_of_teme(tracks.epoch_ns[rows], tracks.state[rows], tracks.areas[rows], tracks.covariance[rows])
    covariance_ns, covariances = _instants(begin_ns, int(until_ns), _COVARIANCE_NS), []
    for at_ns in covariance_ns.tolist():
        orbit = orbit.at(tracks.dynamics, np.array([at_ns]))
        covariances.append(orbit.in_teme()[1][0, :6, :6])
    time_ns = _instants(begin_ns, int(until_ns), _STATE_NS)
    start = orbits_of_teme(tracks.epoch_ns[rows], tracks.state[rows], tracks.areas[rows], tracks.covariance[rows])
    states = tracks.dynamics.states(start.state, start.coefficients, start.epoch_ns, time_ns[None])[0]
    in_teme = teme_of_gcrf(states, time_ns)
    return Ephemeris(time_ns, in_teme, covariance_ns, np.array(covariances), begin_ns, int(time_ns[-1]))


def _instants(begin_ns: int, until_ns: int, step_ns: int) -> IntArray:
    """Instants from the begin to the end, about a step apart."""
    count = max(2, -(-(until_ns - begin_ns) // step_ns) + 1)
    return begin_ns + (until_ns - begin_ns) * np.arange(count) // (count - 1)
