"""Compiled measurement model: residual, partial derivatives and noise of one observation against one state.

An observation has six components. An absent one has residual and partials zero and variance one, so that it adds
nothing to a sum of squares or a determinant. Light time as in ``light``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.frames import EARTH_ROTATION_RAD_S
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.small_matrices import (
    add_product_transposed,
    along,
    cholesky,
    cross,
    divide,
    dot,
    product,
    square,
    times,
    triple,
)
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

RADAR, OPTICAL, ISL, UNKNOWN_KIND = 0, 1, 2, 3
_ROTATION = EARTH_ROTATION_RAD_S


class MeasurementColumns(NamedTuple):
    """The columns of ``m`` observations that the kernels read; shapes and units as in ``measurements.Measurements``."""

    kind: IntArray
    site_km: FloatArray
    site_km_s: FloatArray
    pole: FloatArray
    direction: FloatArray
    value: FloatArray
    variance: FloatArray
    present: npt.NDArray[np.bool_]
    time_sigma_s: FloatArray
    site_sigma_km: FloatArray


@njit(cache=True, nogil=True)
def linearised(measurements: Any, r: Any, v: Any) -> Any:
    """Residual (m, 6), partials (m, 6, 6) and noise (m, 6, 6) of measurements against states (m, 3), (m, 3)."""
    count = len(r)
    residual = np.empty((count, 6))
    partials = np.empty((count, 6, 6))
    noise = np.empty((count, 6, 6))
    for row in range(count):
        _model(measurements, row, r[row], v[row], residual[row], partials[row], noise[row])
    return residual, partials, noise


@njit(cache=True, nogil=True)
def whiten(
    measurements: Any, rows: Any, r: Any, v: Any, reach: Any, unknowns: Any, group: Any, design: Any, residual: Any
) -> None:
    """Write design (m, 6, 6) and residual (m, 6) of ``rows``, in units of their noise, at deviations ``reach @
    unknowns``.

    ``r``, ``v``, ``reach``, ``group`` and the outputs have one entry per observation; ``unknowns`` (g, 6) has one per
    group.
    """
    noise, partials = np.empty((6, 6)), np.empty((6, 6))
    position, velocity = np.empty(3), np.empty(3)
    for row in rows:
        y = unknowns[group[row]]
        for i in range(3):
            position[i], velocity[i] = r[row, i], v[row, i]
            for j in range(6):
                position[i] += reach[row, i, j] * y[j]
                velocity[i] += reach[row, 3 + i, j] * y[j]
        _model(measurements, row, position, velocity, residual[row], partials, noise)
        cholesky(noise)
        product(partials, reach[row], design[row])
        divide(noise, design[row], residual[row])


@njit(cache=True, nogil=True)
def whitened_rates(measurements: Any, rows: Any, r: Any, v: Any) -> Any:
    """Rates of change (k, 6) of the predictions of ``rows`` at the states ``r``, ``v`` of all observations, in noise
    per second.
    """
    found = np.empty((len(rows), 6))
    residual, partials, noise = np.empty(6), np.empty((6, 6)), np.empty((6, 6))
    for k in range(len(rows)):
        row = rows[k]
        found[k] = _model(measurements, row, r[row], v[row], residual, partials, noise)
        cholesky(noise)
        divide(noise, partials, found[k])
    return found


@njit(cache=True, nogil=True)
def innovations(measurements: Any, rows: Any, r: Any, v: Any, prior_rtn: Any, which: Any) -> Any:
    """Squared Mahalanobis distance (p,) and log determinant (p,) of the innovation of observations ``rows`` (p,).

    ``r``, ``v`` are the predicted states (p, 3); ``prior_rtn[which]`` their covariances in their own RTN axes.
    """
    count = len(rows)
    distance, log_determinant = np.empty(count), np.empty(count)
    residual, solved = np.empty(6), np.empty(6)
    partials, noise, turned, known = np.empty((6, 6)), np.empty((6, 6)), np.zeros((6, 6)), np.empty((6, 6))
    axes = np.empty((3, 3))
    for k in range(count):
        _model(measurements, rows[k], r[k], v[k], residual, partials, noise)
        _rtn(r[k], v[k], axes)
        for i in range(6):
            for axis in range(3):
                turned[i, axis] = turned[i, 3 + axis] = 0.0
                for j in range(3):
                    turned[i, axis] += partials[i, j] * axes[axis, j]
                    turned[i, 3 + axis] += partials[i, 3 + j] * axes[axis, j]
        product(turned, prior_rtn[which[k]], known)
        add_product_transposed(1.0, known, turned, noise)
        cholesky(noise)
        log_determinant[k] = 0.0
        for i in range(6):
            log_determinant[k] += 2.0 * math.log(noise[i, i])
        distance[k] = square(noise, residual, solved)
    return distance, log_determinant


@njit(cache=True, nogil=True)
def _model(measurements: Any, row: Any, r: Any, v: Any, residual: Any, partials: Any, noise: Any) -> Any:
    """Write residual (6,), partials by position (km) and velocity (km/s) (6, 6) and noise (6, 6) of one observation.

    ``r``, ``v`` are arrays (3,). Returns the rates of change of the predicted components, per second.

    Source: Montenbruck & Gill, Satellite Orbits (2000), section 7.3 (range, range rate, angles), 6.2 (light time).
    """
    present, kind = measurements.present[row], measurements.kind[row]
    position, velocity = (r[0], r[1], r[2]), (v[0], v[1], v[2])
    gravity = -MU_EARTH_KM3_S2 / dot(position, position) ** 1.5
    rate = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    residual[:] = 0.0
    partials[:] = 0.0
    if kind == ISL:
        for i in range(3):
            residual[i] = measurements.value[row, i] - r[i]
            residual[3 + i] = measurements.value[row, 3 + i] - v[i]
            partials[i, i] = partials[3 + i, 3 + i] = 1.0
        rate = (v[0], v[1], v[2], gravity * r[0], gravity * r[1], gravity * r[2])
    elif kind != UNKNOWN_KIND:
        delay, rate = _from_ground(measurements, row, position, velocity, gravity, residual, partials)
        # The emission point depends on the velocity too. The change of the delay itself (one part in 30,000) is
        # neglected.
        for i in range(4):
            for j in range(3):
                partials[i, 3 + j] -= delay * partials[i, j]
    blur = 0.0
    if kind == OPTICAL and measurements.site_sigma_km[row] > 0.0:
        away = along(-1.0, triple(measurements.site_km[row]), position)
        blur = measurements.site_sigma_km[row] ** 2 / dot(away, away)
    rate = _if_present(present, rate)
    sigma = measurements.time_sigma_s[row]
    for i in range(6):
        if not present[i]:
            residual[i] = 0.0
            partials[i] = 0.0
        for j in range(6):
            noise[i, j] = rate[i] * rate[j] * sigma * sigma
        noise[i, i] += measurements.variance[row, i] + blur if present[i] else 1.0
    return rate


@njit(cache=True, nogil=True)
def _from_ground(
    measurements: Any, row: Any, r: Any, v: Any, gravity: float, residual: Any, partials: Any
) -> tuple[float, tuple[float, float, float, float, float, float]]:
    """Radar range, cross-elevation, elevation, range rate; telescope right ascension (times cosine), declination.

    Returns the light's delay, s, and the rates of change of the six components.
    """
    site, site_v = triple(measurements.site_km[row]), triple(measurements.site_km_s[row])
    radar = measurements.kind[row] == RADAR
    delay, emitted = _emission_state(r, v, gravity, site)
    line = along(-1.0, site, emitted)
    distance = math.sqrt(dot(line, line))
    unit = times(1.0 / distance, line)
    closing = along(-1.0, site_v, along(-gravity * delay, r, v))
    range_rate = dot(unit, closing)
    e_angle, e_height = _bearings(unit, triple(measurements.pole[row]), 1.0 if radar else -1.0)
    measured = triple(measurements.direction[row])
    forward = dot(measured, unit)
    side = 1 if radar else 0
    residual[side] = math.atan2(dot(measured, e_angle), forward)
    residual[side + 1] = math.atan2(dot(measured, e_height), forward)
    for i in range(3):
        partials[side, i], partials[side + 1, i] = e_angle[i] / distance, e_height[i] / distance
    if not radar:
        # A telescope's angles refer to inertial axes, a radar's rotate with the Earth.
        return delay, (
            dot(e_angle, closing) / distance,
            dot(e_height, closing) / distance,
            0.0,
            0.0,
            0.0,
            0.0,
        )
    rotation_rate = (-_ROTATION * emitted[1], _ROTATION * emitted[0], 0.0)
    apparent = along(-1.0, rotation_rate, along(1.0, site_v, closing))
    sent = along(2.0 * delay, site_v, line)
    residual[0] = measurements.value[row, 0] - 0.5 * (distance + math.sqrt(dot(sent, sent)))
    residual[3] = measurements.value[row, 3] - range_rate
    for i in range(3):
        partials[0, i] = unit[i]
        partials[3, i] = (closing[i] - range_rate * unit[i]) / distance
        partials[3, 3 + i] = unit[i]
    range_rate_rate = (dot(closing, closing) - range_rate**2) / distance + gravity * dot(unit, r)
    range_rate_rate += _ROTATION * (unit[0] * site_v[1] - unit[1] * site_v[0])
    across, above = dot(e_angle, apparent) / distance, dot(e_height, apparent) / distance
    return delay, (range_rate, across, above, range_rate_rate, 0.0, 0.0)


@njit(cache=True, nogil=True)
def _emission_state(r: Any, v: Any, gravity: float, site: Any) -> tuple[float, tuple[float, float, float]]:
    """Light delay (s) of a signal received now, and the object's position (km) when it was emitted."""
    delay, emitted = 0.0, r
    for _ in range(4):
        emitted = along(0.5 * gravity * delay * delay, r, along(-delay, v, r))
        line = along(-1.0, site, emitted)
        # Only a diverging fit lies beyond the Moon's distance.
        delay = min(math.sqrt(dot(line, line)) / LIGHT_KM_S, 2.0)
    return delay, emitted


