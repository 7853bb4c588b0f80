"""States between Earth-fixed, TEME and celestial frames, against published ones."""

import numpy as np
import pytest

from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.earth_orientation import in_gcrf
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
