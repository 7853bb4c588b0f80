"""The window fit: Bayesian, consistent, robust, and the same bits in any order."""

import dataclasses
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sda_platform.arrays import FloatArray
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
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
MOTION, ROUND = catalogue().elements.mean_motion_rev_per_day, catalogue().elements.eccentricity < 0.1
REGIMES = {
    "": np.arange(len(catalogue())),
    "low": np.flatnonzero((MOTION > 11.25) & ROUND),
    "medium": np.flatnonzero((MOTION > 1.5) & (MOTION < 6) & ROUND),
    "geostationary": np.flatnonzero((np.abs(MOTION - 1.0027) < 0.05) & ROUND),
    "eccentric": np.flatnonzero(~ROUND),
}


class Scene(Watched):
    """Windows of objects displaced by prior draws, to be fitted at their middle."""

    def fit(self, **columns: FloatArray) -> StateFits:
        mid_ns = np.full(len(self.index), MID_NS)
        return fit_windows(changed(self.observations, **columns), self.group, catalogue(), self.index, mid_ns)


OF_WINDOWS = [field.name for field in dataclasses.fields(StateFits) if field.name != "used"]


def fit_window(observations: ObservationArrays, index: int) -> SimpleNamespace:
    """Fit one object's observations of one window; each quantity without the axis of windows."""
    fits = fit_windows(observations, np.zeros(len(observations), dtype=np.int64), catalogue(), [index], [MID_NS])
    return SimpleNamespace(**{name: getattr(fits, name)[0] for name in OF_WINDOWS})


@cache
def scene(kind: str, windows: int, readings: int, seed: int, regime: str = "") -> Scene:
    rng = np.random.default_rng(seed)
    every = visible(kind, MID_NS)
    every = every.take(np.isin(every.index, REGIMES[regime]))
    seen = every.take(rng.choice(len(every.index), windows, replace=len(every.index) < windows))
    return Scene(**vars(watched(seen, START_NS + rng.integers(0, 30 * SECOND_NS, windows * readings), rng)))


def _state(fits: StateFits) -> FloatArray:
    return np.hstack([fits.r_teme_km, fits.v_teme_km_s])


def _nees(fits: StateFits, truth: FloatArray) -> FloatArray:
    """Squared estimation error in units of the claimed covariance, (g,); expected value 6."""
    error = _state(fits) - truth
    weighed = np.linalg.solve(fits.covariance_teme, error[:, :, None])[:, :, 0]
    squared: FloatArray = np.einsum("gi,gi->g", error, weighed)
    return squared


def _bytes(fits: StateFits) -> list[bytes]:
    return [getattr(fits, field.name).tobytes() for field in dataclasses.fields(fits) if field.name != "used"]


def test_without_observations_the_fit_is_the_prior() -> None:
    given_none = scene("radar", 20, 10, seed=1)
    nothing = given_none.observations.take(np.zeros(0, dtype=np.int64))
    fits = fit_windows(nothing, [], catalogue(), given_none.index, np.full(20, MID_NS))
    np.testing.assert_array_equal(fits.r_teme_km, fits.predicted_r_teme_km)
    np.testing.assert_array_equal(fits.v_teme_km_s, fits.predicted_v_teme_km_s)
    assert fits.converged.all() and not fits.chi_square.any() and not fits.degrees_of_freedom.any()
    informed = given_none.fit()
    prior_volume = np.linalg.slogdet(fits.covariance_teme)[1]
    assert (np.linalg.slogdet(informed.covariance_teme)[1] < prior_volume).all()


@pytest.mark.parametrize(("kind", "windows"), [("radar", 500), ("optical", 400)])
def test_error_and_chi_square_are_consistent_with_the_covariance(kind: str, windows: int) -> None:
    taken = scene(kind, windows, 10, seed=2)
    fits = taken.fit()
    assert fits.converged.all() and not fits.unusable.any()
    # Averages of windows independent chi-square values: five of their own standard deviations either way.
    assert _nees(fits, taken.truth).mean() == pytest.approx(6.0, abs=5 * np.sqrt(12 / windows))
    dimension = fits.degrees_of_freedom.mean()
    assert fits.chi_square.mean() == pytest.approx(dimension, abs=5 * np.sqrt(2 * dimension / windows))
    assert fits.outliers_rejected.sum() <= 3


