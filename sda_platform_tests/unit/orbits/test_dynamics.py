"""Numerical propagation: forces are what they claim to be, motion keeps what it must, partials are derivatives."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lpmv

from sda_platform.arrays import FloatArray
from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.gravity import GM_KM3_S2, RADIUS_KM, field, field_acceleration
from sda_platform.orbits.dynamics.numerical import Dynamics, in_threads, integrate
from sda_platform.orbits.earth_orientation import gcrf_of_teme, states_in_gcrf, teme_of_gcrf, to_gcrf
from sda_platform.orbits.frames import itrf_to_teme
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state

T = parse_iso_ns("2010-11-02T02:56:15.690Z")
LEAP_NS = parse_iso_ns("2015-07-01T00:00:00Z")
SECOND_NS = 10**9
LOW = np.array([-2000.0, 5500.0, 4300.0, -5.1, -4.4, 3.3])
FAR = np.array([250_000.0, 0.0, 0.0, 0.0, 1.2, 0.3])
HIGH = np.array([-40541.446, -9905.357, 206.777, 0.7590685, -1.4765156, 0.0547931])


def _potential(r: np.ndarray, degree: int, order: int) -> float:
    coefficients = field(degree, order)
    distance = float(np.linalg.norm(r))
    longitude = np.arctan2(r[1], r[0])
    total = 0.0
    for n in range(degree + 1):
        for m in range(min(n, order) + 1):
            legendre = lpmv(m, n, r[2] / distance) * (-1) ** m
            wave = coefficients.cosine[n, m] * np.cos(m * longitude) + coefficients.sine[n, m] * np.sin(m * longitude)
            total += (RADIUS_KM / distance) ** n * legendre * wave
    return GM_KM3_S2 / distance * total


@pytest.mark.parametrize(("degree", "order"), [(0, 0), (4, 0), (8, 8), (20, 20), (36, 36)])
def test_the_field_is_the_gradient_of_its_potential(degree: int, order: int) -> None:
    step = 0.05 * np.eye(3)
    gradient = [(_potential(LOW[:3] + d, degree, order) - _potential(LOW[:3] - d, degree, order)) / 0.1 for d in step]
    work = np.zeros((2, 40, 40))
    ours = field_acceleration(LOW[0], LOW[1], LOW[2], field(degree, order), work[0], work[1])
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
    np.testing.assert_allclose(integrate(there, later, np.array([T]), forces)[0, :3], HIGH[:3], atol=1e-2)


def test_the_angular_momentum_about_the_pole_is_kept_by_zonal_fields() -> None:
    zonal = Forces(8, 0, third_bodies=False)
    pole = np.linalg.inv(to_gcrf("TEME", np.array([T]))[0])[2]
    states = integrate(LOW, T, T + np.arange(0, 20_000, 500) * SECOND_NS, zonal)
    assert np.ptp(np.cross(states[:, :3], states[:, 3:]) @ pole) < 2e-3, "the pole itself moves by polar motion"


def test_air_slows_sunlight_pushes_and_leaks_accelerate() -> None:
    at = np.array([T + 3000 * SECOND_NS])
    grazing = np.concatenate([0.905 * LOW[:3], 1.05 * LOW[3:]])
    calm = integrate(grazing, T, at, Forces())[0]

    def difference(**change: Any) -> FloatArray:
        moved: FloatArray = integrate(grazing, T, at, dataclasses.replace(Forces(), **change))[0] - calm
        return moved

    def energy(state: np.ndarray) -> float:
        return float(0.5 * state[3:] @ state[3:] - _potential(state[:3], 2, 0))

    assert energy(calm + difference(drag_area_m2_kg=0.05)) < energy(calm) - 1e-4
    assert 1e-4 < np.linalg.norm(difference(reflective_area_m2_kg=1.0)[:3]) < 1.0
    leak = difference(own_km_s2=(1e-9, 0.0, 0.0))[:3]
    assert 1e-9 * 3000**2 / 4 < np.linalg.norm(leak) < 1e-9 * 3000**2 * 5


@pytest.mark.parametrize("start", [LOW, HIGH, np.array([-1800.0, 5100.0, 4100.0, -5.2, -4.6, 3.4])])
def test_partials_are_the_derivatives_of_the_motion(start: FloatArray) -> None:
    dynamics, coefficients = Dynamics(threads=1), np.array([[0.02, 0.02]])
    epoch, then = np.array([T]), np.array([T + 5400 * SECOND_NS])
    one = np.array([0])
    _, partials = dynamics.transitions(start[None], coefficients, epoch, one, then)
    for column, step in enumerate([1e-3] * 3 + [1e-6] * 3 + [2e-3] * 2):
        ends = []
        for sign in (1, -1):
            state, areas = start[None].copy(), coefficients.copy()
            if column < 6:
                state[0, column] += sign * step
            else:
                areas[0, column - 6] += sign * step
            ends.append(dynamics.transitions(state, areas, epoch, one, then)[0][0])
        numerical = (ends[0] - ends[1]) / (2 * step)
        off = np.linalg.norm(partials[0, :, column] - numerical)
        # Without the field above the flattening; shadow's edges move with the orbit.
        share = 1e-2 if column == 7 else 2e-3
        assert off < share * np.linalg.norm(numerical) + 1e-7, column


def test_between_steps_states_are_those_of_exact_steps() -> None:
    times = T + np.arange(60, 7200, 7)[None] * SECOND_NS
    dynamics, none, epoch = Dynamics(threads=1), np.zeros((1, 2)), np.array([T])
    between = dynamics.states(LOW[None], none, epoch, times)[0]
    exact = dynamics.transitions(LOW[None], none, epoch, np.zeros(len(times[0]), np.int64), times[0])[0]
    np.testing.assert_allclose(between[:, :3], exact[:, :3], atol=5e-6)


def test_results_depend_on_no_other_object_and_on_no_thread() -> None:
    rng = np.random.default_rng(1)
    starts = np.tile(LOW, (200, 1)) * (1 + 1e-3 * rng.normal(size=(200, 6)))
    areas, epoch = np.full((200, 2), 0.01), np.full(200, T)
    times = np.tile(T + np.array([600, 1200]) * SECOND_NS, (200, 1))
    alone = Dynamics(threads=1).states(starts, areas, epoch, times)
    assert np.array_equal(alone, Dynamics(threads=3).states(starts, areas, epoch, times))
    assert np.array_equal(alone[7:8], Dynamics().states(starts[7:8], areas[7:8], epoch[7:8], times[7:8]))


@given(st.data())
def test_results_depend_on_no_other_time(data: st.DataObject) -> None:
    """Any orbits at any times beside a leap second, before and after their epochs, in any order: equal to the bit."""
    offsets = st.integers(-90_000, 90_000) | st.integers(-400, 400)
    asked = data.draw(st.lists(st.tuples(st.integers(0, 3), offsets), min_size=1, max_size=12))
    starts, areas = np.array([LOW, HIGH, 1.02 * LOW, FAR]), np.full((4, 2), 0.02)
    epochs = LEAP_NS + np.array([0, 3600, -60, 86_399]) * SECOND_NS
    of = np.array([row for row, _ in asked])
    times = epochs[of] + np.array([offset for _, offset in asked]) * SECOND_NS
    dynamics = Dynamics(threads=data.draw(st.sampled_from([1, 3])))
    found = dynamics.transitions(starts, areas, epochs, of, times)
    states = dynamics.states(starts, areas, epochs, np.tile(times, (4, 1)))
    for number, row in enumerate(of):
        orbit = starts[row][None], areas[row][None], epochs[row][None]
        alone = Dynamics().transitions(*orbit, np.array([0]), times[number][None])
        assert np.array_equal(found[0][number], alone[0][0])
        assert np.array_equal(found[1][number], alone[1][0])
        assert np.array_equal(states[row, number], Dynamics().states(*orbit, times[number][None, None])[0, 0])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 25])
def test_threads_share_every_row_once(count: int, threads: int) -> None:
    done = [0] * count

    def carry_out(part: slice) -> None:
        for row in range(part.start, part.stop):
            done[row] += 1

    in_threads(carry_out, count, threads)
    assert done == [1] * count


def test_an_orbit_that_meets_the_ground_ends() -> None:
    falling = np.concatenate([LOW[:3], 0.8 * LOW[3:]])
    found = integrate(falling, T, T + np.array([60, 7200]) * SECOND_NS, Forces())
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()


def test_an_earth_fixed_point_is_the_same_by_teme_and_directly() -> None:
    time_ns = np.array([T, T + 40_000 * SECOND_NS])
    fixed = np.tile([4000.0, -3000.0, 3900.0], (2, 1))
    teme = np.hstack([itrf_to_teme(fixed, time_ns), np.zeros((2, 3))])
    expected, _ = states_in_gcrf("ITRF", fixed, np.zeros((2, 3)), time_ns)
    np.testing.assert_allclose(gcrf_of_teme(teme, time_ns)[:, :3], expected, atol=1e-6)
    back = teme_of_gcrf(gcrf_of_teme(teme, time_ns), time_ns)
    np.testing.assert_allclose(back, teme, atol=1e-9)
