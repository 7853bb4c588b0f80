"""First orbits against published examples, and refusals with their reasons."""

import numpy as np
import pytest

from sda_platform.orbits.determination.initial_orbit import (
    NoOrbit,
    gibbs,
    herrick_gibbs,
    orbit_from_directions,
    orbit_from_positions,
)
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state

LIGHT_KM_S = 299_792.458
R0, V0 = np.array([[-294.32, 4265.1, 5986.7]]), np.array([[-6.9, -2.9, 2.6]])


def _positions(times: list[float]) -> np.ndarray:
    count = len(times)
    return two_body_state(np.repeat(R0, count, axis=0), np.repeat(V0, count, axis=0), times)[0]


def _curtis_sightings() -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Curtis, Orbital Mechanics for Engineering Students, example 5.11: sites, directions, times."""
    latitude, height, flattening, radius = np.radians(40.0), 1.0, 0.003353, 6378.0
    sidereal = np.radians([44.506, 45.0, 45.499])
    curvature = radius / np.sqrt(1 - (2 * flattening - flattening**2) * np.sin(latitude) ** 2)
    across = (curvature + height) * np.cos(latitude)
    up = (curvature * (1 - flattening) ** 2 + height) * np.sin(latitude)
    sites = np.stack([across * np.cos(sidereal), across * np.sin(sidereal), np.full(3, up)], axis=1)
    ra, dec = np.radians([43.537, 54.420, 64.318]), np.radians([-8.7833, -12.074, -15.105])
    directions = np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=1)
    return sites, directions, [0.0, 118.10, 237.58]


def test_gibbs_gives_the_published_velocity() -> None:
    # Curtis, example 5.1.
    r = np.array([[-294.32, 4265.1, 5986.7], [-1365.5, 3637.6, 6346.8], [-2940.3, 2473.7, 6555.8]])
    np.testing.assert_allclose(gibbs(r), [-6.2174, -4.0122, 1.5990], atol=1e-4)


def test_herrick_gibbs_gives_the_published_velocity() -> None:
    # Vallado, Fundamentals of Astrodynamics, example 7-4.
    r = np.array(
        [
            [3419.85564, 6019.82602, 2784.60022],
            [2935.91195, 6326.18324, 2660.59584],
            [2434.95202, 6597.38674, 2521.52311],
        ]
    )
    np.testing.assert_allclose(herrick_gibbs(r, np.array([0, 76.48, 153.04])), [-6.44156, 3.77756, -1.72057], atol=1e-5)


def test_gauss_gives_the_published_orbit() -> None:
    r, v = orbit_from_directions(*_curtis_sightings())
    # The published improvement ends at these; it knows no light time, and its angles have five digits.
    np.testing.assert_allclose(r, [5662.1, 6538.0, 3269.0], atol=1.5)
    np.testing.assert_allclose(v, [-3.8856, 5.1214, -2.2433], atol=0.005)
    axis_km = 1 / (2 / np.linalg.norm(r) - v @ v / MU_EARTH_KM3_S2)
    assert axis_km == pytest.approx(10_000, rel=2e-3)


@pytest.mark.parametrize("step_s", [20.0, 300.0])
def test_three_exact_positions_give_back_their_orbit(step_s: float) -> None:
    times = [0.0, step_s, 2.2 * step_s]
    r, v = orbit_from_positions(_positions(times), times)
    expected = two_body_state(R0, V0, times[1])
    np.testing.assert_allclose(r, expected[0][0])
    np.testing.assert_allclose(v, expected[1][0], atol=1e-4)


def test_three_exact_directions_give_back_their_orbit_light_time_and_all() -> None:
    times = np.array([0.0, 100.0, 220.0])
    site = np.array([[-2000.0, 3500.0, 5000.0], [-2020.0, 3488.0, 5000.0], [-2045.0, 3474.0, 5000.0]])
    emitted = times.copy()
    for _ in range(5):
        emitted = times - np.linalg.norm(_positions(emitted.tolist()) - site, axis=1) / LIGHT_KM_S
    r, v = orbit_from_directions(site, _positions(emitted.tolist()) - site, times)
    expected = two_body_state(R0, V0, times[1])
    np.testing.assert_allclose(r, expected[0][0], atol=1e-3)
    np.testing.assert_allclose(v, expected[1][0], atol=1e-5)


def test_observations_that_determine_no_orbit_are_rejected_with_the_reason() -> None:
    good = _positions([0.0, 60.0, 120.0])
    with pytest.raises(NoOrbit, match="order of time"):
        orbit_from_positions(good, [0.0, 120.0, 60.0])
    with pytest.raises(NoOrbit, match="arc is too short"):
        orbit_from_positions(good[[0, 0, 2]], [0.0, 60.0, 120.0])
    wide = _positions([0.0, 600.0, 1200.0])
    wide[1] += [1500.0, 0.0, 0.0]
    with pytest.raises(NoOrbit, match="out of one plane"):
        orbit_from_positions(wide, [0.0, 600.0, 1200.0])
    near = _positions([0.0, 20.0, 40.0])
    with pytest.raises(NoOrbit, match="not closed"):
        orbit_from_positions(near, [0.0, 10.0, 20.0])
    with pytest.raises(NoOrbit, match="under the ground"):
        orbit_from_positions(near, [0.0, 30.0, 60.0])
    sites, directions, times = _curtis_sightings()
    with pytest.raises(NoOrbit, match="lie in one plane"):
        orbit_from_directions(sites, directions[[0, 1, 1]], times)
    with pytest.raises(NoOrbit, match="no closed orbit"):
        orbit_from_directions(sites, -directions, times)
