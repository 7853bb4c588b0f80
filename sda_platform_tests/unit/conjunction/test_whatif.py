"""A plan's effect on one satellite's risk: the path after a burn, the events before and after, and the least burn."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.best_states import FUSED_TRACK
from sda_platform.conjunction.known_states import KnownStates
from sda_platform.conjunction.known_trajectory import Trajectory, Unchanged
from sda_platform.conjunction.least_burn import Avoidance, Obstacle, least_burn
from sda_platform.conjunction.planned_trajectory import (
    Burn,
    BurnErrors,
    SizedBurns,
    Stated,
    burned,
)
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.tracked_states import Tracks
from sda_platform.conjunction.whatif import Encounter, Scene, compared, total
from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.scenes import catalogue

DAY_NS = parse_iso_ns("2024-11-01T00:00:00Z")
HOUR_NS = 3600 * 10**9
PRIMARY, OTHER = 20_580, 99_001
MEETING_NS = DAY_NS + 10 * HOUR_NS


def primary(scale: float = 1.0) -> Propagator:
    elements = catalogue().elements
    return Propagator(elements.take(np.flatnonzero(elements.norad_id == PRIMARY)), np.full((1, 3), scale))


EXACT = BurnErrors(0.0, 0.0)


def known(*others: tuple[float, float, int], tracks: Tracks | None = None) -> KnownStates:
    """The primary and objects that meet it head-on: so many km above, so many hours into the day, with this number."""
    sets = [primary().elements]
    for above_km, hours, number in others:
        meeting_ns = DAY_NS + round(hours * HOUR_NS)
        _, r, v = primary().at([0], meeting_ns)
        fitted = mean_elements(r * (1 + above_km / np.linalg.norm(r)), -v, meeting_ns)
        columns = {name: getattr(fitted, name) for name in ElementSets.__dataclass_fields__}
        sets.append(ElementSets.from_columns({**columns, "norad_id": np.array([number])}))
    names = ("HST", *(f"ONCOMING {number}" for *_, number in others))
    states = KnownStates.of_sets(Catalogue(Propagator(ElementSets.stack(sets)), names))
    return states if tracks is None else dataclasses.replace(states, tracks=tracks)


def scene_of(states: KnownStates, **changes: Any) -> Scene:
    sizes = ObjectSizes(dict.fromkeys(states.catalogue.norad_id.tolist(), 5.0))
    return Scene(states, PRIMARY, DAY_NS, DAY_NS + 12 * HOUR_NS, 10.0, sizes, **{"reach_km": 30.0, **changes})


@pytest.fixture(scope="module")
def scene() -> Scene:
    """The primary, and one object that meets it head-on, 0.3 km above."""
    return scene_of(known((0.3, 10.0, OTHER)))


def moved_km(path: Any, times: IntArray) -> FloatArray:
    return np.asarray(np.linalg.norm(path.displacement(times)[:, :3], axis=1))


def test_after_a_burn_along_the_track_the_lead_grows_by_three_times_its_size_a_second(scene: Scene) -> None:
    times = DAY_NS + np.arange(6, 60, 6) * HOUR_NS
    burn = Burn(DAY_NS + HOUR_NS, (0.0, 0.1, 0.0))
    integrated = moved_km(burned(scene.unchanged, [burn], EXACT), times)
    np.testing.assert_allclose(integrated, 3e-4 * (times - burn.time_ns) / 1e9, atol=1.0, rtol=0.05)
    twice = np.tile(times, 2)
    fast = SizedBurns(
        scene.unchanged, burn.time_ns, (0.0, 1.0, 0.0), np.array([0.1, 0.2]), scene.unchanged.near(twice), EXACT
    )
    by_sgp4 = np.linalg.norm(fast.at(twice)[0] - scene.unchanged.near(twice).at(twice)[0], axis=1)
    np.testing.assert_allclose(by_sgp4, np.concatenate([integrated, 2 * integrated]), rtol=0.015)
    nothing = Burn(burn.time_ns, (0.0, 0.0, 0.0))
    assert not moved_km(burned(scene.unchanged, [nothing], EXACT), times).any()
    assert not burned(scene.unchanged, [burn], EXACT).displacement(np.array([burn.time_ns])).any()


def test_the_displacement_between_its_samples_is_that_of_an_integration(scene: Scene) -> None:
    burns = [Burn(DAY_NS + HOUR_NS, (0.0, 0.2, 0.0)), Burn(DAY_NS + 2 * HOUR_NS + 7, (0.1, 0.0, 0.0))]
    times = (DAY_NS + np.array([1.01, 1.9, 2.01, 9.0, 11.99]) * HOUR_NS).astype(np.int64)
    between = burned(scene.unchanged, burns, EXACT).displacement(times)
    for time_ns, found in zip(times, between, strict=True):
        nothing = Burn(time_ns, (0.0, 0.0, 0.0))  # makes its time a sample
        sampled = burned(scene.unchanged, [*burns, nothing], EXACT).displacement(np.array([time_ns]))[0]
        np.testing.assert_allclose(found[:3], sampled[:3], atol=1e-5)
        np.testing.assert_allclose(found[3:], sampled[3:], atol=1e-6)


def test_paths_that_are_screened_together_have_the_events_of_each_alone(scene: Scene) -> None:
    planned = [burned(scene.unchanged, [Burn(DAY_NS + 2 * HOUR_NS, (0.0, size, 0.0))], EXACT) for size in (0.01, 0.05)]
    paths: list[Trajectory] = [scene.unchanged, *planned]
    assert scene.encounters_of(paths) == [scene.encounters(each) for each in paths]


def test_two_burns_that_cancel_leave_the_lead_of_the_time_between() -> None:
    path = Unchanged(known(), PRIMARY)
    there, back = Burn(DAY_NS + HOUR_NS, (0.0, 0.1, 0.0)), Burn(DAY_NS + 4 * HOUR_NS, (0.0, -0.1, 0.0))
    both = moved_km(burned(path, [back, there], EXACT), DAY_NS + np.array([6, 12, 24]) * HOUR_NS)
    np.testing.assert_allclose(both, 3e-4 * 3 * 3600, rtol=0.15)


def test_a_burn_and_the_ephemeris_of_its_path_have_the_same_events(scene: Scene) -> None:
    before = scene.encounters(scene.unchanged)
    assert [round(each.miss_km, 2) for each in before if abs(each.tca_ns - MEETING_NS) < 10**9] == [0.3]
    path = burned(scene.unchanged, [Burn(DAY_NS + 2 * HOUR_NS, (0.0, 0.01, 0.0))], EXACT)
    times = np.arange(DAY_NS, DAY_NS + 12 * HOUR_NS + 1, 60 * 10**9)
    r, v, _ = path.near(times).at(times)
    ephemeris = Ephemeris(
        times, np.hstack([r, v]), np.empty(0, np.int64), np.empty((0, 6, 6)), int(times[0]), int(times[-1])
    )
    by_burn, by_ephemeris = (scene.encounters(each) for each in (path, Stated(ephemeris, scene.unchanged)))
    assert len(by_burn) == len(by_ephemeris) > 0
    for one, other in zip(by_burn, by_ephemeris, strict=True):
        assert abs(one.tca_ns - other.tca_ns) < 10**7
        assert one.miss_km == pytest.approx(other.miss_km, abs=0.01)
    assert {each.states[0] for each in by_ephemeris} == {"plan"}
    assert all("d from its epoch" in each.states[0] for each in by_burn), "with its age"


def test_the_least_burn_brings_every_event_to_the_goal_and_a_smaller_one_does_not(scene: Scene) -> None:
    before = scene.encounters(scene.unchanged)
    goal = max(each.probability for each in before) / 30
    found = least_burn(scene, before, (DAY_NS, DAY_NS + 3 * HOUR_NS), goal, 1.0, burn_times=5)
    assert isinstance(found, Avoidance) and 0 < found.dv_m_s < 1.0
    assert max((each.probability for each in found.after), default=0.0) <= goal
    assert found.total_after == pytest.approx(total(found.after)) and found.total_after < found.total_before
    smaller = Burn(found.burn.time_ns, (0.0, 0.7 * found.burn.dv_rtn_m_s[1], 0.0))
    after = scene.encounters(burned(scene.unchanged, [smaller], scene.errors))
    assert max(each.probability for each in after) > goal
    at_goal = max(each.probability for each in before)
    assert least_burn(scene, before, (DAY_NS, DAY_NS + HOUR_NS), at_goal, 1.0) is None, "no burn is needed"
    least = least_burn(scene, before, (DAY_NS, DAY_NS + HOUR_NS), 0.999 * at_goal, 1e-2, burn_times=5)
    assert isinstance(least, Avoidance) and least.dv_m_s <= 1e-2, "within the margin of the search, and verified"


def test_without_a_burn_the_obstacle_is_named(scene: Scene) -> None:
    before = scene.encounters(scene.unchanged)
    goal = max(each.probability for each in before) / 30
    found = least_burn(scene, before, (DAY_NS, DAY_NS + HOUR_NS), goal, 1e-3, burn_times=5)
    assert isinstance(found, Obstacle) and found.encounter.norad_id == OTHER and not found.raises_total
    assert goal < found.encounter.probability, "what the burn leaves"
    assert found.encounter.probability not in {each.probability for each in before}
    assert abs(found.encounter.tca_ns - MEETING_NS) < 60 * 10**9


def test_a_burn_is_before_every_event_above_the_goal_however_long_the_window_is(scene: Scene) -> None:
    """A tiny burn after the dangerous event met the goal: no later event was above it."""
    before = scene.encounters(scene.unchanged)
    worst = max(before, key=lambda each: each.probability)
    found = least_burn(scene, before, (DAY_NS, DAY_NS + 24 * HOUR_NS), worst.probability / 30, 1.0, burn_times=7)
    assert isinstance(found, Avoidance)
    assert found.burn.time_ns < worst.tca_ns
    assert max((each.probability for each in found.after), default=0.0) <= worst.probability / 30


def test_an_event_before_the_burn_does_not_block_the_goal() -> None:
    early = scene_of(known((0.3, 10.0, OTHER), (0.05, 1.0, OTHER + 1)))
    before = early.encounters(early.unchanged)
    worst = max(before, key=lambda each: each.probability)
    assert worst.norad_id == OTHER + 1, "the earlier one is the worse"
    later = max(each.probability for each in before if each.tca_ns > DAY_NS + 2 * HOUR_NS)
    window = (DAY_NS + 2 * HOUR_NS, DAY_NS + 4 * HOUR_NS)
    assert least_burn(early, before, window, later, 1.0) is None, "no burn can change what is over"
    found = least_burn(early, before, window, later / 30, 1.0, burn_times=5)
    assert isinstance(found, Avoidance)
    assert any(each.norad_id == OTHER + 1 for each in found.after), "it is still listed"


def test_an_approach_beyond_the_threshold_counts_by_its_sigmas() -> None:
    """The risk of a burn to the side of one object: another, 7 km off, becomes the worst."""
    states = known((7.0, 10.0, OTHER))
    near, far = (scene_of(states, sigmas=sigmas) for sigmas in (0.0, 40.0))
    assert not [each for each in near.encounters(near.unchanged) if abs(each.tca_ns - MEETING_NS) < 10**9]
    (found,) = [each for each in far.encounters(far.unchanged) if abs(each.tca_ns - MEETING_NS) < 10**9]
    assert found.miss_km == pytest.approx(7.0, abs=0.1) and 1 < found.sigmas < 40


def test_a_burn_that_raises_the_risk_is_not_recommended() -> None:
    """On either side of the known event other objects wait, where each burn of allowed size ends."""
    states = known((0.3, 10.0, OTHER))
    before_scene = scene_of(states)
    before = before_scene.encounters(before_scene.unchanged)
    goal = max(each.probability for each in before) / 30
    window = (DAY_NS, DAY_NS + 3 * HOUR_NS)
    free = least_burn(before_scene, before, window, goal, 1.0, burn_times=5)
    assert isinstance(free, Avoidance)
    # The lead or lag of such a burn at the later meeting, placed in the way of the primary on its new path.
    path = burned(before_scene.unchanged, [free.burn], EXACT)
    at = np.array([MEETING_NS + HOUR_NS])
    r, v, _ = path.near(at).at(at)
    fitted = mean_elements(r * (1 + 0.01 / np.linalg.norm(r)), -v, int(at[0]))
    columns = {name: getattr(fitted, name) for name in ElementSets.__dataclass_fields__}
    waiting = ElementSets.from_columns({**columns, "norad_id": np.array([OTHER + 1])})
    catalogue = states.catalogue
    elements = ElementSets.stack([catalogue.propagator.elements, waiting])
    trap = scene_of(KnownStates.of_sets(Catalogue(Propagator(elements), (*catalogue.object_names, "WAITING"))))
    found = least_burn(trap, trap.encounters(trap.unchanged), window, goal, 1.0, burn_times=5)
    assert not isinstance(found, Avoidance) or found.burn != free.burn
    if isinstance(found, Avoidance):
        assert max(each.probability for each in found.after) <= goal and found.total_after <= found.total_before


def test_the_errors_of_a_burn_widen_the_covariance_along_its_effect(scene: Scene) -> None:
    burn, at = Burn(DAY_NS + HOUR_NS, (0.0, 0.5, 0.0)), np.array([DAY_NS + 11 * HOUR_NS])
    exact, poor = (burned(scene.unchanged, [burn], errors) for errors in (EXACT, BurnErrors(0.05, 0.0)))
    moved = exact.displacement(at)[0, :3]
    wider = (poor.near(at).at(at)[2] - exact.near(at).at(at)[2])[0, :3, :3]
    along = moved / np.linalg.norm(moved)
    assert np.sqrt(along @ wider @ along) == pytest.approx(0.05 * np.linalg.norm(moved), rel=0.1)
    # They are Gaussian beside the set's long tails.
    tailed, without = (path.near(at).tails(at, *path.near(at).at(at)[:2]) for path in (poor, exact))
    assert tailed.degrees[0] == without.degrees[0] < 2
    np.testing.assert_allclose((tailed.steady - without.steady)[0, :3, :3], wider, rtol=1e-6, atol=1e-9)
    first = np.array([DAY_NS + HOUR_NS])
    np.testing.assert_array_equal(poor.near(first).at(first)[2], scene.unchanged.near(first).at(first)[2])


def test_the_states_are_those_of_assessments() -> None:
    """A track takes the place of the set, as in the assessment that made the alert."""
    at = DAY_NS + 9 * HOUR_NS
    _, r, v = primary().at([0], at)
    covariance = np.diag([1e-4] * 3 + [1e-10] * 3 + [1e-6, 1e-6])[None]
    state = np.hstack([r + np.array([[0.0, 0.0, 0.8]]), v])
    nowhere, areas = np.zeros(1, np.int64), np.array([[0.01, 0.01]])
    tracks = Tracks(np.array([PRIMARY]), np.array(["t1"]), np.array([at]), state, areas, covariance, nowhere)
    tracked = scene_of(known((0.3, 10.0, OTHER), tracks=tracks))
    (found,) = [e for e in tracked.encounters(tracked.unchanged) if abs(e.tca_ns - MEETING_NS) < 5 * 10**9]
    assert found.states[0] == FUSED_TRACK.replace("_", " ") and found.states[1].startswith("element set")
    assert abs(found.miss_km - 0.3) > 0.1, "the track is elsewhere"
    moved = tracked.judged(
        burned(tracked.unchanged, [Burn(at, (0.0, 0.2, 0.0))], EXACT), np.array([OTHER]), np.array([MEETING_NS])
    )
    assert moved[0].miss_km != pytest.approx(found.miss_km, abs=0.05)


def test_the_primarys_covariance_has_the_error_scale_of_its_history() -> None:
    times = DAY_NS + np.arange(3) * 10 * HOUR_NS
    catalogues = [Catalogue(primary(scale), ("HST",)) for scale in (3.0, 1.0)]
    paths = [Unchanged(KnownStates.of_sets(each), PRIMARY) for each in catalogues]
    wide, plain = (path.near(times).at(times)[2] for path in paths)
    r, v = primary().at(np.zeros(3, np.int64), times)[1:]
    expected = element_covariance_rtn(primary(3.0), np.zeros(3, np.int64), times, r, v)
    np.testing.assert_allclose(teme_to_rtn(wide, r, v), expected, rtol=1e-6, atol=1e-9)
    assert (np.einsum("nii->ni", wide) > np.einsum("nii->ni", plain)).all()


def test_encounters_are_paired_by_secondary_and_time() -> None:
    one, moved, new = (Encounter(row, DAY_NS + s * 10**9, 1.0, 1e-6) for row, s in ((1, 0), (1, 30), (2, 5)))
    again = Encounter(1, DAY_NS + 7200 * 10**9, 1.0, 1e-6)
    pairs = [(o.before, o.after) for o in compared([one, again], [moved, new])]
    assert pairs == [(one, moved), (None, new), (again, None)]


def test_an_encounter_that_the_plan_does_not_cover_counts_as_unknown() -> None:
    within, near_the_end, beyond = (Encounter(1, DAY_NS + h * HOUR_NS // 4, 1.0, 1e-6) for h in (4, 23, 30))
    found = compared([within, near_the_end, beyond], [], (DAY_NS, DAY_NS + 6 * HOUR_NS))
    assert [each.is_planned for each in found] == [True, False, False]
    (kept,) = compared([near_the_end], [near_the_end], (DAY_NS, DAY_NS + 6 * HOUR_NS))
    assert kept.is_planned