@pytest.mark.parametrize("kind", ["radar", "optical"])
@pytest.mark.parametrize("regime", ["low", "medium", "geostationary", "eccentric"])
def test_normalised_error_is_inside_its_bounds_in_every_regime(kind: str, regime: str) -> None:
    taken = scene(kind, 150, 3 if kind == "optical" else 10, seed=31, regime=regime)
    fits = taken.fit()
    # Where the observations contain little information the prior must carry it, and carry it honestly; 99.9 % of 150
    # tracks.
    low, high = chi2.ppf([0.0005, 0.9995], 6 * 150) / 150
    assert low < _nees(fits, taken.truth).mean() < high


def test_observations_beat_the_prior() -> None:
    taken = scene("radar", 500, 10, seed=2)
    fits = taken.fit()
    before = np.linalg.norm(fits.predicted_r_teme_km - taken.truth[:, :3], axis=1)
    after = np.linalg.norm(fits.r_teme_km - taken.truth[:, :3], axis=1)
    assert np.median(after) < 0.35 * np.median(before)
    assert (after < before).mean() > 0.9


def test_any_row_order_and_any_company_give_the_same_bytes() -> None:
    taken = stack(scene("radar", 30, 10, seed=3).observations, scene("optical", 30, 10, seed=4).observations)
    group = np.concatenate([scene("radar", 30, 10, seed=3).group, 30 + scene("optical", 30, 10, seed=4).group])
    index = np.concatenate([scene("radar", 30, 10, seed=3).index, scene("optical", 30, 10, seed=4).index])
    whole = fit_windows(taken, group, catalogue(), index, np.full(60, MID_NS))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(group))
        again = fit_windows(taken.take(order), group[order], catalogue(), index, np.full(60, MID_NS))
        assert _bytes(again) == _bytes(whole)
        np.testing.assert_array_equal(again.used, whole.used[order])
    for window in range(0, 60, 9):
        alone = fit_window(taken.take(group == window), int(index[window]))
        for name in OF_WINDOWS:
            assert getattr(alone, name).tobytes() == getattr(whole, name)[window].tobytes(), name


def test_wide_outlier_is_dropped_and_leaves_no_trace() -> None:
    taken = scene("radar", 50, 10, seed=5)
    rows = np.arange(50) * 10 + np.random.default_rng(6).integers(0, 10, 50)
    range_m = taken.observations.range_m.copy()
    range_m[rows] += 30_000.0
    spoiled = taken.fit(range_m=range_m)
    assert (spoiled.outliers_rejected == 1).all() and not spoiled.used[rows].any()
    kept = np.setdiff1d(np.arange(500), rows)
    clean = dataclasses.replace(taken, observations=taken.observations.take(kept), group=taken.group[kept]).fit()
    np.testing.assert_allclose(spoiled.r_teme_km, clean.r_teme_km, rtol=0, atol=1e-7)
    assert (spoiled.radar_count == 9).all()


def test_four_outliers_of_ten_are_dropped_and_a_majority_is_believed() -> None:
    taken = scene("radar", 60, 10, seed=12)
    rng = np.random.default_rng(13)
    rows = np.concatenate([10 * window + rng.choice(10, 4, replace=False) for window in range(60)])
    range_m = taken.observations.range_m.copy()
    range_m[rows] += rng.choice([-1, 1], len(rows)) * rng.uniform(1_000.0, 30_000.0, len(rows))
    fits = taken.fit(range_m=range_m)
    assert (fits.outliers_rejected == 4).mean() > 0.95
    assert np.intersect1d(np.flatnonzero(~fits.used), rows).size > 0.97 * len(rows)
    assert np.median(_nees(fits, taken.truth)) < 8
    most = np.concatenate([10 * window + np.arange(6) for window in range(60)])
    range_m[most] = taken.observations.range_m[most] + 20_000.0
    assert (taken.fit(range_m=range_m).outliers_rejected < 5).all()


