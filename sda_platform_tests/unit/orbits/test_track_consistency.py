"""Tracks of orbits that an independent implementation has integrated: as accurate as they claim, and undisturbed.

A sample of `benchmarks/track_consistency.py` with recorded truth.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits

DATA = Path(__file__).parents[2] / "data/dynamics"
NOISE = {"low": (0.05, 2e-3), "medium": (0.2, 5e-3), "geostationary": (0.2, 5e-3), "eccentric": (0.2, 5e-3)}
SEEDS = range(8)


def published(orbit: str) -> Propagator:
    with (DATA / "published_sets.csv").open() as file:
        (row,) = [row for row in csv.DictReader(file) if row.pop("orbit") == orbit]
    columns = {name: [float(text) if "." in text or "e" in text else int(text)] for name, text in row.items()}
    return Propagator(ElementSets.from_columns(columns))


def truth(orbit: str, kind: str) -> tuple[IntArray, FloatArray]:
    with (DATA / "observed_orbits.csv").open() as file:
        rows = [row for row in csv.reader(file) if row[:2] == [orbit, kind]]
    return np.array([int(row[2]) for row in rows]), np.array([[float(value) for value in row[3:]] for row in rows])


def windows(orbit: str, rng: np.random.Generator) -> WindowFits:
    """Fits from observations of the truth with noise of the regime, and the published set as prior."""
    time_ns, states = truth(orbit, "window")
    sigma = np.repeat(NOISE[orbit], 3)
    row, prior = np.zeros(len(time_ns), np.int64), published(orbit)
    _, r, v = prior.at(row, time_ns)
    errors = rtn_to_teme(tracking_prior_rtn(prior, row, time_ns, r, v), r, v)
    information, own = np.linalg.inv(errors), np.diag(sigma**-2)
    covariance = np.linalg.inv(information + own)
    weighted = np.einsum("wij,wj->wi", information, np.hstack([r, v]))
    weighted += (states + sigma * rng.normal(size=states.shape)) @ own
    state = np.einsum("wij,wj->wi", covariance, weighted)
    return WindowFits(row, time_ns, state, np.asarray(covariance), np.hstack([r, v]), errors)


@pytest.mark.parametrize("orbit", list(NOISE))
def test_one_window_alone_claims_no_more_than_its_prior_and_observations_give(orbit: str) -> None:
    _, states = truth(orbit, "window")
    squares = []
    for seed in SEEDS:
        fits = windows(orbit, np.random.default_rng(seed))
        off = fits.state - states
        squares.append(np.einsum("wi,wij,wj->w", off, np.linalg.inv(fits.covariance), off))
    # All windows of an object share the error of its element set: the bound is that of one set.
    assert np.mean(squares) < chi2.ppf(0.95, 6), orbit


@pytest.mark.parametrize("orbit", list(NOISE))
def test_tracks_of_independent_orbits_are_as_accurate_as_they_claim(orbit: str) -> None:
    _, states = truth(orbit, "window")
    later_ns, later = truth(orbit, "later")
    filtered, predicted = [], []
    for seed in SEEDS:
        track = filter_tracks(windows(orbit, np.random.default_rng(seed)), published(orbit), [0])
        assert not track.manoeuvre_ns.any(), "nobody manoeuvred"
        off = (track.state - states[-1])[0]
        filtered.append(off @ np.linalg.solve(track.covariance[0], off))
        start = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
        for then_ns, then in zip(later_ns, later, strict=True):
            state, joint = start.at(CONSTANT_DYNAMICS, np.array([then_ns])).in_teme()
            miss = state[0, :3] - then[:3]
            predicted.append(miss @ np.linalg.solve(joint[0, :3, :3], miss))
    assert np.mean(filtered) < chi2.ppf(0.999, 6 * len(SEEDS)) / len(SEEDS)
    # Predictions of one object share its drag: bounds of single ones.
    assert np.mean(predicted) < chi2.ppf(0.99, 3)


def test_a_day_ahead_a_track_is_many_times_better_than_the_published_set() -> None:
    for orbit in NOISE:
        track = filter_tracks(windows(orbit, np.random.default_rng(1)), published(orbit), [0])
        later_ns, later = truth(orbit, "later")
        then_ns, then = later_ns[-1:], later[-1:]
        start = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
        state, _ = start.at(CONSTANT_DYNAMICS, then_ns).in_teme()
        _, r, _ = published(orbit).at([0], then_ns)
        off_km, published_km = (float(np.linalg.norm(each - then[0, :3])) for each in (state[0, :3], r[0]))
        assert off_km < 0.5 * published_km, (orbit, off_km, published_km)
