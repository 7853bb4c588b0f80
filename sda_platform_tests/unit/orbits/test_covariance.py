"""Transport of covariances: the linear world agrees with the real one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.orbits.covariance import (
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
    root = np.random.default_rng(1).normal(size=(1, 6, 6))
    covariance = root @ root.swapaxes(1, 2)
    np.testing.assert_allclose(teme_to_rtn(rtn_to_teme(covariance, r, v), r, v), covariance, rtol=1e-12, atol=1e-13)
