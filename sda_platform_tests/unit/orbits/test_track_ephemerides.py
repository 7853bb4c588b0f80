"""An ephemeris of a track: it interpolates far below its sigma in each regime, and states its errors."""

import numpy as np
import pytest

from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.determination.held_back import prediction_held_back
from sda_platform.orbits.determination.track_elements import SPAN_S
from sda_platform.orbits.determination.track_ephemerides import ephemeris_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.dynamics.space_weather import read_space_weather
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import REGIMES, observed
from sda_platform_tests.support.scenes import SECOND_NS
from sda_platform_tests.unit.orbits.test_held_back import LATER_NS, published, track, truth, windows

LATER_S = tuple(range(1800, SPAN_S + 1, 1800))


def test_an_ephemeris_of_a_track_is_better_than_the_published_set_and_states_its_error() -> None:
    made = ephemeris_of_track(track(published()), published(), CONSTANT_DYNAMICS)
    state, covariance = made.ephemeris.at(LATER_NS)
    off = (state - truth()[2])[:, :3]
    off_km = float(np.sqrt(np.mean(np.sum(off**2, axis=1))))
    assert off_km < made.published_sigma_km / 5
    assert off_km < 2 * made.sigma_km
    squares = np.einsum("ni,ni->n", off, np.linalg.solve(covariance[:, :3, :3], off[..., None])[..., 0])
    assert squares.mean() < 9
    assert prediction_held_back(windows(published()), published()).is_better


@pytest.mark.parametrize("speed", [1.0, 0.8, 1.25])
def test_interpolation_errs_far_below_sigma(speed: float) -> None:
    """A low orbit, and such with perigee or apogee there; between the states of the ephemeris."""
    seen = track(published())
    scaled = 3.2 if speed == 0.8 else 1.0  # the perigee is above the Earth
    factor = np.array([scaled] * 3 + [speed / np.sqrt(scaled)] * 3)
    moved = type(seen)(**{**seen.__dict__, "state": seen.state * factor})
    made = ephemeris_of_track(moved, published(), CONSTANT_DYNAMICS).ephemeris
    middle_ns = (made.state_time_ns[1:] + made.state_time_ns[:-1]) // 2
    state, covariance = made.at(middle_ns)
    orbit = orbits_of_teme(CONSTANT_DYNAMICS, moved.epoch_ns, moved.state, moved.coefficients, moved.joint_covariance)
    exact, exact_covariance = orbit.along(CONSTANT_DYNAMICS, middle_ns).in_teme(CONSTANT_DYNAMICS)
    assert np.linalg.norm((state - exact)[:, :3], axis=1).max() < 1e-3
    sigmas, exact_sigmas = (
        np.sqrt(np.einsum("nii->ni", teme_to_rtn(each[:, :6, :6], exact[:, :3], exact[:, 3:6])[:, :3, :3]))
        for each in (covariance, exact_covariance)
    )
    assert np.abs(sigmas / exact_sigmas - 1).max() < 0.25


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
