"""Orbits from observations under the numerical model: consistent alone, with an earlier pass, and far from it."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.determination.differential_correction import first_orbit
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.numerical_fit import NumericalFit, continued_orbit, fit_orbit
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.equinoctial import equinoctial, equinoctial_covariance
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.two_body import orbital_period_s
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue, changed, observe, visible

LOW = np.flatnonzero(catalogue().elements.mean_motion_rev_per_day > 11)
COUNT = 30


def true_orbits(rng: np.random.Generator) -> tuple[UncertainOrbits, list[str]]:
    """Low objects that radars see at the start, with areas as first assumed, and the radars."""
    every = visible("radar", START_NS, margin_deg=10)
    every = every.take(np.isin(every.index, LOW))
    chosen = every.take(rng.choice(len(every.index), COUNT, replace=False))
    epoch_ns = np.full(COUNT, START_NS)
    _, r, v = catalogue().at(chosen.index, epoch_ns)
    (mean, *_), (spread, *_) = first_coefficients(np.zeros(1))
    areas = mean + rng.normal(size=(COUNT, 2)) * np.sqrt(np.diag(spread))
    state = gcrf_of_teme(np.hstack([r, v]), epoch_ns)
    return UncertainOrbits(epoch_ns, state, areas, np.zeros((COUNT, 8, 8))), [str(name) for name in chosen.source_id]


def observed(orbit: UncertainOrbits, source_id: str, time_ns: IntArray, rng: np.random.Generator) -> ObservationArrays:
    """One orbit's observations at ascending times after its epoch."""
    states = CONSTANT_DYNAMICS.states(orbit.state, orbit.coefficients, orbit.epoch_ns, time_ns[None])[0]
    in_teme = teme_of_gcrf(states, time_ns)
    return observe(np.full(len(time_ns), source_id), time_ns, in_teme[:, :3], in_teme[:, 3:], rng)


@cache
def first_passes() -> list[tuple[UncertainOrbits, str, NumericalFit]]:
    """The orbit of each object, its radar, and the fit to a minute of observations."""
    rng = np.random.default_rng(31)
    truth, sources = true_orbits(rng)
    found = []
    for number, source_id in enumerate(sources):
        orbit = truth.take(np.array([number]))
        seen = observed(orbit, source_id, START_NS + np.arange(0, 61, 2) * SECOND_NS, rng)
        start = first_orbit(seen)
        state = np.append(start.r_teme_km, start.v_teme_km_s)
        found.append((orbit, source_id, fit_orbit(seen, state, START_NS + 30 * SECOND_NS, CONSTANT_DYNAMICS)))
    return found


def squared_errors(pairs: list[tuple[UncertainOrbits, NumericalFit]]) -> FloatArray:
    """Normalised squared errors of the fits' states."""
    squares = []
    for truth, fit in pairs:
        true = CONSTANT_DYNAMICS.states(truth.state, truth.coefficients, truth.epoch_ns, fit.orbit.epoch_ns[None])[0, 0]
        off, covariance = true - fit.orbit.state[0], fit.orbit.covariance[0, :6, :6]
        sigma = np.sqrt(np.diag(covariance))
        squares.append((off / sigma) @ np.linalg.solve(covariance / np.outer(sigma, sigma), off / sigma))
    return np.array(squares)


def assert_consistent(squares: FloatArray, size: int = 6) -> None:
    low, high = chi2.ppf([1e-3, 1 - 1e-3], size * len(squares)) / len(squares)
    assert low < squares.mean() < high


def test_an_orbit_of_one_pass_has_errors_of_the_size_of_its_covariance() -> None:
    found = first_passes()
    assert_consistent(squared_errors([(truth, fit) for truth, _, fit in found]))
    assert all(fit.is_plausible and fit.used.all() for _, _, fit in found)
    assert {fit.degrees_of_freedom for _, _, fit in found} == {4 * 31 - 6}, "both areas have a prior"


