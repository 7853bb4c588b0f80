"""Numerical integration: the field is the gradient of its potential, and motion keeps what it must."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.special import lpmv

from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.determination.force_model import (
    GM_KM3_S2,
    RADIUS_KM,
    Forces,
    _field,
    _field_acceleration,
    integrate,
    moon_km,
)
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state

T = parse_iso_ns("2010-11-02T02:56:15.690Z")
SECOND_NS = 10**9
LOW = np.array([-2000.0, 5500.0, 4300.0, -5.1, -4.4, 3.3])
HIGH = np.array([-40541.446, -9905.357, 206.777, 0.7590685, -1.4765156, 0.0547931])


def _potential(r: np.ndarray, angle: float, degree: int, order: int) -> float:
    cosine, sine = _field(degree, order)
    distance = float(np.linalg.norm(r))
    longitude = np.arctan2(r[1], r[0]) - angle
    total = 0.0
    for n in range(degree + 1):
        for m in range(min(n, order) + 1):
            legendre = lpmv(m, n, r[2] / distance) * (-1) ** m
            total += (
                (RADIUS_KM / distance) ** n
                * legendre
                * (cosine[n, m] * np.cos(m * longitude) + sine[n, m] * np.sin(m * longitude))
            )
    return GM_KM3_S2 / distance * total


@pytest.mark.parametrize(("degree", "order"), [(0, 0), (4, 0), (8, 8), (20, 20)])
def test_the_field_is_the_gradient_of_its_potential(degree: int, order: int) -> None:
    step = 0.05 * np.eye(3)
    gradient = [
        (_potential(LOW[:3] + d, 0.7, degree, order) - _potential(LOW[:3] - d, 0.7, degree, order)) / 0.1 for d in step
    ]
    ours = _field_acceleration(LOW[:3], 0.7, *_field(degree, order), degree)
    np.testing.assert_allclose(ours, gradient, atol=1e-11)


def test_a_point_mass_gives_keplerian_motion() -> None:
    times = T + np.array([-7000, 0, 300, 86_000, 40]) * SECOND_NS
    found = integrate(HIGH, T, times, Forces(0, 0, third_bodies=False))
    # Another constant of gravity is another time scale.
    scale = np.sqrt(GM_KM3_S2 / MU_EARTH_KM3_S2)
    r, v = two_body_state(np.tile(HIGH[:3], (5, 1)), np.tile(HIGH[3:] / scale, (5, 1)), (times - T) / 1e9 * scale)
    np.testing.assert_allclose(found[:, :3], r, atol=1e-4)
    np.testing.assert_allclose(found[:, 3:], v * scale, atol=1e-7)


def test_there_and_back_is_where_it_began() -> None:
    forces = Forces(reflective_area_m2_kg=0.02, drag_area_m2_kg=0.01, own_km_s2=(1e-9, 0.0, -2e-9))
    later = T + 57_600 * SECOND_NS
    there = integrate(HIGH, T, np.array([later]), forces)[0]
    still = dataclasses.replace(forces, own_rate_km_s3=(0.0, 0.0, 0.0))
    np.testing.assert_allclose(integrate(there, later, np.array([T]), still)[0, :3], HIGH[:3], atol=1e-2)


def test_zonal_fields_keep_energy_and_the_momentum_about_the_pole() -> None:
    zonal = Forces(8, 0, third_bodies=False)
    states = integrate(LOW, T, T + np.arange(0, 20_000, 500) * SECOND_NS, zonal)
    energy = [0.5 * s[3:] @ s[3:] - _potential(s[:3], 0.0, 8, 0) for s in states]
    assert np.ptp(energy) < 1e-8
    assert np.ptp(np.cross(states[:, :3], states[:, 3:])[:, 2]) < 1e-5


def test_air_slows_sunlight_pushes_and_leaks_accelerate() -> None:
    at = np.array([T + 3000 * SECOND_NS])
    grazing = np.concatenate([0.905 * LOW[:3], 1.05 * LOW[3:]])
    calm = integrate(grazing, T, at, Forces())[0]

    def difference(**change: Any) -> FloatArray:
        moved: FloatArray = integrate(grazing, T, at, dataclasses.replace(Forces(), **change))[0] - calm
        return moved

    def energy(state: np.ndarray) -> float:
        return float(0.5 * state[3:] @ state[3:] - _potential(state[:3], 0.0, 2, 0))

    assert energy(calm + difference(drag_area_m2_kg=0.05)) < energy(calm) - 1e-4
    assert 1e-4 < np.linalg.norm(difference(reflective_area_m2_kg=1.0)[:3]) < 1.0
    leak = difference(own_km_s2=(1e-9, 0.0, 0.0))[:3]
    assert 1e-9 * 3000**2 / 4 < np.linalg.norm(leak) < 1e-9 * 3000**2 * 5


def test_the_moon_is_where_the_almanac_has_it() -> None:
    # Vallado, Fundamentals of Astrodynamics (4th ed.), example 5-3, itself good to 0.3 degrees.
    there = moon_km(parse_iso_ns("1994-04-28T00:00:00Z"))
    np.testing.assert_allclose(there, [-134_240.626, -311_571.590, -126_693.785], atol=2500)