def test_single_observation_that_contradicts_the_prior_is_rejected() -> None:
    taken = scene("radar", 1, 1, seed=7)
    fit = taken.fit(azimuth_rad=taken.observations.azimuth_rad + 0.7)
    assert fit.outliers_rejected[0] == 1 and fit.degrees_of_freedom[0] == 0
    np.testing.assert_allclose(fit.r_teme_km, fit.predicted_r_teme_km, atol=1e-6)


def test_kinds_combine_and_are_counted() -> None:
    radar = scene("radar", 1, 6, seed=8)
    index, rng = int(radar.index[0]), np.random.default_rng(9)
    time_ns = START_NS + rng.integers(0, 30 * SECOND_NS, 4)
    r, v = radar.states_at(np.zeros(4, dtype=np.int64), time_ns)
    beacons = link_reports(np.full(4, "isl-1"), time_ns, r, v, rng)
    unknown = changed(radar.observations, source_id=np.full(6, "radar-77"))
    fit = fit_window(stack(radar.observations, beacons, unknown), index)
    counts = (fit.radar_count, fit.optical_count, fit.isl_count, fit.unusable, fit.degrees_of_freedom)
    assert counts == (6, 0, 4, 6, 6 * 4 + 4 * 6)
    assert np.linalg.norm(fit.r_teme_km - radar.truth[0, :3]) < 0.05
    assert np.sqrt(np.trace(fit.covariance_teme[:3, :3])) < 0.03


def test_observations_of_one_uncertain_clock_do_not_average_its_error_away() -> None:
    taken = scene("optical", 60, 10, seed=10)
    doubted = taken.fit(clock_quality=np.full(600, "onboard_drift"), clock_age_s=np.full(600, 100.0))
    one = np.arange(0, 600, 10)
    single = dataclasses.replace(taken, observations=taken.observations.take(one), group=taken.group[one])
    alone = single.fit(clock_quality=np.full(60, "onboard_drift"), clock_age_s=np.full(60, 100.0))
    trusted = taken.fit()
    spread = [np.sqrt(np.einsum("gii->g", fits.covariance_teme[:, :3, :3])) for fits in (trusted, doubted, alone)]
    assert (spread[0] < spread[1]).all()
    along = np.median(spread[1] / spread[2])
    assert 0.5 < along <= 1.0


def test_refused_object_gives_no_state_and_harms_no_other() -> None:
    taken = scene("radar", 10, 10, seed=11)
    columns = {name: getattr(catalogue().elements, name).copy() for name in catalogue().elements.__dataclass_fields__}
    columns["inclination_deg"][taken.index[4]] = np.nan
    broken = type(catalogue())(type(catalogue().elements)(**columns).take(taken.index))
    fits = fit_windows(taken.observations, taken.group, broken, np.arange(10), np.full(10, MID_NS))
    assert np.isnan(fits.r_teme_km[4]).all() and not fits.converged[4] and fits.unusable[4] == 10
    others = np.arange(10) != 4
    np.testing.assert_array_equal(fits.r_teme_km[others], taken.fit().r_teme_km[others])


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.integers(0, 299), max_size=40),
    scale=st.sampled_from([1.0, 1e3, 1e6]),
    bad=st.sampled_from([np.nan, 0.0, 1e9]),
)
def test_any_observations_give_a_finite_state_and_a_positive_covariance(
    rows: list[int], scale: float, bad: float
) -> None:
    taken = scene("radar", 30, 10, seed=3)
    chosen = taken.observations.take(np.array(rows, dtype=np.int64))
    range_m = np.where(np.arange(len(rows)) % 5 == 4, bad, chosen.range_m * scale)
    fit = fit_window(changed(chosen, range_m=range_m), int(taken.index[0]))
    assert np.isfinite(fit.r_teme_km).all() and np.isfinite(fit.chi_square)
    assert (np.linalg.eigvalsh(fit.covariance_teme) > 0).all()
    counted = fit.radar_count + fit.outliers_rejected + fit.unusable
    assert counted == len(rows)


def test_object_outside_the_catalogue_is_an_error() -> None:
    taken = scene("radar", 1, 1, seed=7)
    with pytest.raises(ValueError, match="object positions"):
        fit_windows(taken.observations, taken.group, catalogue(), [-1], [MID_NS])
