"""Elements from measurements: consistent, robust, and refused where the looks do not carry them."""

import numpy as np
import pytest

from sda_platform.orbits.determination.differential_correction import Correction, correct_elements, first_orbit
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.linking import link
from sda_platform.orbits.equinoctial import equinoctial
from sda_platform.orbits.mean_elements import from_equinoctial, mean_elements, to_equinoctial
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    changed,
    observe,
    passes,
    stack,
    visible,
)

LOW = np.flatnonzero(catalogue().elements.mean_motion_rev_per_day > 11)


def _arc(index: int, source_id: str, time_ns: np.ndarray, rng: np.random.Generator) -> ObservationArrays:
    _, r, v = catalogue().at(np.full(len(time_ns), index), time_ns)
    return observe(np.full(len(time_ns), source_id), time_ns, r, v, rng)


def _low_arcs(count: int, seconds: int, seed: int) -> list[tuple[int, ObservationArrays]]:
    """Radar arcs of low objects, a reading a second around the start."""
    rng = np.random.default_rng(seed)
    every = visible("radar", START_NS, margin_deg=10)
    every = every.take(np.isin(every.index, LOW))
    chosen = every.take(rng.choice(len(every.index), count, replace=False))
    time_ns = START_NS + np.arange(-seconds // 2, seconds // 2 + 1) * SECOND_NS
    return [
        (int(index), _arc(int(index), str(source), time_ns, rng))
        for index, source in zip(chosen.index, chosen.source_id, strict=True)
    ]


def _error(index: int, fit: Correction) -> np.ndarray:
    _, r, v = catalogue().at([index], fit.elements.epoch_time_ns)
    return np.concatenate([fit.r_teme_km - r[0], fit.v_teme_km_s - v[0]])


def test_mean_elements_give_back_the_state_they_were_made_for() -> None:
    elements = catalogue().elements.take(np.arange(0, len(catalogue()), 40))
    rows = np.arange(len(elements))
    error, r, v = Propagator(elements).at(rows, elements.epoch_time_ns)
    # Deep and equatorial, SGP4 itself is not continuous.
    fair = (error == 0) & ((elements.inclination_deg > 0.1) | (elements.mean_motion_rev_per_day > 6.4))
    made = mean_elements(r[fair], v[fair], elements.epoch_time_ns[fair], elements.bstar_per_earth_radius[fair])
    _, r_made, v_made = Propagator(made).at(np.arange(len(made)), made.epoch_time_ns)
    np.testing.assert_allclose(r_made, r[fair], atol=1e-6)
    np.testing.assert_allclose(v_made, v[fair], atol=1e-9)


def test_equinoctial_and_published_form_say_the_same() -> None:
    elements = catalogue().elements
    there = to_equinoctial(elements)
    back = from_equinoctial(there, elements.epoch_time_ns, elements.bstar_per_earth_radius)
    np.testing.assert_allclose(to_equinoctial(back), there, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(back.inclination_deg, elements.inclination_deg, atol=1e-9)
    np.testing.assert_allclose(back.eccentricity, elements.eccentricity, atol=1e-12)
    assert np.isnan(equinoctial([[7000.0, 0, 0]], [[0, 12.0, 0]])).all(), "not closed"


def test_an_initial_orbit_has_errors_of_the_size_of_its_covariance() -> None:
    arcs = _low_arcs(60, 60, seed=3)
    fits = [(index, first_orbit(arc)) for index, arc in arcs]
    errors = [_error(index, fit) for index, fit in fits]
    nees = [e @ np.linalg.solve(fit.covariance_teme, e) for e, (_, fit) in zip(errors, fits, strict=True)]
    assert np.mean(nees) == pytest.approx(6.0, abs=5 * np.sqrt(12 / 60))
    assert np.median([np.linalg.norm(e[:3]) for e in errors]) < 0.1
    assert all(fit.used.all() for _, fit in fits)


def test_angles_only_observations_determine_a_low_orbit() -> None:
    rng = np.random.default_rng(8)
    every = visible("optical", START_NS, margin_deg=20)
    every = every.take(np.isin(every.index, LOW))
    found = 0
    for row in rng.choice(len(every.index), 12, replace=False):
        index, time_ns = int(every.index[row]), START_NS + np.linspace(-60, 60, 13).astype(np.int64) * SECOND_NS
        try:
            fit = first_orbit(_arc(index, str(every.source_id[row]), time_ns, rng))
        except NoOrbit:
            continue
        found += 1
        error = _error(index, fit)
        assert error @ np.linalg.solve(fit.covariance_teme, error) < 30
    assert found >= 8


def test_outliers_are_left_out_of_a_correction() -> None:
    index, arc = _low_arcs(1, 60, seed=4)[0]
    range_m = arc.range_m.copy()
    range_m[[5, 17, 40]] += [500.0, -2_000.0, 30_000.0]
    _, r, v = catalogue().at([index], [START_NS])
    fit = correct_elements(changed(arc, range_m=range_m), mean_elements(r, v, START_NS))
    assert np.flatnonzero(~fit.used).tolist() == [5, 17, 40]
    assert fit.is_plausible
    error = _error(index, fit)
    assert error @ np.linalg.solve(fit.covariance_teme, error) < 25


def test_arcs_that_carry_no_orbit_are_refused_with_the_reason() -> None:
    (_, arc), (_, other) = _low_arcs(2, 60, seed=6)
    with pytest.raises(NoOrbit, match="2 looks of one sort"):
        first_orbit(arc.take([0, 60]))
    with pytest.raises(NoOrbit, match=r"residuals of|under the ground|converge|not closed|out of one plane"):
        first_orbit(stack(arc.take(np.arange(0, 61, 2)), other.take(np.arange(1, 61, 2))))
    with pytest.raises(NoOrbit):
        first_orbit(changed(arc, sensor_time_ns=START_NS + (arc.sensor_time_ns - START_NS) // 3))


def test_tracklets_of_three_passes_link_to_the_objects_that_made_them() -> None:
    rng = np.random.default_rng(7)
    chosen = rng.choice(LOW, 400, replace=False)
    seen = passes(chosen, [s for s in sensor_registry().values() if s.kind == "radar"], hours=8, minutes=2)
    tracklets, owners = [], []
    for index, source_id, middle_ns in seen[:120]:
        time_ns = middle_ns + np.arange(-60, 61, 4) * SECOND_NS
        try:
            tracklets.append(first_orbit(_arc(index, source_id, time_ns, rng)))
        except NoOrbit:
            continue
        owners.append(index)
    assert len(tracklets) > 100
    chains = link(tracklets)
    assert sorted(row for chain in chains for row in chain) == list(range(len(tracklets)))
    pairs = [(chain[k], chain[k + 1]) for chain in chains for k in range(len(chain) - 1)]
    right = [owners[a] == owners[b] for a, b in pairs]
    possible = len(owners) - len(set(owners))
    assert np.mean(right) > 0.97
    assert sum(right) > 0.9 * possible


def test_what_is_known_to_be_of_two_objects_is_not_linked() -> None:
    ((_, arc),) = _low_arcs(1, 120, seed=6)
    tracklets = [first_orbit(arc.take(np.arange(start, 121, 2))) for start in (0, 1)]
    tracklets.sort(key=lambda t: int(t.elements.epoch_time_ns[0]))
    assert link(tracklets) == [[0, 1]]
    assert link(tracklets, ~np.eye(2, dtype=bool)) == [[0], [1]]
