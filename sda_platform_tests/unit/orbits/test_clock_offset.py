"""A planted clock offset is found, told with an honest sigma, and taken out."""

import numpy as np
import pytest

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.clock_offset import corrected, estimate_clock_offsets
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform_tests.unit.orbits.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    changed,
    displaced,
    link_reports,
    observe,
    prior_draw,
    stack,
    visible,
)

MID_NS = START_NS + 15 * SECOND_NS
PLANTED_S = {"radar-1": 0.020, "radar-4": -0.150}


def _watched(objects: int, seed: int) -> tuple[ObservationArrays, IntArray, IntArray, FloatArray]:
    """Radar readings of objects off their elements, stamped by clocks of which two are off; and the deviations."""
    rng = np.random.default_rng(seed)
    every = visible("radar", MID_NS, margin_deg=5)
    seen = every.take(rng.choice(len(every.index), objects, replace=False))
    deviation = prior_draw(seen.index, seen.time_ns, rng)
    group = np.repeat(np.arange(objects), 8)
    time_ns = START_NS + rng.integers(0, 30 * SECOND_NS, len(group))
    r, v = displaced(seen.index[group], time_ns, deviation[group], seen.time_ns[group])
    readings = observe(seen.source_id[group], time_ns, r, v, rng)
    ahead_s = np.array([PLANTED_S.get(name, 0.0) for name in readings.source_id.tolist()])
    stamped = changed(readings, sensor_time_ns=time_ns + np.round(ahead_s * 1e9).astype(np.int64))
    return stamped, group, seen.index, deviation


def test_planted_offsets_are_found_within_their_sigma_and_no_others() -> None:
    stamped, group, index, _ = _watched(1500, seed=1)
    found = estimate_clock_offsets(stamped, group, catalogue(), index, np.full(1500, MID_NS))
    expected = np.array([PLANTED_S.get(name, 0.0) for name in found.source_id.tolist()])
    deviation = (found.offset_s - expected) / found.sigma_s
    assert np.abs(deviation).max() < 4
    assert np.mean(deviation**2) == pytest.approx(1.0, abs=1.0)
    planted = np.isin(found.source_id, list(PLANTED_S))
    assert found.sigma_s[planted].max() < 0.02
    assert "radar-4" in found.source_id[found.is_off()]
    assert set(found.source_id[found.is_off()]) <= set(PLANTED_S)
    assert found.readings.sum() == len(stamped)


def test_taking_the_offset_out_brings_the_fits_nearer_to_the_truth() -> None:
    stamped, group, index, deviation = _watched(1500, seed=2)
    mid_ns = np.full(1500, MID_NS)
    found = estimate_clock_offsets(stamped, group, catalogue(), index, mid_ns)
    mine = stamped.source_id == "radar-4"
    _, r, _ = catalogue().at(index, mid_ns)

    def error_km(observations: ObservationArrays) -> float:
        fits = fit_windows(observations.take(mine), group[mine], catalogue(), index, mid_ns)
        touched = np.unique(group[mine])
        return float(np.median(np.linalg.norm(fits.r_teme_km - r - deviation[:, :3], axis=1)[touched]))

    assert error_km(corrected(stamped, found)) < 0.3 * error_km(stamped)


def test_reference_links_anchor_the_offset_of_whoever_sees_the_same_satellite() -> None:
    stamped, group, index, deviation = _watched(300, seed=3)
    rng = np.random.default_rng(4)
    mid_ns = np.full(300, MID_NS)
    names = np.array([f"isl-{number}" for number in catalogue().elements.norad_id[index].tolist()])
    r, v = displaced(index, mid_ns, deviation, mid_ns)
    both = stack(stamped, link_reports(names, mid_ns, r, v, rng))
    groups = np.concatenate([group, np.arange(300)])
    alone = estimate_clock_offsets(stamped, group, catalogue(), index, mid_ns)
    anchored = estimate_clock_offsets(both, groups, catalogue(), index, mid_ns, references=set(names.tolist()))
    place = np.searchsorted(anchored.source_id, alone.source_id)
    assert (anchored.sigma_s[place] < 0.2 * alone.sigma_s).all()
    radar = np.flatnonzero(anchored.source_id == "radar-1")[0]
    assert anchored.offset_s[radar] == pytest.approx(0.020, abs=5 * anchored.sigma_s[radar])
    assert anchored.is_off()[radar]
    links = np.isin(anchored.source_id, names)
    assert np.abs(anchored.offset_s[links]).max() < 1e-5, "they are as good as they say"


def test_nothing_seen_nothing_said() -> None:
    stamped, _, index, _ = _watched(3, seed=5)
    nothing = stamped.take(np.zeros(0, dtype=np.int64))
    found = estimate_clock_offsets(nothing, [], catalogue(), index, np.full(3, MID_NS))
    assert len(found.source_id) == 0
    assert corrected(stamped, found) is stamped
