"""Objects suspected of a manoeuvre are screened on their tracks, within sigmas of what is known of them."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.conjunction.best_states import BestStates
from sda_platform.conjunction.manoeuvred_paths import MOST_OBJECTS, paths_by_tracks
from sda_platform.conjunction.operator_ephemerides import NONE, OperatorEphemerides
from sda_platform.conjunction.screen import Scope, sweeps
from sda_platform.conjunction.screening_tasks import EVENT, searcher
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.conjunction.tables import TRACK_REACH_NS
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.tables import STATE_COLUMNS, TRACKS, lower_triangles
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.screening.encounter import encounter_plane
from sda_platform.orbits.screening.search import spans
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.object_shell import BEGIN_NS
from sda_platform_tests.support.sampled_paths import END_NS, sampled, shell

MOVER = 26086
SPHERE, REACH_KM, SIGMAS = Volume.sphere(5.0), 60.0, 3.0
BURNED_NS = BEGIN_NS - 600 * SECOND_NS


@cache
def fleet() -> tuple[int, ...]:
    """Objects that the one that manoeuvres passes, and others."""
    return tuple({3230, 43618, 54938, *shell().norad_id[::9].tolist()} - {MOVER})


def track(norad_id: int, *, dv_m_s: float = 8.0, manoeuvre_ns: int = BURNED_NS) -> dict[str, object]:
    """A track that is off its element set by ``dv_m_s`` along and across the track, known to 4 m/s."""
    row = np.flatnonzero(shell().norad_id == norad_id)
    _, r, v = shell().propagator.at(row, np.array([BEGIN_NS]))
    normal = np.cross(r, v)
    v = v + dv_m_s / 1e3 * (0.5 * v / np.linalg.norm(v) + normal / np.linalg.norm(normal))
    covariance = np.diag([5.2**2] * 3 + [4e-3**2] * 3 + [0.01**2, 0.02**2])[None]
    return {
        "norad_id": norad_id,
        "track_id": "a fit",
        "epoch_time_ns": BEGIN_NS,
        **dict(zip(STATE_COLUMNS, np.hstack([r, v])[0].tolist(), strict=True)),
        "drag_area_m2_kg": 0.02,
        "reflective_area_m2_kg": 0.02,
        "joint_covariance": lower_triangles(covariance)[0].tolist(),
        "manoeuvre_time_ns": manoeuvre_ns,
    }


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema([TRACKS.arrow_schema.field(name) for name in TRACK_COLUMNS]))


def paths(*rows: dict[str, object]) -> OperatorEphemerides:
    return paths_by_tracks(table(*rows), shell(), OperatorEphemerides.none(), CONSTANT_DYNAMICS, BEGIN_NS)


def screened(
    by_tracks: OperatorEphemerides | None, *, scope: Scope = "fleet", changed: frozenset[int] | None = None
) -> dict[tuple[int, int, int], float]:
    stated = StatedPaths.of(shell(), OperatorEphemerides.none(), by_tracks)
    work = sweeps(
        stated, fleet(), changed, scope=scope, volumes=SPHERE, objects_per_task=50,
        manoeuvre_sigmas=SIGMAS, reach_km=REACH_KM,
    )  # fmt: skip
    search = searcher(stated, np.array(fleet()), work, fleet_internal=True)
    tasks = [{"sweep": n, "start_ns": a, "end_ns": b} for n in range(len(work)) for a, b in spans(BEGIN_NS, END_NS)]
    rows = [row for batch in search([pa.RecordBatch.from_pylist(tasks)]) for row in batch.to_pylist()]
    names = ("norad_id_1", "norad_id_2", "tca_time_ns")
    return {tuple(r[n] for n in names): r["miss_distance_km"] for r in rows if r["kind"] == EVENT}


def in_sigmas(other: int, time_ns: int) -> float:
    """The miss of the track and another object near a time, by propagating the track's own covariance."""
    at, row = np.array([time_ns]), np.flatnonzero(shell().norad_id == other)
    state, covariance = Tracks.of(table(track(MOVER))).at(np.array([0]), at)
    _, r, v = shell().propagator.at(row, at)
    modelled = rtn_to_teme(element_covariance_rtn(shell().propagator, row, at, r, v), r, v)
    both = (covariance[:, :6, :6] + modelled)[:, :3, :3]
    return float(encounter_plane(r - state[:, :3], v - state[:, 3:6], both).mahalanobis_distance[0])


