"""Uncertain orbits as equinoctial elements, in which a covariance stays Gaussian.

A covariance that is an ellipsoid in position and velocity bends along the orbit within minutes. In these elements
two-body motion only adds ``n t`` to the mean longitude, so that it stays an ellipsoid for days. Each orbit's elements
refer to its own radial, transverse and normal axes at the reference time, so that only the straight line is singular.

Equinoctial elements have no singularity at round or equatorial orbits: mean motion (rad/s), e sin(w + W), e cos(w +
W), tan(i/2) sin W, tan(i/2) cos W, mean longitude M + w + W (rad). Only an inclination of 180 degrees is excluded.
Uncertain orbits have e cos before e sin (f, g: along R and T). For published covariances that are not positive
definite, results depend on that order.

Source: Broucke & Cefola, Celestial Mechanics 5 (1972); Vallado (4th ed.), section 2.4.3.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

# Of central differences, relative to distance and speed.
_DIFFERENCE = 1e-6
_KEPLER_STEPS, _KEPLER_RAD = 12, 1e-14


@dataclasses.dataclass(frozen=True, eq=False)
class UncertainOrbit:
    """One orbit at the reference time: mean elements (6,), their covariance (6, 6), axes (3, 3) with rows R, T, N."""

    elements: FloatArray
    covariance: FloatArray
    axes: FloatArray


def equinoctial(r_km: npt.ArrayLike, v_km_s: npt.ArrayLike) -> FloatArray:
    """Osculating equinoctial elements (n, 6) of inertial states (n, 3), (n, 3); NaN where the orbit is not closed."""
    r, v = np.atleast_2d(np.asarray(r_km, dtype=np.float64)), np.atleast_2d(np.asarray(v_km_s, dtype=np.float64))
    with np.errstate(all="ignore"):
        distance = np.linalg.norm(r, axis=1)
        momentum = np.cross(r, v)
        axis_km = 1.0 / (2.0 / distance - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
        axis_km = np.where(axis_km > 0, axis_km, np.nan)
        eccentric = np.cross(v, momentum) / MU_EARTH_KM3_S2 - r / distance[:, None]
        upright = np.linalg.norm(momentum, axis=1) + momentum[:, 2]
        p, q = momentum[:, 0] / upright, -momentum[:, 1] / upright
        f, g = plane_axes(p, q)
        h, k = np.einsum("ni,ni->n", eccentric, g), np.einsum("ni,ni->n", eccentric, f)
        x, y = np.einsum("ni,ni->n", r, f), np.einsum("ni,ni->n", r, g)
        perigee, eccentricity = np.arctan2(h, k), np.hypot(h, k)
        half = (np.arctan2(y, x) - perigee) / 2
        anomaly = 2 * np.arctan2(np.sqrt(1 - eccentricity) * np.sin(half), np.sqrt(1 + eccentricity) * np.cos(half))
        longitude = perigee + anomaly - eccentricity * np.sin(anomaly)
        elements = np.stack([np.sqrt(MU_EARTH_KM3_S2 / axis_km**3), h, k, p, q, longitude], axis=1)
    return np.where(np.isfinite(axis_km)[:, None], elements, np.nan)


def equinoctial_covariance(state: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Elements (n, 6) as `equinoctial` of states (n, 6), km and km/s, and their covariances (n, 6, 6)."""
    scale = np.repeat([np.linalg.norm(state[:, :3], axis=1), np.linalg.norm(state[:, 3:], axis=1)], 3, axis=0).T
    partials = np.empty((len(state), 6, 6))
    for number in range(6):
        step = np.zeros_like(state)
        step[:, number] = _DIFFERENCE * scale[:, number]
        ahead, behind = state + step, state - step
        change = equinoctial(ahead[:, :3], ahead[:, 3:]) - equinoctial(behind[:, :3], behind[:, 3:])
        change[:, 5] = (change[:, 5] + np.pi) % (2 * np.pi) - np.pi
        partials[:, :, number] = change / (2 * step[:, number, None])
    return equinoctial(state[:, :3], state[:, 3:]), partials @ covariance @ partials.swapaxes(1, 2)


