"""An ephemeris of a track: it interpolates far below its sigma in each regime, and states its errors."""

import dataclasses

import numpy as np
import pytest

from sda_platform.orbits.determination.held_back import prediction_held_back
from sda_platform.orbits.determination.track_elements import SPAN_S
from sda_platform.orbits.determination.track_ephemerides import ephemeris_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.dynamics.space_weather import read_space_weather
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.held_back_tracks import LATER_NS, published, track, truth, windows
from sda_platform_tests.support.observed_truth import REGIMES, observed
from sda_platform_tests.support.scenes import SECOND_NS

LATER_S = tuple(range(1800, SPAN_S + 1, 1800))


def test_an_ephemeris_of_a_track_is_better_than_the_published_set_and_states_its_error() -> None:
    made = ephemeris_of_track(track(published()), published(), CONSTANT_DYNAMICS)
    state, covariance = made.ephemeris.at(LATER_NS)
    off = (state - truth()[2])[:, :3]
    off_km = float(np.sqrt(np.mean(np.sum(off**2, axis=1))))
    assert off_km < made.published_sigma_km / 3
    assert off_km < 2 * made.sigma_km
    squares = np.einsum("ni,ni->n", off, np.linalg.solve(covariance[:, :3, :3], off[..., None])[..., 0])
    assert squares.mean() < 9
    assert prediction_held_back(windows(published()), published()).is_better


@pytest.mark.parametrize(
    ("speed", "size"), [(1.0, 1.0), (1.0, 3.6), (1.0, 5.9), (1.25, 1.0)], ids=["low", "medium", "high", "eccentric"]
)
def test_interpolation_errs_far_below_sigma_and_claims_no_less(speed: float, size: float) -> None:
    """Between the states of the ephemeris of an orbit with so many times the radius and the circular speed."""
    low = track(published())
    state = low.state * np.array([size] * 3 + [speed / np.sqrt(size)] * 3)
    orbit = dataclasses.replace(low, state=state)
    made = ephemeris_of_track(orbit, published(), CONSTANT_DYNAMICS).ephemeris
    middle_ns = (made.state_time_ns[1:] + made.state_time_ns[:-1]) // 2
    found, covariance = made.at(middle_ns)
    start = orbits_of_teme(orbit.epoch_ns, state, orbit.coefficients, orbit.joint_covariance)
    one = np.zeros(len(middle_ns), np.int64)
    exact, exact_covariance = start.at(CONSTANT_DYNAMICS, middle_ns, one).in_teme()
    sigma_km, exact_sigma_km = (
        np.sqrt(np.trace(each[:, :3, :3], axis1=1, axis2=2)) for each in (covariance, exact_covariance)
    )
    assert np.max(np.linalg.norm((found - exact)[:, :3], axis=1) / exact_sigma_km) < 0.1
    assert np.min(sigma_km / exact_sigma_km) > 0.99
    assert np.median(sigma_km / exact_sigma_km) < 1.05


def test_one_integration_gives_the_covariances_of_many() -> None:
    low = track(published())
    start = orbits_of_teme(low.epoch_ns, low.state, low.coefficients, low.joint_covariance)
    time_ns, one = LATER_NS[1::48], np.zeros(len(LATER_NS[1::48]), np.int64)
    along = start.at(CONSTANT_DYNAMICS, time_ns, one)
    apart = start.take(one).at(CONSTANT_DYNAMICS, time_ns)
    assert np.array_equal(along.state, apart.state)
    assert np.array_equal(along.covariance, apart.covariance)


@pytest.mark.skipif(not satkit_truth.AVAILABLE, reason=satkit_truth.WHY_NOT)
@pytest.mark.parametrize("regime", REGIMES)
def test_ephemerides_are_five_times_better_than_published_sets_on_independent_orbits(regime: str) -> None:
    """The medians of four objects, over the day after the last window."""
    dynamics = Dynamics(read_space_weather(satkit_truth.weather_file()))
    rng = np.random.default_rng([3, REGIMES.index(regime)])
    factors = []
    for _ in range(4):
        seen = observed(regime, rng, hours=10, later_s=LATER_S)
        if seen is None or len(seen.fits.epoch_ns) < 6:
            continue
        seen_track = filter_tracks(seen.fits, seen.published, [0], dynamics)
        made = ephemeris_of_track(seen_track, seen.published, dynamics)
        time_ns = seen_track.epoch_ns[0] + np.array(LATER_S, dtype=np.int64) * SECOND_NS
        set_km = seen.published.at(np.zeros(len(time_ns), np.int64), time_ns)[1]
        errors = [
            np.sqrt(np.mean(np.sum((r - seen.later[:, :3]) ** 2, axis=1)))
            for r in (set_km, made.ephemeris.at(time_ns)[0][:, :3])
        ]
        factors.append(errors[0] / errors[1])
    assert np.median(factors) > 5
