"""One reading against one state, compiled: residual, first order and noise, and what follows from them in bulk.

A reading has six components; the absent ones have residual and partials zero and variance one, so that they add
nothing to a sum of squares or a determinant. Light time as in ``light``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.frames import EARTH_ROTATION_RAD_S
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.small_matrices import add_product_transposed, cholesky, cross, divide, dot, product, square
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

RADAR, OPTICAL, ISL, UNKNOWN_KIND = 0, 1, 2, 3
_ROTATION = EARTH_ROTATION_RAD_S


class Readings(NamedTuple):
    """What the kernels need of ``m`` readings, a column each (see ``measurements``)."""

    kind: IntArray
    site_km: FloatArray
    site_km_s: FloatArray
    pole: FloatArray
    direction: FloatArray
    value: FloatArray
    variance: FloatArray
    present: npt.NDArray[np.bool_]
    time_sigma_s: FloatArray


@njit(cache=True, nogil=True)
def linearised(readings: Any, r: Any, v: Any) -> Any:
    """Residual (m, 6), partials (m, 6, 6) and noise (m, 6, 6) of readings against states (m, 3), (m, 3)."""
    count = len(r)
    residual = np.empty((count, 6))
    partials = np.empty((count, 6, 6))
    noise = np.empty((count, 6, 6))
    for row in range(count):
        _model(readings, row, r[row], v[row], residual[row], partials[row], noise[row])
    return residual, partials, noise


@njit(cache=True, nogil=True)
def whitened(readings: Any, rows: Any, r: Any, v: Any, reach: Any, unknowns: Any, group: Any) -> Any:
    """Design (k, 6, 6) and misfit (k, 6) of ``rows`` in units of their noise, at deviations ``reach @ unknowns``.

    ``r``, ``v``, ``reach`` and ``group`` have an entry per reading, ``unknowns`` (g, 6) one per group.
    """
    count = len(rows)
    design = np.empty((count, 6, 6))
    misfit = np.empty((count, 6))
    noise, partials = np.empty((6, 6)), np.empty((6, 6))
    position, velocity = np.empty(3), np.empty(3)
    for k in range(count):
        row = rows[k]
        y = unknowns[group[row]]
        for i in range(3):
            position[i], velocity[i] = r[row, i], v[row, i]
            for j in range(6):
                position[i] += reach[row, i, j] * y[j]
                velocity[i] += reach[row, 3 + i, j] * y[j]
        _model(readings, row, position, velocity, misfit[k], partials, noise)
        cholesky(noise)
        product(partials, reach[row], design[k])
        divide(noise, design[k], misfit[k])
    return design, misfit


@njit(cache=True, nogil=True)
def whitened_rates(readings: Any, rows: Any, r: Any, v: Any) -> Any:
    """How fast the predictions of ``rows`` change at the states ``r``, ``v`` of all readings, in noise per second."""
    found = np.empty((len(rows), 6))
    residual, partials, noise = np.empty(6), np.empty((6, 6)), np.empty((6, 6))
    for k in range(len(rows)):
        row = rows[k]
        found[k] = _model(readings, row, r[row], v[row], residual, partials, noise)
        cholesky(noise)
        divide(noise, partials, found[k])
    return found


@njit(cache=True, nogil=True)
def normal_equations(design: Any, misfit: Any, group: Any, counted: Any, groups: Any) -> Any:
    """Sums over the rows ``counted`` of each group: normal matrix (g, 6, 6), gradient (g, 6), squared misfit (g,)."""
    normal, gradient, squared = np.zeros((groups, 6, 6)), np.zeros((groups, 6)), np.zeros(groups)
    for k in range(len(design)):
        if not counted[k]:
            continue
        g = group[k]
        for i in range(6):
            miss = misfit[k, i]
            squared[g] += miss * miss
            for a in range(6):
                factor = design[k, i, a]
                if factor != 0.0:
                    gradient[g, a] += factor * miss
                    for b in range(6):
                        normal[g, a, b] += factor * design[k, i, b]
    return normal, gradient, squared


@njit(cache=True, nogil=True)
def surprises(design: Any, misfit: Any, group: Any, posterior: Any, counted: Any) -> Any:
    """Squared misfit (k,) of each row against a fit that never saw it.

    What is left of a reading's own variance once the fit has used it is one less what the fit knows; of a reading that
    was left out it is one more.
    """
    found = np.empty(len(design))
    left, known = np.empty((6, 6)), np.empty((6, 6))
    solved = np.empty(6)
    for k in range(len(design)):
        covariance = posterior[group[k]]
        sign = -1.0 if counted[k] else 1.0
        product(design[k], covariance, known)
        left[:] = np.eye(6)
        add_product_transposed(sign, known, design[k], left)
        cholesky(left)
        found[k] = square(left, misfit[k], solved)
        if math.isnan(found[k]):
            found[k] = math.inf
    return found


@njit(cache=True, nogil=True)
def innovations(readings: Any, rows: Any, r: Any, v: Any, prior_rtn: Any, which: Any) -> Any:
    """Squared Mahalanobis distance (p,) and log determinant (p,) of the innovation of readings ``rows`` (p,).

    ``r``, ``v`` are the predicted states (p, 3); ``prior_rtn[which]`` their covariance in their own RTN axes.
    """
    count = len(rows)
    distance, log_determinant = np.empty(count), np.empty(count)
    residual, solved = np.empty(6), np.empty(6)
    partials, noise, turned, known = np.empty((6, 6)), np.empty((6, 6)), np.zeros((6, 6)), np.empty((6, 6))
    axes = np.empty((3, 3))
    for k in range(count):
        _model(readings, rows[k], r[k], v[k], residual, partials, noise)
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
def _model(readings: Any, row: Any, r: Any, v: Any, residual: Any, partials: Any, noise: Any) -> Any:
    """One reading: residual (6,), partials by position (km) and velocity (km/s) (6, 6), noise (6, 6), all written.

    Returns how fast the prediction changes (6,), per second.

    Source: Montenbruck & Gill, Satellite Orbits (2000), section 7.3 (range, range rate, angles), 6.2 (light time).
    """
    present = readings.present[row]
    rate = np.zeros(6)
    residual[:] = 0.0
    partials[:] = 0.0
    if readings.kind[row] == ISL:
        pull = -MU_EARTH_KM3_S2 / (r[0] ** 2 + r[1] ** 2 + r[2] ** 2) ** 1.5
        for i in range(3):
            residual[i] = readings.value[row, i] - r[i]
            residual[3 + i] = readings.value[row, 3 + i] - v[i]
            partials[i, i] = partials[3 + i, 3 + i] = 1.0
            rate[i], rate[3 + i] = v[i], pull * r[i]
    elif readings.kind[row] != UNKNOWN_KIND:
        delay = _from_ground(readings, row, r, v, residual, partials, rate)
        # The place seen hangs on the velocity, too; that the delay itself changes (one part in 30,000) is left out.
        for i in range(3):
            partials[:, 3 + i] -= delay * partials[:, i]
    for i in range(6):
        if not present[i]:
            residual[i] = rate[i] = 0.0
            partials[i] = 0.0
    sigma = readings.time_sigma_s[row]
    for i in range(6):
        for j in range(6):
            noise[i, j] = rate[i] * rate[j] * sigma * sigma
        noise[i, i] += readings.variance[row, i] if present[i] else 1.0
    return rate


@njit(cache=True, nogil=True)
def _from_ground(readings: Any, row: Any, r: Any, v: Any, residual: Any, partials: Any, rate: Any) -> float:
    """Radar range, cross-elevation, elevation, range rate; telescope right ascension (times cosine), declination.

    Returns the light's delay, s.
    """
    site, site_v, towards = readings.site_km[row], readings.site_km_s[row], readings.direction[row]
    radar = readings.kind[row] == RADAR
    pull = -MU_EARTH_KM3_S2 / (r[0] ** 2 + r[1] ** 2 + r[2] ** 2) ** 1.5
    seen, line, unit, closing = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    delay = _look_back(r, v, site, seen)
    for i in range(3):
        line[i] = seen[i] - site[i]
    distance = math.sqrt(dot(line, line))
    for i in range(3):
        unit[i] = line[i] / distance
        closing[i] = v[i] - pull * r[i] * delay - site_v[i]
    range_rate = dot(unit, closing)
    sideways, upward = np.empty(3), np.empty(3)
    _bearings(unit, readings.pole[row], 1.0 if radar else -1.0, sideways, upward)
    forward = dot(towards, unit)
    across, above = math.atan2(dot(towards, sideways), forward), math.atan2(dot(towards, upward), forward)
    # A radar's angles turn with the Earth, a telescope's stand against the stars.
    apparent = np.empty(3)
    for i in range(3):
        apparent[i] = closing[i]
    if radar:
        apparent[0] += site_v[0] + _ROTATION * seen[1]
        apparent[1] += site_v[1] - _ROTATION * seen[0]
        apparent[2] += site_v[2]
    side = 1 if radar else 0
    residual[side], residual[side + 1] = across, above
    rate[side], rate[side + 1] = dot(sideways, apparent) / distance, dot(upward, apparent) / distance
    for i in range(3):
        partials[side, i], partials[side + 1, i] = sideways[i] / distance, upward[i] / distance
    if radar:
        sent = 0.0
        for i in range(3):
            sent += (line[i] + 2.0 * delay * site_v[i]) ** 2
        residual[0] = readings.value[row, 0] - 0.5 * (distance + math.sqrt(sent))
        residual[3] = readings.value[row, 3] - range_rate
        rate[0] = range_rate
        rate[3] = (dot(closing, closing) - range_rate**2) / distance + pull * dot(unit, r)
        rate[3] += _ROTATION * (unit[0] * site_v[1] - unit[1] * site_v[0])
        for i in range(3):
            partials[0, i] = unit[i]
            partials[3, i] = (closing[i] - range_rate * unit[i]) / distance
            partials[3, 3 + i] = unit[i]
    return delay


@njit(cache=True, nogil=True)
def _look_back(r: Any, v: Any, site: Any, seen: Any) -> float:
    """Where the object was, ``seen`` (3,), when what arrives now left it; returns how long ago, s."""
    pull = -MU_EARTH_KM3_S2 / (r[0] ** 2 + r[1] ** 2 + r[2] ** 2) ** 1.5
    delay = 0.0
    for _ in range(4):
        for i in range(3):
            seen[i] = r[i] - v[i] * delay + 0.5 * pull * r[i] * delay * delay
        away = math.sqrt((seen[0] - site[0]) ** 2 + (seen[1] - site[1]) ** 2 + (seen[2] - site[2]) ** 2)
        # Past the Moon's distance only a diverging fit looks.
        delay = min(away / LIGHT_KM_S, 2.0)
    return delay


@njit(cache=True, nogil=True)
def _bearings(unit: Any, pole: Any, turn: float, sideways: Any, upward: Any) -> None:
    """The directions (3,) in which azimuth or right ascension, and elevation or declination, grow.

    Azimuth runs clockwise about the zenith (turn 1), right ascension anticlockwise about the pole (turn -1).
    """
    cross(unit, pole, sideways)
    length = max(math.sqrt(dot(sideways, sideways)), 1e-12)
    for i in range(3):
        sideways[i] *= turn / length
    cross(sideways, unit, upward)
    for i in range(3):
        upward[i] *= turn


@njit(cache=True, nogil=True)
def _rtn(r: Any, v: Any, axes: Any) -> None:
    """Rows radial, transverse, normal (3, 3)."""
    distance = math.sqrt(dot(r, r))
    cross(r, v, axes[2])
    momentum = math.sqrt(dot(axes[2], axes[2]))
    for i in range(3):
        axes[0, i] = r[i] / distance
        axes[2, i] /= momentum
    cross(axes[2], axes[0], axes[1])
