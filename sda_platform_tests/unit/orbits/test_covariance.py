"""The prior and its transport: what is documented holds, and the linear world agrees with the real one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.orbits.covariance import (
    GEO,
    LEO,
    prior_covariance_rtn,
    rtn_to_teme,
    teme_to_rtn,
    transport,
)
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state, two_body_stm

State = tuple[np.ndarray, np.ndarray]


def state(perigee_km: float, eccentricity: float, tilt: float, node: float, dt_s: float) -> State:
    """An orbit through its perigee, turned, and moved along for dt_s."""
    speed = np.sqrt(MU_EARTH_KM3_S2 / perigee_km * (1 + eccentricity))
    turn_x = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    turn_z = np.array([[np.cos(node), -np.sin(node), 0], [np.sin(node), np.cos(node), 0], [0, 0, 1]])
    turn = turn_z @ turn_x
    r, v = two_body_state(turn @ [perigee_km, 0.0, 0.0], turn @ [0.0, speed, 0.0], dt_s)
    return r[0], v[0]


states = st.builds(
    state,
    st.floats(6500, 45000),
    st.floats(0, 0.9),
    st.floats(0, np.pi),
    st.floats(0, 2 * np.pi),
    st.floats(-1e5, 1e5),
)


def circular(radius_km: float) -> State:
    return state(radius_km, 0.0, 1.0, 2.0, 1234.0)


def energy_gradient(r: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.concatenate([MU_EARTH_KM3_S2 * r / np.linalg.norm(r) ** 3, v])


@settings(max_examples=60, deadline=None)
@given(orbit=states, age=st.floats(0, 60))
def test_prior_is_symmetric_and_positive_for_every_orbit_and_age(orbit: State, age: float) -> None:
    covariance = prior_covariance_rtn(*orbit, age)[0]
    np.testing.assert_array_equal(covariance, covariance.T)
    scale = np.sqrt(np.diag(covariance))
    assert np.all(scale > 0)
    assert np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() > -1e-12


@pytest.mark.parametrize("age", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(("radius_km", "regime"), [(6878.0, LEO), (7378.0, LEO), (42164.0, GEO)])
def test_position_sigmas_on_a_circular_orbit_are_the_documented_ones(radius_km, regime, age) -> None:  # type: ignore[no-untyped-def]
    r, v = circular(radius_km)
    sigma_km = np.sqrt(np.diag(prior_covariance_rtn(r, v, age)[0]))[:3]
    expected = [
        regime.radial_km + regime.radial_growth_km_per_day * age,
        regime.transverse_km + regime.transverse_growth_km_per_day * age,
        regime.normal_km,
    ]
    np.testing.assert_allclose(sigma_km, expected, rtol=4e-3)


def test_leo_prior_is_the_published_176_695_168_metres_growing_125_and_392_a_day() -> None:
    sigma_m = 1000 * np.sqrt(np.diagonal(prior_covariance_rtn(*circular(7000.0), 0.0)[0]))[:3]
    np.testing.assert_allclose(sigma_m, [176, 695, 168], atol=0.5)
    sigma_m = 1000 * np.sqrt(np.diagonal(prior_covariance_rtn(*circular(7000.0), 1.0)[0]))[:3]
    np.testing.assert_allclose(sigma_m, [301, 1087, 168], atol=0.5)


@settings(max_examples=40, deadline=None)
@given(orbit=states, age=st.floats(0, 30))
def test_energy_error_is_that_of_the_semi_major_axis_alone(orbit: State, age: float) -> None:
    r, v = orbit
    covariance = rtn_to_teme(prior_covariance_rtn(r, v, age), r, v)[0]
    gradient = energy_gradient(r, v)
    axis_km = 1 / (2 / np.linalg.norm(r) - v @ v / MU_EARTH_KM3_S2)
    axis_sigma_km = np.sqrt(gradient @ covariance @ gradient) * 2 * axis_km**2 / MU_EARTH_KM3_S2
    drift_km_per_day = 1.5 * np.sqrt(MU_EARTH_KM3_S2 / axis_km**3) * axis_sigma_km * 86400
    assert min(abs(drift_km_per_day - growth) for growth in (0.392, 0.25, 0.3, 1.0)) < 1e-2


def test_a_prior_propagated_one_day_drifts_by_its_axis_error() -> None:
    r, v = circular(7000.0)
    start = rtn_to_teme(prior_covariance_rtn(r, v, 0.0), r, v)
    _, later = transport(np.zeros((1, 6)), start, r, v, 86400.0)
    end = two_body_state(r, v, 86400.0)
    sigma_km = np.sqrt(np.diagonal(teme_to_rtn(later, *end)[0]))[:3]
    # Independent parts add in squares: 695 m at the start, 392 m of drift; the radial error only turns round.
    np.testing.assert_allclose(sigma_km, [0.176, np.hypot(0.695, 0.392), 0.168], rtol=5e-3)


@settings(max_examples=40, deadline=None)
@given(orbit=states, dt_s=st.floats(-90000, 90000), seed=st.integers(0, 1000))
def test_transport_of_a_deviation_agrees_with_two_nonlinear_orbits(orbit: State, dt_s: float, seed: int) -> None:
    r, v = orbit
    deviation = np.random.default_rng(seed).normal(size=6) * np.array([1e-5] * 3 + [1e-8] * 3)
    moved, _ = transport(deviation, np.eye(6)[None], r, v, dt_s)
    plus = np.concatenate(two_body_state(r + deviation[:3], v + deviation[3:], dt_s), axis=1)
    minus = np.concatenate(two_body_state(r - deviation[:3], v - deviation[3:], dt_s), axis=1)
    difference = (plus - minus)[0] / 2
    tolerance = 1e-4 * float(np.linalg.norm(difference[:3])) + 1e-9
    np.testing.assert_allclose(moved[0, :3], difference[:3], rtol=0, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(orbit=states, dt_s=st.floats(-90000, 90000))
def test_transition_matrix_keeps_volume_and_inverts_itself(orbit: State, dt_s: float) -> None:
    r, v = orbit
    there = two_body_stm(r, v, dt_s)[0]
    end = two_body_state(r, v, dt_s)
    back = two_body_stm(end[0], end[1], -dt_s)[0]
    scale = np.array([1.0] * 3 + [1e3] * 3)
    there, back = (matrix * scale[:, None] / scale for matrix in (there, back))
    size = np.abs(there).max() * np.abs(back).max()
    np.testing.assert_allclose(back @ there, np.eye(6), rtol=0, atol=1e-11 * size + 1e-9)


def test_rotation_to_teme_and_back_changes_nothing() -> None:
    r, v = circular(7000.0)
    prior = prior_covariance_rtn(r, v, 2.0)
    np.testing.assert_allclose(teme_to_rtn(rtn_to_teme(prior, r, v), r, v), prior, rtol=1e-12, atol=1e-15)


def test_an_open_orbit_gives_nan_not_a_number_to_trust() -> None:
    assert np.isnan(prior_covariance_rtn([[7000.0, 0, 0]], [[0, 12.0, 0]], 1.0)).all()
