"""Refined elements are offered only if they predict what their fit has not seen."""

import dataclasses

import numpy as np
import pytest

from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.determination.element_fit import fit_elements
from sda_platform.orbits.determination.held_back import HeldBack, predict_held_back, prediction_rms
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import WindowFits
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue

NOISE = np.array([0.05] * 3 + [5e-4] * 3)
MINUTES = np.concatenate([n * 97 + np.arange(6) / 2 for n in range(3)])
TIME_NS = START_NS + (MINUTES * 60 * SECOND_NS).astype(np.int64)
LATER_NS = TIME_NS[-1] + np.arange(0, 7201, 600, dtype=np.int64) * SECOND_NS


def published() -> Propagator:
    """NOAA 20, as published."""
    return catalogue().take(np.flatnonzero(catalogue().elements.norad_id == 43013))


def states(elements: Propagator, time_ns: np.ndarray) -> FloatArray:
    return np.hstack(elements.at(np.zeros(len(time_ns), np.int64), time_ns)[1:])


def windows(truth: FloatArray, prior: Propagator) -> WindowFits:
    """Fits of three passes by observations of the truth with NOISE."""
    row, predicted = np.zeros(len(TIME_NS), np.int64), states(prior, TIME_NS)
    r, v = predicted[:, :3], predicted[:, 3:]
    unit = rtn_to_teme(element_covariance_rtn(prior, row, TIME_NS, r, v), r, v)
    seen = truth + np.random.default_rng(4).normal(size=truth.shape) * NOISE
    covariance = np.linalg.inv(np.linalg.inv(unit) + np.diag(NOISE**-2))
    weighted = np.einsum("wij,wj->wi", np.linalg.inv(unit), predicted) + seen @ np.diag(NOISE**-2)
    return WindowFits(row, TIME_NS, np.einsum("wij,wj->wi", covariance, weighted), covariance, predicted, unit)


def moved(elements: Propagator, degrees: float) -> Propagator:
    anomaly = elements.elements.mean_anomaly_deg + degrees
    return Propagator(dataclasses.replace(elements.elements, mean_anomaly_deg=anomaly))


def test_a_published_set_that_is_off_loses_and_the_noise_is_what_is_left() -> None:
    found = predict_held_back(windows(states(published(), TIME_NS), moved(published(), 0.02)), moved(published(), 0.02))
    assert found.is_better
    assert found.windows == 6
    assert found.published_rms > 5
    assert found.refined_rms == pytest.approx(1.0, abs=0.35)
    assert found.sigma_factor(18) < 3


def test_a_published_set_that_is_right_is_not_replaced() -> None:
    """The truth is the published set: a fit to noisy windows can only be worse."""
    found = predict_held_back(windows(states(published(), TIME_NS), published()), published())
    assert found.published_rms == pytest.approx(1.0, abs=0.35)
    assert not found.is_better


def test_on_an_integrated_orbit_the_claimed_sigma_covers_the_error() -> None:
    """A fit to three passes claims metres; SGP4 itself is hundreds off. The held-back windows show that."""
    forces = Forces(drag_area_m2_kg=0.01)
    start = states(published(), START_NS + np.zeros(1, np.int64))[0]
    truth = integrate_teme(start, START_NS, np.concatenate([TIME_NS, LATER_NS]), forces)
    rough = Propagator(mean_elements(start[None, :3], start[None, 3:], START_NS, 1e-4))
    fits = windows(truth[: len(TIME_NS)], rough)
    fitted = fit_elements(fits, rough)
    factor = predict_held_back(fits, rough).sigma_factor(len(TIME_NS))
    off_km = states(Propagator(fitted.elements), LATER_NS)[:, :3] - truth[len(TIME_NS) :, :3]
    error_km = np.sqrt(np.mean(np.sum(off_km**2, axis=1)))
    claimed_km = np.sqrt(np.trace(fitted.covariance_teme[:3, :3]))
    assert error_km > 4 * claimed_km, "what the covariance alone says"
    assert error_km < 4 * factor * claimed_km


def test_a_set_that_sgp4_refuses_predicts_nothing() -> None:
    fits = windows(states(published(), TIME_NS), published())
    refused = dataclasses.replace(published().elements, eccentricity=np.array([0.6]))
    assert prediction_rms(fits, Propagator(refused)) == float("inf")


def test_errors_common_to_all_windows_are_not_reduced_by_their_number() -> None:
    assert HeldBack(6, 0.8, 2.0).sigma_factor(18) == 1.0
    assert HeldBack(6, 3.0, 5.0).sigma_factor(18) == pytest.approx(np.sqrt(1 + 18 * 8))
