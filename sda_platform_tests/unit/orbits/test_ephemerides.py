"""Ephemerides between their states: interpolation against SGP4, and frames against each other."""

from functools import cache

import numpy as np
import pytest
from scipy.interpolate import KroghInterpolator

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits.covariance import rtn_to_teme, transport
from sda_platform.orbits.earth_orientation import (
    FRAMES,
    covariances_in_teme,
    in_gcrf,
    states_in_gcrf,
    states_in_teme,
    to_gcrf,
)
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.ephemerides import Ephemeris, covariances_from_lower, nodes_around, states_at
from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.units import SECOND_NS

START_NS = 1_730_419_200 * SECOND_NS


@cache
def propagator() -> Propagator:
    lines = reference_catalogue().splitlines()
    iss = [line for line in lines if b",25544," in line or b"NORAD_CAT_ID" in line]
    table = decode_element_sets(b"\n".join(iss), segment_format="omm-csv")
    return Propagator(ElementSets.from_columns({name: table[name].to_numpy() for name in ELEMENT_COLUMNS}))


def iss(time_ns: IntArray) -> FloatArray:
    _, r, v = propagator().at(np.zeros(len(time_ns), np.int64), time_ns)
    return np.concatenate([r, v], axis=1)


@pytest.mark.parametrize(("spacing_s", "position_m", "velocity_mm_s"), [(60, 1, 50), (240, 5, 100)])
def test_states_between_those_of_an_ephemeris_are_those_of_its_orbit(
    spacing_s: int, position_m: float, velocity_mm_s: float
) -> None:
    """A low orbit, with states each minute, as operators send them, and each four minutes.

    SGP4's velocities are not exactly the derivatives of its positions, which bounds the agreement.
    """
    epochs = START_NS + np.arange(0, 5400, spacing_s) * SECOND_NS
    times = START_NS + np.arange(0, epochs[-1] - START_NS, 7_700_000_000)
    error = np.abs(states_at(epochs, iss(epochs), times) - iss(times))
    assert error[:, :3].max() * 1e3 < position_m
    assert error[:, 3:].max() * 1e6 < velocity_mm_s


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 40])
def test_curves_through_states_at_any_intervals_are_those_of_scipy(count: int) -> None:
    random = np.random.default_rng(count)
    epochs = START_NS + np.sort(random.choice(5400, count, replace=False)) * SECOND_NS
    states = iss(epochs)
    times = np.sort(random.integers(epochs[0], epochs[-1] + 1, 60))
    first, points = nodes_around(np.searchsorted(epochs, times, side="right"), count)
    for time_ns, begin in zip(times.tolist(), first.tolist(), strict=True):
        chosen = slice(begin, begin + points)
        knots_s = np.repeat((epochs[chosen] - epochs[begin]) / SECOND_NS, 2)
        curve, at_s = KroghInterpolator(knots_s, states[chosen].reshape(-1, 3)), (time_ns - epochs[begin]) / SECOND_NS
        expected = np.concatenate([curve(at_s), curve.derivative(at_s)])
        found = states_at(epochs, states, np.array([time_ns]))[0]
        # Far from near states a curve is steep, and rounding grows with it.
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_an_ephemeris_holds_at_its_own_epochs_and_nowhere_outside() -> None:
    epochs = START_NS + np.array([0, 60, 120]) * SECOND_NS
    states = iss(epochs)
    np.testing.assert_allclose(states_at(epochs, states, epochs), states, rtol=1e-12)
    outside = np.array([START_NS - 1, epochs[-1] + 1])
    assert np.isnan(states_at(epochs, states, outside)).all()
    single = states_at(epochs[:1], states[:1], epochs)
    np.testing.assert_allclose(single[0], states[0])
    assert np.isnan(single[1:]).all()


@pytest.mark.parametrize("frame", FRAMES)
def test_states_of_any_frame_in_teme_are_the_same_orbit(frame: str) -> None:
    """Distances and energies are those of one orbit, and many states at once equal one at a time."""
    times = START_NS + np.arange(5) * 600 * SECOND_NS
    teme = iss(times)
    back = to_gcrf(frame, times).swapaxes(1, 2) @ to_gcrf("TEME", times)
    r = np.einsum("nij,nj->ni", back, teme[:, :3])
    v = np.einsum("nij,nj->ni", back, teme[:, 3:])
    if frame == "ITRF":
        at_rest = states_in_gcrf("ITRF", r, np.zeros_like(r), times)[1]
        v -= np.einsum("nij,nj->ni", to_gcrf("ITRF", times).swapaxes(1, 2), at_rest)
    got_r, got_v = states_in_teme(frame, r, v, times)
    np.testing.assert_allclose(got_r, teme[:, :3], atol=1e-9)
    np.testing.assert_allclose(got_v, teme[:, 3:], atol=1e-12)
    for row in range(5):
        one = in_gcrf(frame, r[row], v[row], int(times[row]))
        many = states_in_gcrf(frame, r, v, times)
        np.testing.assert_allclose(one[0], many[0][row], atol=1e-9)
        np.testing.assert_allclose(one[1], many[1][row], atol=1e-12)