def uncertain_orbit(r_km: npt.ArrayLike, v_km_s: npt.ArrayLike, covariance: npt.ArrayLike) -> UncertainOrbit:
    """Convert an inertial state (3,), (3,) and its covariance (6, 6), km and km/s, to equinoctial elements.

    Raises ValueError for a state that is on no closed orbit.
    """
    r, v = np.asarray(r_km, dtype=np.float64), np.asarray(v_km_s, dtype=np.float64)
    axes = rtn_basis(r, v)
    elements = _elements_in_own_axes(axes @ r, axes @ v)
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = axes
    _, jacobian = states_in_own_axes(elements[None], np.zeros(1))
    inverse = np.linalg.inv(jacobian[0]) @ turn
    in_elements = inverse @ np.asarray(covariance, dtype=np.float64) @ inverse.T
    root = square_root(in_elements)
    return UncertainOrbit(elements, root @ root.T, axes)


def square_root(covariance: FloatArray) -> FloatArray:
    """A matrix (6, 6) whose product with its transpose is ``covariance``, negative eigenvalues set to zero.

    The variances are scaled to one first.
    """
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 1e-60))
    value, vector = np.linalg.eigh(0.5 * (covariance + covariance.T) / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vector * np.sqrt(np.maximum(value, 0.0)))


