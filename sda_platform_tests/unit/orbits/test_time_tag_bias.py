"""A planted clock offset is found, told with an honest sigma, and taken out."""

from functools import cache

import numpy as np
import pytest

from sda_platform.arrays import IntArray
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases, corrected, estimate_time_tag_biases
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    Watched,
    catalogue,
    changed,
    link_reports,
    stack,
    visible,
    watched,
)

MID_NS = START_NS + 15 * SECOND_NS
PLANTED_S = {"radar-1": 0.020, "radar-4": -0.250}
CERTAIN_SIGMAS = 5.0


@cache
def scene(kind: str, objects: int, seed: int) -> Watched:
    rng = np.random.default_rng(seed)
    every = visible(kind, MID_NS, margin_deg=5)
    seen = every.take(rng.choice(len(every.index), objects, replace=False))
    return watched(seen, START_NS + rng.integers(0, 30 * SECOND_NS, 8 * objects), rng)


def stamped(observations: ObservationArrays, ahead_s: dict[str, float]) -> ObservationArrays:
    """The observations as clocks stamp them that are ahead by so much."""
    ahead = np.array([ahead_s.get(name, 0.0) for name in observations.source_id.tolist()])
    return changed(observations, sensor_time_ns=observations.sensor_time_ns + np.round(ahead * 1e9).astype(np.int64))


def estimated(observations: ObservationArrays, group: IntArray, seen: Watched, references: set[str]) -> TimeTagBiases:
    middle_ns = np.full(len(seen.index), MID_NS)
    return estimate_time_tag_biases(observations, group, catalogue(), seen.index, middle_ns, references=references)


def with_links(scene: Watched, ahead_s: dict[str, float]) -> tuple[ObservationArrays, IntArray, set[str]]:
    """The observations, and of every object what it shows of its own state; the groups, and the links' names."""
    objects = np.arange(len(scene.index))
    middle_ns = np.full(len(objects), MID_NS)
    names = np.array([f"isl-{number}" for number in catalogue().elements.norad_id[scene.index].tolist()])
    links = link_reports(names, middle_ns, *scene.states_at(objects, middle_ns), np.random.default_rng(4))
    return stack(stamped(scene.observations, ahead_s), links), np.concatenate([scene.group, objects]), set(names)


def surely_off(found: TimeTagBiases) -> set[str]:
    return set(found.source_id[np.abs(found.offset_s) > CERTAIN_SIGMAS * found.sigma_s].tolist())


def test_planted_offsets_are_found_within_their_sigma_and_no_others() -> None:
    seen = scene("radar", 800, 1)
    readings = stamped(seen.observations, PLANTED_S)
    found = estimated(readings, seen.group, seen, set())
    expected = np.array([PLANTED_S.get(name, 0.0) for name in found.source_id.tolist()])
    deviation = (found.offset_s - expected) / found.sigma_s
    assert np.abs(deviation).max() < 4
    assert np.mean(deviation**2) == pytest.approx(1.0, abs=1.0)
    assert found.sigma_s[np.isin(found.source_id, list(PLANTED_S))].max() < 0.035
    assert "radar-4" in surely_off(found) <= set(PLANTED_S)
    assert found.observation_count.sum() > 0.99 * len(readings)
    assert not found.anchors.any(), "the catalogue alone is no reference"


def test_correcting_50_ms_gives_fits_as_accurate_as_an_unbiased_clock() -> None:
    seen = scene("radar", 200, 3)
    readings, group, links = with_links(seen, {"radar-4": 0.05})
    found = estimated(readings, group, seen, links)
    alone = seen.observations.source_id == "radar-4"
    objects, mid_ns = np.unique(seen.group[alone]), np.full(200, MID_NS)

    def error_km(observations: ObservationArrays) -> float:
        fits = fit_windows(observations.take(alone), seen.group[alone], catalogue(), seen.index, mid_ns)
        return float(np.median(np.linalg.norm(fits.r_teme_km - seen.truth[:, :3], axis=1)[objects]))

    wrong = stamped(seen.observations, {"radar-4": 0.05})
    right_km, wrong_km = error_km(seen.observations), error_km(wrong)
    assert wrong_km > 2.5 * right_km
    assert error_km(corrected(wrong, found)) < 1.1 * right_km


@pytest.mark.parametrize("kind", ["radar", "optical"])
@pytest.mark.parametrize("ahead_ms", [-40.0, 0.0, 50.0])
def test_reference_links_determine_each_bias_to_milliseconds__CS(kind: str, ahead_ms: float) -> None:
    seen = scene(kind, 200, 3)
    every = dict.fromkeys(seen.observations.source_id.tolist(), ahead_ms / 1e3)
    readings, group, links = with_links(seen, every)
    found = estimated(readings, group, seen, links)
    assert set(found.source_id.tolist()) <= set(every), "the references' clocks are not asked for"
    sensors = found.observation_count >= 40
    off = (found.offset_s[sensors] - ahead_ms / 1e3) / found.sigma_s[sensors]
    assert np.sqrt(np.mean(off**2)) < 2.0
    assert (found.sigma_s[sensors] < 0.005).all()
    assert (found.anchors[sensors] >= 5).all()
    excess = found.residual_rms[sensors] - 1.0
    assert (excess > 1.0).all() if ahead_ms else (np.abs(excess) < 0.2).all()


def test_a_correction_leaves_its_own_doubt_in_the_time() -> None:
    seen = scene("radar", 200, 3)
    readings, group, links = with_links(seen, {"radar-4": 0.05})
    found = estimated(readings, group, seen, links)
    after = corrected(readings, found)
    mine = after.source_id == "radar-4"
    assert np.ptp(after.clock_correction_sigma_s[mine]) == 0.0
    assert after.clock_correction_sigma_s[mine][0] == found.sigma_s[found.source_id == "radar-4"][0]


def test_nothing_seen_nothing_said() -> None:
    seen = scene("radar", 200, 3)
    nothing = seen.observations.take(np.zeros(0, dtype=np.int64))
    found = estimated(nothing, np.zeros(0, dtype=np.int64), seen, set())
    assert len(found.source_id) == 0
    assert corrected(seen.observations, found) is seen.observations