def test_fleet_and_manoeuvred_object_are_candidates_where_sigmas_of_the_track_reach() -> None:
    stated = paths(track(MOVER))
    found = {key: km for key, km in screened(stated).items() if MOVER in key[:2]}
    near = [each for each in sampled(MOVER, stated) if each[0] in fleet() and each[2] <= REACH_KM]
    # Misses at the border of either volume are left to rounding and to the interpolation of covariances.
    expected, either = [], 0
    for other, since_s, miss_km in near:
        sigmas = in_sigmas(other, BEGIN_NS + round(since_s * SECOND_NS))
        border = 0.8 * SIGMAS < sigmas < 1.25 * SIGMAS
        either += border
        if (sigmas < SIGMAS or miss_km < 5.0) and not border:
            expected.append((other, round(since_s)))
    seen = sorted((sum(key[:2]) - MOVER, round((key[2] - BEGIN_NS) / SECOND_NS)) for key in found)
    assert len(expected) >= 3 and set(expected) <= set(seen)
    assert len(seen) <= len(expected) + either
    assert max(found.values()) > 5.0, "farther than the sphere"
    assert all(key[0] in fleet() for key in found), "it is not screened like one of the fleet"


def test_an_object_that_left_its_set_at_an_unknown_time_has_a_path_and_one_with_a_newer_set_has_none() -> None:
    set_ns = int(shell().propagator.elements.epoch_time_ns[shell().norad_id == MOVER][0])
    assert paths(track(MOVER, manoeuvre_ns=set_ns)).norad_id.tolist() == [MOVER]
    assert not paths(track(MOVER, manoeuvre_ns=set_ns - 1)).norad_id.size


def test_without_the_suspicion_the_element_set_counts_and_the_sphere_alone() -> None:
    by_sets = {key: km for key, km in screened(None).items() if MOVER in key[:2]}
    assert all(km <= 5.0 for km in by_sets.values())
    assert not set(by_sets) & set(screened(paths(track(MOVER))))


@pytest.mark.parametrize("scope", ["fleet", "all"])
def test_a_part_finds_what_the_whole_finds_of_the_object(scope: Scope) -> None:
    stated = paths(track(MOVER), track(fleet()[3], dv_m_s=1.0))
    whole = screened(stated, scope=scope)
    part = screened(stated, scope=scope, changed=frozenset([MOVER]))
    assert len(part) >= 3
    assert part == {key: km for key, km in whole.items() if MOVER in key[:2]}
    others = {key for key in screened(None, scope=scope) if not {MOVER, fleet()[3]} & set(key[:2])}
    assert others == {key for key in whole if not {MOVER, fleet()[3]} & set(key[:2])}


def test_the_path_is_that_of_the_track_for_a_day_with_its_covariance() -> None:
    one = paths(track(MOVER)).ephemerides[0]
    assert (one.usable_from_ns, one.usable_until_ns) == (BEGIN_NS, BEGIN_NS + TRACK_REACH_NS)
    at = BEGIN_NS + np.array([1_000, 20_000, 80_000]) * SECOND_NS
    state, covariance = one.at(at)
    known, spread = Tracks.of(table(track(MOVER))).at(np.zeros(3, np.int64), at)
    assert np.abs(state - known)[:, :3].max() < 1e-3
    sigma, direct = (np.sqrt(np.einsum("nii->n", each[:, :3, :3])) for each in (covariance, spread))
    assert sigma == pytest.approx(direct, rel=0.1)


def test_only_the_newest_suspicions_that_no_set_and_no_ephemeris_knows_have_a_path() -> None:
    ids = shell().norad_id[: MOST_OBJECTS + 3].tolist()
    rows = [track(number, manoeuvre_ns=BURNED_NS - n * SECOND_NS) for n, number in enumerate(ids)]
    assert set(paths(*rows).norad_id.tolist()) == set(ids[:MOST_OBJECTS])
    assert not len(paths(track(MOVER, manoeuvre_ns=1)).norad_id), "the element set is newer"
    assert not len(paths().norad_id)
    known = paths(track(MOVER))
    announced = OperatorEphemerides(
        known.norad_id, known.created_ns + 60 * SECOND_NS, ("a:0",), known.ephemerides, known.source
    )
    after = paths_by_tracks(table(track(MOVER)), shell(), announced, CONSTANT_DYNAMICS, BEGIN_NS)
    assert not len(after.norad_id), "the operator has said where it goes"


def test_a_path_is_that_of_the_states_with_covariances_whatever_gives_them() -> None:
    """An object by its track, one by an ephemeris, within its span and beyond, and one by its element set."""
    by_ephemeris, by_set = shell().norad_id[[3, 5]].tolist()
    numbers = np.array([MOVER, by_ephemeris, by_ephemeris, by_set])
    begin_ns = np.full(4, BEGIN_NS + 3600 * SECOND_NS)
    known = BestStates.of(
        numbers, begin_ns, shell(), Tracks.of(table(track(MOVER))), paths(track(by_ephemeris, manoeuvre_ns=BURNED_NS))
    )
    assert (known.has_track.tolist(), (known.ephemeris != NONE).tolist()) == (
        [True, False, False, False],
        [False, True, True, False],
    )
    for later_s in (0, 40_000, 90_000):
        times = begin_ns + np.array([1, 1, -2, 1]) * later_s * SECOND_NS
        r, v, _ = known.at(times)
        for found, expected in zip(known.path(times), (r, v), strict=True):
            np.testing.assert_array_equal(found, expected)