def states_at(orbit: UncertainOrbit, elements: FloatArray, dt_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """States (n, 6), km and km/s, of ``elements`` (n, 6) ``dt_s`` (n,) after the reference, and d(state)/d(elements).

    In the inertial frame that the orbit was given in; the derivatives are (n, 6, 6).
    """
    states, jacobian = states_in_own_axes(elements, dt_s)
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = orbit.axes.T
    return states @ turn.T, turn @ jacobian


def states_in_own_axes(elements: FloatArray, dt_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute states as ``states_at``, in the axes of the elements."""
    states, slopes = np.empty((len(elements), 6)), np.empty((len(elements), 6, 6))
    _move(np.ascontiguousarray(elements), np.ascontiguousarray(dt_s, dtype=np.float64), states, slopes)
    return states, slopes


@njit(cache=True, nogil=True, error_model="numpy")
def _move(elements: Any, dt_s: Any, states: Any, slopes: Any) -> None:
    for row in range(len(elements)):
        move(elements[row], dt_s[row], states[row], slopes[row])


@njit(cache=True, nogil=True, error_model="numpy")
def move(elements: Any, dt_s: float, state: Any, slopes: Any) -> None:
    """Fill in the state (6,) and its derivatives (6, 6) of one orbit, as `states_in_own_axes` for many; compiled."""
    plane, turned = np.empty(4), np.empty((4, 4))
    _, _, _, p, q, _ = elements
    _in_plane(elements, dt_s, plane, turned)
    size = 1 + p * p + q * q
    first = np.array([1 - p * p + q * q, 2 * p * q, -2 * p]) / size
    second = np.array([2 * p * q, 1 + p * p - q * q, 2 * q]) / size
    first_p = (np.array([-2 * p, 2 * q, -2.0]) - 2 * p * first) / size
    first_q = (np.array([2 * q, 2 * p, 0.0]) - 2 * q * first) / size
    second_p = (np.array([2 * q, 2 * p, 0.0]) - 2 * p * second) / size
    second_q = (np.array([2 * p, -2 * q, 2.0]) - 2 * q * second) / size
    for half in range(2):
        x, y = plane[2 * half], plane[2 * half + 1]
        for axis in range(3):
            place = 3 * half + axis
            state[place] = x * first[axis] + y * second[axis]
            slopes[place, 3] = x * first_p[axis] + y * second_p[axis]
            slopes[place, 4] = x * first_q[axis] + y * second_q[axis]
            for number, column in enumerate((0, 1, 2, 5)):
                x_slope, y_slope = turned[2 * half, number], turned[2 * half + 1, number]
                slopes[place, column] = x_slope * first[axis] + y_slope * second[axis]


@njit(cache=True, nogil=True, error_model="numpy")
def _in_plane(elements: Any, dt_s: float, plane: Any, slopes: Any) -> None:
    """Fill in x, y and their rates in the orbit's plane (4,), and their derivatives by n, f, g and longitude (4, 4)."""
    n, f, g, _, _, longitude = elements
    eccentric = _eccentric_longitude(longitude + n * dt_s, f, g)
    cosine, sine = np.cos(eccentric), np.sin(eccentric)
    axis = (MU_EARTH_KM3_S2 / n**2) ** (1 / 3)
    root = np.sqrt(1 - f * f - g * g)
    b = 1 / (1 + root)
    b_f, b_g = b * b * f / root, b * b * g / root
    near = 1 - f * cosine - g * sine
    # x = axis u and y = axis v; u' and v' are their derivatives by the eccentric longitude, whose rate is n / near.
    u, v = (1 - g * g * b) * cosine + f * g * b * sine - f, (1 - f * f * b) * sine + f * g * b * cosine - g
    u_rate, v_rate = f * g * b * cosine - (1 - g * g * b) * sine, (1 - f * f * b) * cosine - f * g * b * sine
    rate = n / near
    plane[0], plane[1] = axis * u, axis * v
    plane[2], plane[3] = axis * rate * u_rate, axis * rate * v_rate
    mixed_f, mixed_g = g * b + f * g * b_f, f * b + f * g * b_g
    for number in range(4):
        # Of each element: the change of the eccentric longitude (Kepler's equation), and what changes beside it.
        turn, near_fixed, axis_change, n_change = 1.0 / near, 0.0, 0.0, 0.0
        u_fixed = v_fixed = u_rate_fixed = v_rate_fixed = 0.0
        if number == 0:
            turn, axis_change, n_change = dt_s / near, -2 * axis / (3 * n), 1.0
        elif number == 1:
            turn, near_fixed = sine / near, -cosine
            u_fixed = -g * g * b_f * cosine + mixed_f * sine - 1
            v_fixed = -(2 * f * b + f * f * b_f) * sine + mixed_f * cosine
            u_rate_fixed = mixed_f * cosine + g * g * b_f * sine
            v_rate_fixed = -(2 * f * b + f * f * b_f) * cosine - mixed_f * sine
        elif number == 2:
            turn, near_fixed = -cosine / near, -sine
            u_fixed = -(2 * g * b + g * g * b_g) * cosine + mixed_g * sine
            v_fixed = -f * f * b_g * sine + mixed_g * cosine - 1
            u_rate_fixed = mixed_g * cosine + (2 * g * b + g * g * b_g) * sine
            v_rate_fixed = -f * f * b_g * cosine - mixed_g * sine
        near_change = near_fixed + (f * sine - g * cosine) * turn
        rate_change = (n_change - rate * near_change) / near
        u_change, v_change = u_fixed + u_rate * turn, v_fixed + v_rate * turn
        u_rate_change, v_rate_change = u_rate_fixed - (u + f) * turn, v_rate_fixed - (v + g) * turn
        scale = axis_change * rate + axis * rate_change
        slopes[0, number] = axis_change * u + axis * u_change
        slopes[1, number] = axis_change * v + axis * v_change
        slopes[2, number] = scale * u_rate + axis * rate * u_rate_change
        slopes[3, number] = scale * v_rate + axis * rate * v_rate_change


@njit(cache=True, nogil=True, error_model="numpy")
def _eccentric_longitude(mean: float, f: float, g: float) -> float:
    """The solution of Kepler's equation by Newton's method, as far as it converges."""
    eccentric = mean
    for _ in range(_KEPLER_STEPS):
        cosine, sine = np.cos(eccentric), np.sin(eccentric)
        step = (eccentric + g * cosine - f * sine - mean) / (1 - g * sine - f * cosine)
        eccentric -= step
        if abs(step) < _KEPLER_RAD * (1 + abs(eccentric)):
            break
    return float(eccentric)


def plane_axes(p: npt.NDArray[Any], q: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the two equinoctial axes in the orbit's plane, (..., 3) each."""
    size = (1 + p**2 + q**2)[..., None]
    first = np.stack([1 - p**2 + q**2, 2 * p * q, -2 * p], axis=-1) / size
    second = np.stack([2 * p * q, 1 + p**2 - q**2, 2 * q], axis=-1) / size
    return first, second


def _elements_in_own_axes(r: FloatArray, v: FloatArray) -> FloatArray:
    """Elements of a state that lies in the plane of the first two axes, on the first."""
    energy = v @ v / 2 - MU_EARTH_KM3_S2 / r[0]
    if not energy < 0:
        raise ValueError("the state is on no closed orbit")
    axis = -MU_EARTH_KM3_S2 / (2 * energy)
    f = v[1] ** 2 * r[0] / MU_EARTH_KM3_S2 - 1
    g = -v[0] * v[1] * r[0] / MU_EARTH_KM3_S2
    root = np.sqrt(1 - f * f - g * g)
    b = 1 / (1 + root)
    cosine = f + ((1 - f * f * b) * r[0]) / (axis * root)
    sine = g - f * g * b * r[0] / (axis * root)
    eccentric = np.arctan2(sine, cosine)
    longitude = eccentric + g * np.cos(eccentric) - f * np.sin(eccentric)
    return np.array([np.sqrt(MU_EARTH_KM3_S2 / axis**3), f, g, 0.0, 0.0, longitude])