@pytest.mark.parametrize("frame", FRAMES)
def test_covariances_of_any_frame_are_those_of_the_states_in_teme(frame: str) -> None:
    """The linear map of states is that of their errors, the turning of ITRF included."""
    dice, times = np.random.default_rng(1), START_NS + np.arange(3) * 600 * SECOND_NS
    roots = dice.normal(size=(3, 6, 6))
    covariance = roots @ roots.swapaxes(1, 2)
    whole = np.empty((3, 6, 6))
    for column in range(6):
        unit = np.zeros((3, 6))
        unit[:, column] = 1.0
        whole[:, :, column] = np.hstack(states_in_teme(frame, unit[:, :3], unit[:, 3:], times))
    expected = whole @ covariance @ whole.swapaxes(1, 2)
    np.testing.assert_allclose(covariances_in_teme(frame, covariance, times), expected, rtol=1e-9, atol=1e-12)


def test_covariances_are_read_from_their_lower_triangles() -> None:
    covariance = np.random.default_rng(1).normal(size=(3, 6, 6))
    lower = covariance[:, np.tril_indices(6)[0], np.tril_indices(6)[1]]
    full = np.tril(covariance) + np.tril(covariance, -1).swapaxes(1, 2)
    np.testing.assert_array_equal(covariances_from_lower(lower), full)


def covariances_along(epochs: IntArray) -> FloatArray:
    """A covariance at the first epoch carried along the orbit to all of them."""
    states = iss(epochs)
    sigma = np.diag(np.array([0.1, 0.3, 0.1, 3e-4, 1e-4, 1e-4]) ** 2)
    start = np.repeat(states[:1], len(epochs), axis=0)
    at_start = rtn_to_teme(np.repeat(sigma[None], len(epochs), axis=0), start[:, :3], start[:, 3:])
    elapsed_s = (epochs - epochs[0]) / SECOND_NS
    return transport(np.zeros((len(epochs), 6)), at_start, start[:, :3], start[:, 3:], elapsed_s)[1]


def ephemeris_of(epochs: IntArray, covariance_epochs: IntArray) -> Ephemeris:
    covariances = covariances_along(np.concatenate([epochs[:1], covariance_epochs]))[1:]
    return Ephemeris(epochs, iss(epochs), covariance_epochs, covariances, int(epochs[0]), int(epochs[-1]))


def test_covariances_between_those_of_an_ephemeris_follow_the_orbit() -> None:
    epochs = START_NS + np.arange(0, 3600, 60) * SECOND_NS
    ephemeris = ephemeris_of(epochs, epochs)
    np.testing.assert_allclose(ephemeris.at(epochs)[1], ephemeris.covariance, rtol=1e-6, atol=1e-12)
    between = epochs[:-1] + 30 * SECOND_NS
    truth = covariances_along(np.concatenate([epochs[:1], between]))[1:]
    found = ephemeris.at(between)[1]
    sigmas, true = (np.sqrt(np.einsum("nii->ni", each)[:, :3]) for each in (found, truth))
    np.testing.assert_allclose(sigmas, true, rtol=0.02)
    assert (np.linalg.eigvalsh(found) > -1e-15).all()


def test_a_single_covariance_is_carried_along_the_orbit_and_grows() -> None:
    epochs = START_NS + np.arange(0, 3600, 60) * SECOND_NS
    ephemeris = ephemeris_of(epochs, epochs[:1])
    sigma_km = np.sqrt(np.einsum("nii->n", ephemeris.at(epochs)[1][:, :3, :3]))
    truth_km = np.sqrt(np.einsum("nii->n", covariances_along(epochs)[:, :3, :3]))
    assert (sigma_km >= truth_km * (1 - 1e-9)).all()
    np.testing.assert_allclose(sigma_km, truth_km, rtol=0.1)


def test_an_ephemeris_is_used_within_its_usable_span_only_and_without_covariances_has_none() -> None:
    epochs = START_NS + np.arange(0, 600, 60) * SECOND_NS
    bare = Ephemeris(epochs, iss(epochs), epochs[:0], np.zeros((0, 6, 6)), int(epochs[2]), int(epochs[5]))
    state, covariance = bare.at(epochs)
    assert np.isfinite(state).all(axis=1).tolist() == [2 <= n <= 5 for n in range(10)]
    assert np.isnan(covariance).all()
