"""A real arc, and a made one: the fit converges to the published orbit as far as the data carry it."""

import dataclasses

import numpy as np
import pytest

from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.sensing.light import echo_range_km, seen_state
from sda_platform.orbits.sensing.troposphere import delay_km, refraction_rad
from sda_platform_tests.support import w3b
from sda_platform_tests.support.arc_fit import fit_arc


def test_real_ranges_of_w3b_are_met_to_four_metres_and_the_orbit_is_the_published_one() -> None:
    found = w3b.fit(w3b.SUNLIT, own_accelerations=True)
    assert found.converged
    assert found.used[:, 0].sum() == 182
    assert found.used[:, 1].sum() == 339
    # The published solution's range residuals scatter by 4.37 m.
    assert w3b.range_sigma_m(found) < 4.4
    formal_km = float(np.sqrt(np.trace(found.covariance[:3, :3])))
    assert w3b.distance_from_published_km(found) < 0.35 < formal_km
    # Published range biases (with the transponder's 5,969 m): what two solutions of one arc may differ by.
    published_m = 5969.0 + np.array([13467.8, 13512.5, 13450.2, 13594.2, 11274.4])
    np.testing.assert_allclose(found.bias[:, 0] * 1000, published_m, atol=50)


def test_simulated_observations_give_back_orbit_and_biases() -> None:
    measurements, station, _ = w3b.readings()
    forces = Forces(4, 4, own_km_s2=(3e-9, -2e-9, 1e-9), own_rate_km_s3=(1e-13, 0.0, -1e-13))
    truth = w3b.in_gcrf(w3b.PUBLISHED)
    states = integrate(truth, w3b.EPOCH_NS, measurements.time_ns, forces)
    seen = seen_state(states[:, :3], states[:, 3:], measurements.site_km)[0]
    line = seen - measurements.site_km
    bias_km = np.array([19.4, 19.5, 19.4, 19.6, 17.2])
    value = np.zeros_like(measurements.value)
    value[:, 0] = echo_range_km(seen, measurements.site_km, measurements.site_km_s) + bias_km[station]
    made = dataclasses.replace(measurements, value=value, direction=line / np.linalg.norm(line, axis=1, keepdims=True))
    found = fit_arc(made, station, w3b.in_gcrf(w3b.FIRST_GUESS), w3b.EPOCH_NS, forces)
    assert found.converged and found.used.sum() == 182 + 2 * 339
    np.testing.assert_allclose(found.bias, np.stack([bias_km, 0 * bias_km, 0 * bias_km], axis=1), atol=1e-6)
    np.testing.assert_allclose(found.state[:3], truth[:3], atol=1e-4)


def test_air_lengthens_ranges_and_lifts_what_is_low() -> None:
    elevation = np.radians([90.0, 30.0, 10.0])
    np.testing.assert_allclose(delay_km(elevation, 0.0) * 1000, [2.4, 4.8, 13.4], rtol=0.02)
    np.testing.assert_allclose(np.degrees(refraction_rad(elevation[1:], 0.0)) * 60, [1.7, 5.3], atol=0.1)
    assert delay_km(elevation[0], 8000.0) == pytest.approx(2.4e-3 / np.e, rel=0.02)
