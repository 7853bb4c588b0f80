"""States between Earth-fixed, TEME and celestial frames, against published ones."""

import numpy as np
import pytest

from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.earth_orientation import (
    FRAMES,
    covariances_from_teme,
    covariances_in_teme,
    in_gcrf,
    states_from_teme,
    states_in_teme,
)
from sda_platform.orbits.earth_parameters import UnknownOrientation, orientation, require_published

TIME_NS = parse_iso_ns("2004-04-06T07:51:28.386009Z")
GCRF = np.array([5102.5089579, 6123.0114007, 6378.1369282]), np.array([-4.743220157, 0.790536497, 5.533755727])
EARTH_FIXED = np.array([-1033.479383, 7901.2952754, 6380.3565958]), np.array([-3.22563652, -2.87245145, 5.531924446])
TEME = np.array([5094.1801621, 6127.6446595, 6380.3445327]), np.array([-4.746131487, 0.785818041, 5.531931288])


@pytest.mark.parametrize(
    ("frame", "state", "within_m"),
    # Of the Earth-fixed state UT1 is that of midnight in the source, 0.5 ms off.
    [("ITRF", EARTH_FIXED, 0.35), ("TEME", TEME, 0.01), ("GCRF", GCRF, 0.0)],
)
def test_vallado_s_state_is_the_same_in_every_frame(
    frame: str, state: tuple[np.ndarray, np.ndarray], within_m: float
) -> None:
    """Vallado et al., AIAA 2006-6753, appendix C; Fundamentals of Astrodynamics, example 3-14."""
    r, v = in_gcrf(frame, *state, TIME_NS)
    np.testing.assert_allclose(1000 * r, 1000 * GCRF[0], atol=within_m + 1e-6)
    np.testing.assert_allclose(1000 * v, 1000 * GCRF[1], atol=within_m / 1000 + 1e-5)


def test_the_mean_equator_of_2000_is_off_by_the_frame_bias() -> None:
    """23 milliarcseconds (IERS Conventions 2010, section 5.4.4): less than a metre in low orbit."""
    r, v = in_gcrf("EME2000", *GCRF, TIME_NS)
    turned_mas = np.degrees(np.linalg.norm(r - GCRF[0]) / np.linalg.norm(r)) * 3.6e6
    assert 5 < turned_mas < 24
    assert np.linalg.norm(v) == pytest.approx(np.linalg.norm(GCRF[1]), rel=1e-14)


def test_the_earth_s_orientation_does_not_jump_where_utc_does() -> None:
    midnight = parse_iso_ns("2017-01-01T00:00:00Z")
    before, after = (orientation(np.array([midnight + side * 10**9])).ut1_minus_utc_s[0] for side in (-1, 1))
    assert after - before == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("time_ns", [0, 4 * 10**18])
def test_where_it_is_not_known_it_is_stated(time_ns: int) -> None:
    with pytest.raises(UnknownOrientation, match="is known from 1973-01-02 to 20"):
        require_published(np.array([time_ns]))


@pytest.mark.parametrize("frame", FRAMES)
def test_states_and_covariances_leave_teme_as_they_enter_it__44(frame: str) -> None:
    chance = np.random.default_rng(4)
    time_ns = 1_730_000_000 * 10**9 + chance.integers(0, 10**16, 5)
    r, v = chance.normal(0, 7000, (5, 3)), chance.normal(0, 7, (5, 3))
    factor = chance.normal(0, [[1.0]] * 3 + [[1e-3]] * 3, (5, 6, 6))
    covariance = factor @ factor.swapaxes(1, 2)
    left = states_from_teme(frame, r, v, time_ns)
    for found, expected in zip(states_in_teme(frame, *left, time_ns), (r, v), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    turned = covariances_from_teme(frame, covariance, time_ns)
    np.testing.assert_allclose(covariances_in_teme(frame, turned, time_ns), covariance, rtol=1e-9, atol=1e-12)

    def moved(component: int, step: float) -> np.ndarray:
        state = np.concatenate([r, v], axis=1)
        state[:, component] += step
        return np.concatenate(states_from_teme(frame, state[:, :3], state[:, 3:], time_ns), axis=1)

    whole = np.stack([(moved(n, 0.5) - moved(n, -0.5)) for n in range(6)], axis=2)
    np.testing.assert_allclose(turned, whole @ covariance @ whole.swapaxes(1, 2), rtol=1e-6, atol=1e-9)
