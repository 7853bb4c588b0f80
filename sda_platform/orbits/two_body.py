"""Unperturbed elliptic motion: states and their state-transition matrices, many orbits at once.

Used to carry small deviations along an SGP4 reference, where the reference itself holds the perturbations.
No perturbations, no open orbits (those rows come back as NaN).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray

MU_EARTH_KM3_S2 = 398600.8
"""WGS72, the value SGP4's mean motions are built on."""

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
    f, g, f_dot, g_dot = _lagrange(r0, v0, elapsed_s)[:4]
    return f[:, None] * r0 + g[:, None] * v0, f_dot[:, None] * r0 + g_dot[:, None] * v0


def two_body_stm(r0_km: npt.ArrayLike, v0_km_s: npt.ArrayLike, dt_s: npt.ArrayLike) -> FloatArray:
    """State-transition matrices (n, 6, 6), km and km/s, over ``dt_s`` seconds from inertial states (n, 3).

    Source: Battin, An Introduction to the Mathematics and Methods of Astrodynamics (1999), eqs. 9.84-9.87.
    """
    r0, v0, elapsed_s = _inputs(r0_km, v0_km_s, dt_s)
    f, g, f_dot, g_dot, secular = (_column(part) for part in _lagrange(r0, v0, elapsed_s))
    mu = MU_EARTH_KM3_S2
    r = f[..., 0] * r0 + g[..., 0] * v0
    v = f_dot[..., 0] * r0 + g_dot[..., 0] * v0
    r0_norm, r_norm = _column(np.linalg.norm(r0, axis=-1)), _column(np.linalg.norm(r, axis=-1))
    dv, dr = v - v0, r - r0
    unit = np.eye(3)
    stm = np.empty((len(r0), 6, 6))
    stm[:, :3, :3] = (
        r_norm / mu * _outer(dv, dv)
        + (r0_norm * (1 - f) * _outer(r, r0) + secular * _outer(v, r0)) / r0_norm**3
        + f * unit
    )
    stm[:, :3, 3:] = (
        r0_norm / mu * (1 - f) * (_outer(dr, v0) - _outer(dv, r0)) + secular / mu * _outer(v, v0) + g * unit
    )
    inner = unit - _outer(r, r) / r_norm**2
    inner = inner + (_outer(r, v) - _outer(v, r)) @ _outer(r, dv) / (mu * r_norm)
    stm[:, 3:, :3] = (
        -_outer(dv, r0) / r0_norm**2
        - _outer(r, dv) / r_norm**2
        + f_dot * inner
        - mu * secular / (r_norm**3 * r0_norm**3) * _outer(r, r0)
    )
    stm[:, 3:, 3:] = (
        r0_norm / mu * _outer(dv, dv)
        + (r0_norm * (1 - f) * _outer(r, r0) - secular * _outer(r, v0)) / r_norm**3
        + g_dot * unit
    )
    return stm


def _lagrange(
    r0: FloatArray, v0: FloatArray, elapsed_s: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Lagrange's f, g, f_dot, g_dot and Battin's secular coefficient C, each (n,)."""
    mu = MU_EARTH_KM3_S2
    r0_norm = np.linalg.norm(r0, axis=-1)
    with np.errstate(all="ignore"):
        axis = 1 / (2 / r0_norm - np.einsum("ni,ni->n", v0, v0) / mu)
        axis = np.where(axis > 0, axis, np.nan)
        root = np.sqrt(axis)
        e_sin = np.einsum("ni,ni->n", r0, v0) / np.sqrt(mu * axis)
        e_cos = 1 - r0_norm / axis
        step = _eccentric_anomaly_step(e_cos, e_sin, np.sqrt(mu / axis**3) * elapsed_s)
        chi, cosine, sine = root * step, np.cos(step), np.sin(step)
        # Battin's universal functions, closed forms for an ellipse (alpha = 1 / a).
        u1, u2 = root * sine, axis * (1 - cosine)
        u3 = axis * (chi - u1)
        u4 = axis * (chi**2 / 2 - u2)
        u5 = axis * (chi**3 / 6 - u3)
        r_norm = axis * (1 - e_cos * cosine + e_sin * sine)
        f = 1 - u2 / r0_norm
        g = elapsed_s - u3 / np.sqrt(mu)
        f_dot = -np.sqrt(mu) * u1 / (r_norm * r0_norm)
        g_dot = 1 - u2 / r_norm
        secular = (3 * u5 - chi * u4) / np.sqrt(mu) - elapsed_s * u2
    return f, g, f_dot, g_dot, secular


def _eccentric_anomaly_step(e_cos: FloatArray, e_sin: FloatArray, mean_step: FloatArray) -> FloatArray:
    """Change of eccentric anomaly over a change of mean anomaly, rad, any number of revolutions, (n,)."""
    eccentricity = np.hypot(e_cos, e_sin)
    start = np.arctan2(e_sin, e_cos)
    mean = start - e_sin + mean_step
    turns = 2 * np.pi * np.round(mean / (2 * np.pi))
    reduced = mean - turns
    # From +-pi Newton converges for every eccentricity below one; rounder orbits start near their answer.
    anomaly = np.where(eccentricity < 0.8, reduced + eccentricity * np.sin(reduced), np.copysign(np.pi, reduced))
    moving = np.ones(anomaly.shape, dtype=bool)
    for _ in range(_KEPLER_ITERATIONS):
        slope = 1 - eccentricity * np.cos(anomaly)
        change = (anomaly - eccentricity * np.sin(anomaly) - reduced) / slope
        # Each row stops on its own account: its last bits must not depend on the rows beside it.
        anomaly = np.where(moving, anomaly - change, anomaly)
        moving &= np.abs(change) > 1e-15 * np.maximum(1.0, np.abs(anomaly))
        if not moving.any():
            break
    return anomaly + turns - start


def _inputs(
    r0_km: npt.ArrayLike, v0_km_s: npt.ArrayLike, dt_s: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r0 = np.atleast_2d(np.asarray(r0_km, dtype=np.float64))
    v0 = np.atleast_2d(np.asarray(v0_km_s, dtype=np.float64))
    return r0, v0, np.broadcast_to(np.asarray(dt_s, dtype=np.float64), (len(r0),))


def _outer(left: FloatArray, right: FloatArray) -> FloatArray:
    return left[..., :, None] * right[..., None, :]


def _column(values: FloatArray) -> FloatArray:
    return values[:, None, None]
