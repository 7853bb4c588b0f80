"""Unperturbed elliptic motion: states and their state-transition matrices, many orbits at once.

It propagates small deviations along an SGP4 reference, which itself contains the perturbations. Open orbits give NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.orbits.small_matrices import along, dot, times, triple

MU_EARTH_KM3_S2 = 398600.8
"""WGS72, the value behind SGP4's mean motions."""

_KEPLER_ITERATIONS = 30


def orbital_period_s(r_km: npt.ArrayLike, v_km_s: npt.ArrayLike) -> FloatArray:
    """Periods (n,) of inertial states (n, 3); NaN for orbits that are not closed."""
    r, v = np.asarray(r_km, dtype=np.float64), np.asarray(v_km_s, dtype=np.float64)
    with np.errstate(all="ignore"):
        axis_km = 1 / (2 / np.linalg.norm(r, axis=-1) - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
        return np.asarray(2 * np.pi * np.sqrt(axis_km**3 / MU_EARTH_KM3_S2))


def two_body_state(r0_km: npt.ArrayLike, v0_km_s: npt.ArrayLike, dt_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """States (n, 3) km and (n, 3) km/s after ``dt_s`` (n,) or scalar seconds, from inertial states (n, 3)."""
    r0, v0, elapsed_s = _inputs(r0_km, v0_km_s, dt_s)
    f, g, f_dot, g_dot, _ = _lagrange_coefficients(r0, v0, elapsed_s).T[..., None]
    return f * r0 + g * v0, f_dot * r0 + g_dot * v0


def two_body_stm(r0_km: npt.ArrayLike, v0_km_s: npt.ArrayLike, dt_s: npt.ArrayLike) -> FloatArray:
    """State-transition matrices (n, 6, 6), km and km/s, over ``dt_s`` seconds from inertial states (n, 3).

    Source: Battin, An Introduction to the Mathematics and Methods of Astrodynamics (1999), eqs. 9.84-9.87.
    """
    return _transitions(*_inputs(r0_km, v0_km_s, dt_s))  # type: ignore[no-any-return]


@njit(cache=True, nogil=True, error_model="numpy")
def _lagrange_coefficients(r0: Any, v0: Any, elapsed_s: Any) -> Any:
    found = np.empty((len(r0), 5))
    for row in range(len(r0)):
        found[row] = _lagrange(triple(r0[row]), triple(v0[row]), elapsed_s[row])
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _transitions(r0: Any, v0: Any, elapsed_s: Any) -> Any:
    found = np.empty((len(r0), 6, 6))
    for row in range(len(r0)):
        _transition(triple(r0[row]), triple(v0[row]), elapsed_s[row], found[row])
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _transition(r0: Any, v0: Any, elapsed_s: float, stm: Any) -> None:
    mu = MU_EARTH_KM3_S2
    f, g, f_dot, g_dot, secular = _lagrange(r0, v0, elapsed_s)
    r, v = along(f, r0, times(g, v0)), along(f_dot, r0, times(g_dot, v0))
    dv, dr = along(-1.0, v0, v), along(-1.0, r0, r)
    r0_norm, r_norm = math.sqrt(dot(r0, r0)), math.sqrt(dot(r, r))
    for i in range(3):
        for j in range(3):
            unit = 1.0 if i == j else 0.0
            stm[i, j] = (
                r_norm / mu * dv[i] * dv[j]
                + (r0_norm * (1 - f) * r[i] * r0[j] + secular * v[i] * r0[j]) / r0_norm**3
                + f * unit
            )
            stm[i, 3 + j] = (
                r0_norm / mu * (1 - f) * (dr[i] * v0[j] - dv[i] * r0[j]) + secular / mu * v[i] * v0[j] + g * unit
            )
            # (r v' - v r') r dv' of the source, multiplied out.
            inner = unit - r[i] * r[j] / r_norm**2
            inner += (r[i] * dot(v, r) - v[i] * r_norm**2) * dv[j] / (mu * r_norm)
            stm[3 + i, j] = (
                -dv[i] * r0[j] / r0_norm**2
                - r[i] * dv[j] / r_norm**2
                + f_dot * inner
                - mu * secular / (r_norm**3 * r0_norm**3) * r[i] * r0[j]
            )
            stm[3 + i, 3 + j] = (
                r0_norm / mu * dv[i] * dv[j]
                + (r0_norm * (1 - f) * r[i] * r0[j] - secular * r[i] * v0[j]) / r_norm**3
                + g_dot * unit
            )


@njit(cache=True, nogil=True, error_model="numpy")
def _lagrange(r0: Any, v0: Any, elapsed_s: float) -> tuple[float, float, float, float, float]:
    """Lagrange's f, g, f_dot, g_dot and Battin's secular coefficient C; NaN for orbits that are not closed."""
    mu = MU_EARTH_KM3_S2
    r0_norm = math.sqrt(dot(r0, r0))
    axis = 1 / (2 / r0_norm - dot(v0, v0) / mu)
    if not axis > 0:
        axis = math.nan
    e_sin, e_cos = dot(r0, v0) / math.sqrt(mu * axis), 1 - r0_norm / axis
    step = _eccentric_anomaly_step(e_cos, e_sin, math.sqrt(mu / axis**3) * elapsed_s)
    chi, cosine, sine = math.sqrt(axis) * step, math.cos(step), math.sin(step)
    # Battin's universal functions, closed forms for an ellipse (alpha = 1 / a).
    u1, u2 = math.sqrt(axis) * sine, axis * (1 - cosine)
    u3 = axis * (chi - u1)
    u4 = axis * (chi**2 / 2 - u2)
    u5 = axis * (chi**3 / 6 - u3)
    r_norm = axis * (1 - e_cos * cosine + e_sin * sine)
    secular = (3 * u5 - chi * u4) / math.sqrt(mu) - elapsed_s * u2
    f_dot = -math.sqrt(mu) * u1 / (r_norm * r0_norm)
    return 1 - u2 / r0_norm, elapsed_s - u3 / math.sqrt(mu), f_dot, 1 - u2 / r_norm, secular


@njit(cache=True, nogil=True, error_model="numpy")
def _eccentric_anomaly_step(e_cos: float, e_sin: float, mean_step: float) -> Any:
    """Change of eccentric anomaly over a change of mean anomaly, rad, any number of revolutions."""
    eccentricity = math.hypot(e_cos, e_sin)
    start = math.atan2(e_sin, e_cos)
    mean = start - e_sin + mean_step
    turns = 2 * math.pi * np.round(mean / (2 * math.pi))
    reduced = mean - turns
    # From +-pi Newton converges for every eccentricity below one; rounder orbits start near their answer.
    anomaly = reduced + eccentricity * math.sin(reduced) if eccentricity < 0.8 else math.copysign(math.pi, reduced)
    for _ in range(_KEPLER_ITERATIONS):
        change = (anomaly - eccentricity * math.sin(anomaly) - reduced) / (1 - eccentricity * math.cos(anomaly))
        anomaly -= change
        if not abs(change) > 1e-15 * max(1.0, abs(anomaly)):
            break
    return anomaly + turns - start


def _inputs(
    r0_km: npt.ArrayLike, v0_km_s: npt.ArrayLike, dt_s: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r0 = np.atleast_2d(np.asarray(r0_km, dtype=np.float64))
    v0 = np.atleast_2d(np.asarray(v0_km_s, dtype=np.float64))
    return r0, v0, np.broadcast_to(np.asarray(dt_s, dtype=np.float64), (len(r0),))