@njit(cache=True, nogil=True)
def _bearings(unit: Any, pole: Any, turn: float) -> Any:
    """Unit vectors along which azimuth or right ascension, and elevation or declination, increase.

    Azimuth is clockwise about the zenith (turn 1), right ascension anticlockwise about the pole (turn -1).
    """
    flat = cross(unit, pole)
    e_angle = times(turn / max(math.sqrt(dot(flat, flat)), 1e-12), flat)
    return e_angle, times(turn, cross(e_angle, unit))


@njit(cache=True, nogil=True)
def _if_present(present: Any, rate: Any) -> Any:
    return (
        rate[0] if present[0] else 0.0,
        rate[1] if present[1] else 0.0,
        rate[2] if present[2] else 0.0,
        rate[3] if present[3] else 0.0,
        rate[4] if present[4] else 0.0,
        rate[5] if present[5] else 0.0,
    )


@njit(cache=True, nogil=True)
def _rtn(r: Any, v: Any, axes: Any) -> None:
    """Write rows radial, transverse, normal (3, 3)."""
    up, momentum = triple(r), cross(triple(r), triple(v))
    radial, normal = times(1.0 / math.sqrt(dot(up, up)), up), times(1.0 / math.sqrt(dot(momentum, momentum)), momentum)
    transverse = cross(normal, radial)
    for i in range(3):
        axes[0, i], axes[1, i], axes[2, i] = radial[i], transverse[i], normal[i]