def test_a_later_pass_continues_the_orbit_consistently_and_far_more_precisely() -> None:
    rng = np.random.default_rng(32)
    pairs, gains, growths = [], [], []
    for truth, source_id, before in first_passes():
        (period_s,) = orbital_period_s(truth.state[:, :3], truth.state[:, 3:])
        time_ns = START_NS + int(period_s) * SECOND_NS + np.arange(0, 61, 2) * SECOND_NS
        later = observed(truth, source_id, time_ns, rng)
        epoch_ns = int(time_ns[15])
        joined = continued_orbit(before.orbit, later, epoch_ns, CONSTANT_DYNAMICS)
        state = teme_of_gcrf(joined.orbit.state, joined.orbit.epoch_ns)[0]
        alone = fit_orbit(later, state, epoch_ns, CONSTANT_DYNAMICS)
        pairs.append((truth, joined))
        growths.append(joined.chi_square - alone.chi_square)
        (_, of_joined), (_, of_alone) = (
            equinoctial_covariance(fit.orbit.state, fit.orbit.covariance[:, :6, :6]) for fit in (joined, alone)
        )
        gains.append(np.sqrt(of_alone[0, 0, 0] / of_joined[0, 0, 0]))
    assert_consistent(squared_errors(pairs))
    assert_consistent(np.array(growths))
    assert np.median(gains) > 20, "of the mean motion"


def test_a_single_observation_continues_an_orbit_and_determines_none() -> None:
    truth, source_id, before = first_passes()[0]
    time_ns = np.array([START_NS + 600 * SECOND_NS])
    one = observed(truth, source_id, time_ns, np.random.default_rng(33))
    state = teme_of_gcrf(before.orbit.state, before.orbit.epoch_ns)[0]
    with pytest.raises(NoOrbit, match="4 measured numbers cannot determine six elements"):
        fit_orbit(one, state, int(before.orbit.epoch_ns[0]), CONSTANT_DYNAMICS)
    joined = continued_orbit(before.orbit, one, int(time_ns[0]), CONSTANT_DYNAMICS)
    predicted = before.orbit.at(CONSTANT_DYNAMICS, time_ns)
    assert joined.degrees_of_freedom == 4
    assert np.linalg.det(joined.orbit.covariance[0] @ np.linalg.inv(predicted.covariance[0])) < 0.1
    assert (np.diag(joined.orbit.covariance[0]) <= 1.001 * np.diag(predicted.covariance[0])).all()


def test_outliers_are_left_out() -> None:
    truth, source_id, fit = first_passes()[1]
    time_ns = START_NS + np.arange(0, 61, 2) * SECOND_NS
    seen = observed(truth, source_id, time_ns, np.random.default_rng(34))
    range_m = seen.range_m.copy()
    range_m[[5, 17]] += [500.0, 30_000.0]
    state = teme_of_gcrf(fit.orbit.state, fit.orbit.epoch_ns)[0]
    found = fit_orbit(changed(seen, range_m=range_m), state, int(fit.orbit.epoch_ns[0]), CONSTANT_DYNAMICS)
    assert np.flatnonzero(~found.used).tolist() == [5, 17]


def test_an_orbit_that_meets_the_ground_is_not_continued() -> None:
    truth, source_id, before = first_passes()[2]
    fallen = before.orbit.copied()
    fallen.state[:, 3:] *= 0.5
    time_ns = START_NS + (5_400 + np.arange(0, 61, 2)) * SECOND_NS
    seen = observed(truth, source_id, time_ns, np.random.default_rng(35))
    with pytest.raises(NoOrbit):
        continued_orbit(fallen, seen, int(time_ns[15]), CONSTANT_DYNAMICS)


def test_the_covariance_of_equinoctial_elements_is_that_of_their_scatter() -> None:
    (_, _, fit), *_ = first_passes()
    rng = np.random.default_rng(36)
    root = np.linalg.cholesky(fit.orbit.covariance[0, :6, :6])
    scattered = fit.orbit.state + rng.normal(size=(20_000, 6)) @ root.T
    elements, covariance = equinoctial_covariance(fit.orbit.state, fit.orbit.covariance[:, :6, :6])
    off = equinoctial(scattered[:, :3], scattered[:, 3:]) - elements
    sampled = np.cov(off, rowvar=False)
    sigma = np.sqrt(np.diag(covariance[0]))
    assert np.abs((sampled - covariance[0]) / np.outer(sigma, sigma)).max() < 0.05
