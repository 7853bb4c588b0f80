"""Dormand-Prince 8(5,3) for many satellites, compiled. Source: Hairer, Norsett & Wanner, Solving ODEs I (1993), II.10.

Each satellite is integrated by itself, with steps of its own: results depend on no other satellite and on no thread.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from scipy.integrate import DOP853

from sda_platform.orbits.dynamics.forces import derivatives
from sda_platform.orbits.dynamics.gravity import GM_KM3_S2
from sda_platform.orbits.dynamics.surroundings import LONGEST_STEP_S

_STAGES = 12
_A, _B, _C = np.ascontiguousarray(DOP853.A[:12, :12]), DOP853.B.copy(), DOP853.C[:12].copy()
_E3, _E5 = DOP853.E3.copy(), DOP853.E5.copy()
_TOLERANCE = 1e-13
"""Error of a step relative to distance and speed."""
_LARGEST_RAD = 0.16
"""Largest step as an angle of the orbit: between steps, quintics interpolate to millimetres."""
_FIRST_RAD, _LEAST_S = 0.065, 1e-3
"""First step as such an angle: a minute in a low orbit. One whose error is too large is taken again, shorter."""
_LOWEST_KM = 6378.1363 + 60.0


@njit(cache=True, nogil=True, error_model="numpy")
def trajectory(start: Any, epoch: Any, times_s: Any, parameters: Any, model: Any, partials: bool, out: Any) -> None:
    """States (k, 6), or states and partials (k, 54), at ``times_s`` (k,) since the epoch, monotonic, of one sign.

    States alone are interpolated between the ends of steps. To each time of partials a step of its own leads, from the
    begin of the one around it: what is found for one time depends on no other. NaN from where a satellite meets
    the ground (60 km), or the integration fails, on.
    """
    y, new, aside, rates, work = _start(start, partials)
    out[:] = np.nan
    t_s = 0.0
    derivatives(t_s, y, parameters, epoch, model, work, rates[0])
    done, count = 0, len(times_s)
    while done < count and times_s[done] == t_s:
        out[done] = y
        done += 1
    way = 1.0 if times_s[count - 1] > t_s else -1.0
    step = _FIRST_RAD * math.sqrt(_norm(y, 0) ** 3 / GM_KM3_S2)
    while done < count and step > _LEAST_S and _norm(y, 0) > _LOWEST_KM:
        step = min(step, _LARGEST_RAD * math.sqrt(_norm(y, 0) ** 3 / GM_KM3_S2), LONGEST_STEP_S)
        h = way * step
        error = _step(t_s, y, h, parameters, epoch, model, work, rates, new)
        if not error < 1.0:
            step *= max(0.2, 0.9 * min(error, 1e9) ** -0.125)
            continue
        if not partials:
            done = _interpolate(done, times_s, t_s, h, y, new, rates, out)
        rate = rates[_STAGES].copy()
        while done < count and (times_s[done] - t_s) / h <= 1.0:
            _step(t_s, y, times_s[done] - t_s, parameters, epoch, model, work, rates, aside)
            done = _repeat(done, times_s, aside, out)
        t_s += h
        y[:] = new
        rates[0] = rate
        step *= min(6.0, 0.9 * max(error, 1e-12) ** -0.125)


@njit(cache=True, nogil=True, error_model="numpy")
def _start(start: Any, partials: bool) -> Any:
    size = 54 if partials else 6
    y = np.zeros(size)
    y[:6] = start
    for n in range(6 if partials else 0):
        y[6 + 9 * n] = 1.0
    return y, np.zeros(size), np.zeros(size), np.zeros((_STAGES + 1, size)), np.zeros((2, 40, 40))


@njit(cache=True, nogil=True, error_model="numpy")
def _norm(y: Any, first: int) -> float:
    return math.sqrt(y[first] * y[first] + y[first + 1] * y[first + 1] + y[first + 2] * y[first + 2])


@njit(cache=True, nogil=True, error_model="numpy")
def _repeat(done: int, times_s: Any, new: Any, out: Any) -> int:
    """Write ``new`` for one time and its repetitions; the number of times that are done."""
    time_s = times_s[done]
    while done < len(times_s) and times_s[done] == time_s:
        out[done] = new
        done += 1
    return done


@njit(cache=True, nogil=True, error_model="numpy")
def _interpolate(done: int, times_s: Any, t_s: float, h: float, y: Any, new: Any, rates: Any, out: Any) -> int:
    """Write the states within the step from ``y`` to ``new``; the number of times that are done."""
    while done < len(times_s) and (times_s[done] - t_s) / h <= 1.0:
        _between(y, rates[0], new, rates[_STAGES], h, (times_s[done] - t_s) / h, out[done])
        done += 1
    return done


@njit(cache=True, nogil=True, error_model="numpy")
def _combine(y: Any, h: float, weights: Any, stages: int, rates: Any, out: Any) -> None:
    for n in range(len(y)):
        out[n] = y[n]
    for stage in range(stages):
        factor = h * weights[stage]
        if factor != 0.0:
            for n in range(len(y)):
                out[n] += factor * rates[stage, n]


@njit(cache=True, nogil=True, error_model="numpy")
def _step(
    t_s: float, y: Any, h: float, parameters: Any, epoch: Any, model: Any, work: Any, rates: Any, new: Any
) -> float:
    """Take one step into ``new``; its error in units of the tolerance. ``rates[12]`` are those at its end."""
    for stage in range(1, _STAGES):
        _combine(y, h, _A[stage], stage, rates, new)
        derivatives(t_s + _C[stage] * h, new, parameters, epoch, model, work, rates[stage])
    _combine(y, h, _B, _STAGES, rates, new)
    derivatives(t_s + h, new, parameters, epoch, model, work, rates[_STAGES])
    fifth, third = 0.0, 0.0
    for n in range(6):
        five, three = 0.0, 0.0
        for stage in range(_STAGES + 1):
            five += _E5[stage] * rates[stage, n]
            three += _E3[stage] * rates[stage, n]
        scale = _TOLERANCE * _norm(y, n // 3 * 3)
        fifth += (five / scale) ** 2
        third += (three / scale) ** 2
    if fifth == 0.0 and third == 0.0:
        return 0.0
    return abs(h) * fifth / math.sqrt((fifth + 0.01 * third) * 6)


@njit(cache=True, nogil=True, error_model="numpy")
def _between(y: Any, rate: Any, new: Any, new_rate: Any, h: float, u: float, out: Any) -> None:
    """State at the share ``u`` of a step: the quintic through positions, velocities, accelerations of its ends."""
    for n in range(3):
        p, v, a = y[n], h * y[3 + n], h * h * rate[3 + n]
        q, w, b = new[n], h * new[3 + n], h * h * new_rate[3 + n]
        gap, slope, bend = q - p - v - 0.5 * a, w - v - a, b - a
        c3 = 10 * gap - 4 * slope + 0.5 * bend
        c4 = -15 * gap + 7 * slope - bend
        c5 = 6 * gap - 3 * slope + 0.5 * bend
        out[n] = p + u * (v + u * (0.5 * a + u * (c3 + u * (c4 + u * c5))))
        out[3 + n] = (v + u * (a + u * (3 * c3 + u * (4 * c4 + u * 5 * c5)))) / h


@njit(cache=True, nogil=True, error_model="numpy")
def trajectories(
    starts: Any, rows: Any, after_s: Any, times_s: Any, ends: Any, parameters: Any, model: Any, partials: bool, out: Any
) -> None:
    """`trajectory` of each of ``n`` satellites: starts (n, 6) at rows (n,) and seconds after them, parameters (n, 8).

    Times of one satellite follow each other in ``times_s`` (m,), up to its place in ``ends`` (n,); results in ``out``.
    """
    begin = 0
    for n in range(len(starts)):
        span, epoch = slice(begin, ends[n]), (rows[n], after_s[n])
        trajectory(starts[n], epoch, times_s[span], parameters[n], model, partials, out[span])
        begin = ends[n]
