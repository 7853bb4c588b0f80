"""Screening on ephemerides of operators: what is found is what the paths themselves do, in any cut of the work."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.known_states import KnownStates
from sda_platform.conjunction.known_trajectory import Unchanged
from sda_platform.conjunction.operator_ephemerides import OPERATOR_EPHEMERIS, OperatorEphemerides
from sda_platform.conjunction.planned_trajectory import Burn, BurnErrors, burned
from sda_platform.conjunction.screen import Scope, sweeps
from sda_platform.conjunction.screening_tasks import EVENT, searcher
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.path_sets import WITHIN_KM, sets_through
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import spans
from sda_platform.orbits.screening.volumes import Volume
from sda_platform_tests.support.object_shell import BEGIN_NS
from sda_platform_tests.support.sampled_paths import END_NS, NS, WITHIN_REACH_KM, sampled, shell

MEETING_NS = BEGIN_NS + 14_400 * NS
SPHERE = Volume.sphere(WITHIN_REACH_KM)
BOXES = {name: Volume("box", 30.0, 60.0, 60.0) for name in ("LEO1", "LEO2", "LEO3", "HEO")}
Found = dict[tuple[int, int, int], float]
BY_OPERATORS = (OPERATOR_EPHEMERIS,) * 2


def ephemeris_of(times: IntArray, r: FloatArray, v: FloatArray) -> Ephemeris:
    covariance = np.diag([1e-4] * 3 + [1e-10] * 3)[None]
    return Ephemeris(times, np.hstack([r, v]), times[:1], covariance, int(times[0]), int(times[-1]))


def mover() -> int:
    return int(shell().norad_id[40])


def guest() -> int:
    return int(shell().norad_id[80])


@cache
def ephemerides() -> OperatorEphemerides:
    """Of an object that manoeuvres by 8 m/s after 25 minutes, and of one that meets it head-on, 0.3 km above it."""
    times = np.arange(BEGIN_NS, BEGIN_NS + 5 * 3600 * NS + 1, 60 * NS)
    before = Unchanged(KnownStates.of_sets(shell()), mover())
    path = burned(before, [Burn(BEGIN_NS + 1500 * NS, (0.0, 8.0, 0.0))], BurnErrors())
    r, v, _ = path.near(times).at(times)
    # What SGP4 does not follow: half a kilometre across the equator, zero when the two meet.
    turn = 2 * np.pi / 2400 * (times - MEETING_NS) / NS
    r[:, 2] += 0.5 * np.sin(turn)
    v[:, 2] += 0.5 * 2 * np.pi / 2400 * np.cos(turn)
    meeting_ns = np.array([MEETING_NS])
    there, speed, _ = path.near(meeting_ns).at(meeting_ns)
    oncoming = Propagator(mean_elements(there * (1 + 0.3 / np.linalg.norm(there)), -speed, MEETING_NS))
    _, r2, v2 = oncoming.at(np.zeros(len(times), np.int64), times)
    made = np.array([BEGIN_NS, BEGIN_NS])
    both = ephemeris_of(times, r, v), ephemeris_of(times, r2, v2)
    return OperatorEphemerides(np.array([mover(), guest()]), made, ("a:0", "b:0"), both, BY_OPERATORS)


def found(
    stated: OperatorEphemerides,
    changed: Sequence[int] | None = None,
    *,
    scope: Scope = "fleet",
    volumes: dict[str, Volume] | Volume = SPHERE,
    cuts: Sequence[int] = (),
) -> Found:
    paths = StatedPaths.of(shell(), stated)
    chosen = None if changed is None else frozenset(changed)
    work = sweeps(paths, shell().norad_id[::9], chosen, scope=scope, volumes=volumes, objects_per_task=50)
    search = searcher(paths, shell().norad_id[::9], work, fleet_internal=True)
    edges = [BEGIN_NS, *cuts, END_NS]
    parts = [part for n in range(len(edges) - 1) for part in spans(edges[n], edges[n + 1])]
    tasks = [{"sweep": n, "start_ns": a, "end_ns": b} for n in range(len(work)) for a, b in parts]
    rows = [row for batch in search([pa.RecordBatch.from_pylist(tasks)]) for row in batch.to_pylist()]
    names = ("norad_id_1", "norad_id_2", "tca_time_ns")
    return {tuple(r[n] for n in names): r["miss_distance_km"] for r in rows if r["kind"] == EVENT}


def test_what_is_found_is_what_the_paths_do_and_not_what_the_element_sets_say() -> None:
    stated = found(ephemerides())
    mine = {key: km for key, km in stated.items() if mover() in key[:2]}
    ours = sorted((sum(key[:2]) - mover(), (key[2] - BEGIN_NS) / NS, km) for key, km in mine.items())
    expected = sampled(mover(), ephemerides())
    assert len(expected) > 5
    assert [each[0] for each in ours] == [each[0] for each in expected]
    for one, other in zip(ours, expected, strict=True):
        assert one[1] == pytest.approx(other[1], abs=0.1) and one[2] == pytest.approx(other[2], abs=0.1)
    near = {key: km for key, km in mine.items() if abs(key[2] - MEETING_NS) < 60 * NS}
    (meeting,) = [(key, km) for key, km in near.items() if set(key[:2]) == {mover(), guest()}]
    assert abs(meeting[0][2] - MEETING_NS) < NS // 100, "ephemeris against ephemeris"
    assert meeting[1] == pytest.approx(0.3, abs=1e-3)
    by_sets = found(OperatorEphemerides.none(), scope="all")
    assert not any(set(key[:2]) == {mover(), guest()} and km < 5 for key, km in by_sets.items())
    ended_ns = ephemerides().ephemerides[0].usable_until_ns + 600 * NS
    afterwards = {key for key in found(ephemerides(), scope="all") if key[2] > ended_ns}
    assert afterwards and afterwards == {key for key in by_sets if key[2] > ended_ns}


@pytest.mark.parametrize(("scope", "volumes"), [("fleet", BOXES), ("all", SPHERE)])
def test_a_part_and_any_cut_find_what_the_whole_finds(scope: Scope, volumes: dict[str, Volume] | Volume) -> None:
    whole = found(ephemerides(), scope=scope, volumes=volumes)
    borders = StatedPaths.of(shell(), ephemerides()).catalogue.terms
    assert borders is not None
    cuts = sorted({t + 1 for t in borders.from_ns.tolist() if BEGIN_NS < t < END_NS})[::5]
    assert found(ephemerides(), scope=scope, volumes=volumes, cuts=cuts) == whole
    part = found(ephemerides(), [mover()], scope=scope, volumes=volumes)
    assert part == {key: km for key, km in whole.items() if mover() in key[:2]}


def test_of_two_ephemerides_the_newer_one_holds_where_it_covers() -> None:
    old = ephemerides().ephemerides[0]
    middle = len(old.state_time_ns) // 2
    _, r, v = shell().propagator.at(
        np.full(middle, np.flatnonzero(shell().norad_id == mover())[0]), old.state_time_ns[:middle]
    )
    new = ephemeris_of(old.state_time_ns[:middle], r, v)
    both = OperatorEphemerides(np.array([mover()] * 2), np.array([0, 1]), ("a", "b"), (old, new), BY_OPERATORS)
    paths = StatedPaths.of(shell(), both)
    assert paths.catalogue.terms is not None
    rows = paths.catalogue.positions([mover()])
    begins, ends = paths.catalogue.terms.from_ns[rows], paths.catalogue.terms.until_ns[rows]
    assert (begins[1:] == ends[:-1]).all(), "at each time one set is in force"
    times = BEGIN_NS + np.arange(30, 5 * 3600, 300) * NS
    found_rows = paths.catalogue.rows_in_force(np.full(len(times), mover()), times)
    path = paths.catalogue.propagator.at(found_rows, times)[1]
    chosen = np.where(times < new.usable_until_ns, 1, 0)
    expected = both.at(chosen, times)[0][:, :3]
    assert np.linalg.norm(path - expected, axis=1).max() < WITHIN_KM


def test_sets_follow_a_large_manoeuvre_and_say_how_far_they_are_off_where_sgp4_jumps() -> None:
    mine = ephemerides().ephemerides[0]
    found_sets = sets_through(mine, mine.usable_from_ns, mine.usable_until_ns)
    assert found_sets is not None and found_sets.deviation_km <= WITHIN_KM
    assert np.diff(found_sets.from_ns).min() < 3600 * NS // 2, "terms are shorter where it manoeuvres"
    angle = 7.292115e-5 * (mine.state_time_ns - BEGIN_NS) / NS
    circle = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    along = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    geostationary = ephemeris_of(mine.state_time_ns, 42_164.2 * circle, 42_164.2 * 7.292115e-5 * along)
    jumping = sets_through(geostationary, geostationary.usable_from_ns, geostationary.usable_until_ns)
    assert jumping is not None and jumping.margin_km >= 3 * max(jumping.deviation_km, 1.0)
    falling = ephemeris_of(mine.state_time_ns, mine.state[:, :3], 2 * mine.state[:, 3:])
    assert sets_through(falling, falling.usable_from_ns, falling.usable_until_ns) is None, "no closed orbit"


def test_an_object_outside_of_the_catalogue_and_a_single_state_change_nothing() -> None:
    state = ephemerides().ephemerides[0]
    single = Ephemeris(
        state.state_time_ns[:1], state.state[:1], state.covariance_time_ns, state.covariance, BEGIN_NS, BEGIN_NS
    )
    others = OperatorEphemerides(
        np.array([mover(), 99_999_999]), np.array([0, 0]), ("a", "b"), (single, state), BY_OPERATORS
    )
    paths = StatedPaths.of(shell(), others)
    assert paths.margins_km == {}
    assert isinstance(paths.catalogue, Catalogue) and len(paths.catalogue) == len(shell())
    assert isinstance(paths.catalogue.propagator.elements, ElementSets)
