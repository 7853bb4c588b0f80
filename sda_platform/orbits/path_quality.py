"""Whether states at several times are the path of an object: each on an orbit, and close enough to interpolate.

Interpolation is judged on the two-body orbit of each state: what the curve through that orbit's states at the same
times misses of it. So perturbations and manoeuvres of the path itself do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import utc_to_tai_ns
from sda_platform.orbits.ephemerides import nodes_around
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state
from sda_platform.units import SECOND_NS

WITHIN_KM: Final = 0.01
"""How far a curve between two states may be off the orbit."""
_LOWEST_PERIGEE_KM: Final = 5_000.0
_STEPS_PER_PERIOD: Final = 25
"""Enough of them, by the period of a circle at perigee, of any orbit."""
_MISFIT: Final = 0.02
_GAP: Final = 1.5
"""In usual steps of a path, from when on a step is a gap."""
_AT_ONCE: Final = 10_000


@dataclass(frozen=True)
class PathFault:
    """Why states are no path, and at which of them that shows first; ``is_between``: each state is sound."""

    row: int
    reason: str
    is_between: bool = False


def fault_of_path(time_ns: IntArray, state: FloatArray) -> PathFault | None:
    """State why states (n, 6), TEME, km and km/s, at ascending ``time_ns`` (n,) are no orbit; None: they are.

    No orbit comes lower than 5,000 km to the centre of the Earth: so slow an object falls. Velocities must fit to the
    positions over most steps, to 2 %. Between states the curve must be within ``WITHIN_KM``.
    """
    perigee_km = perigees_km(state)
    for row in np.flatnonzero(~(perigee_km > _LOWEST_PERIGEE_KM))[:1].tolist():
        speed, low = np.linalg.norm(state[row, 3:]), perigee_km[row]
        end = "on no closed orbit" if np.isnan(low) else f"on an orbit down to {low:.0f} km from the Earth's centre"
        return PathFault(row, f"state {row + 1} is {end}: its speed is {speed:.6g} km/s")
    steps_s = np.diff(utc_to_tai_ns(time_ns)) / SECOND_NS
    if not len(steps_s):
        return None
    misfit, allowed = _misfits(steps_s, state)
    if np.median(misfit - allowed) > 0:
        off = f"over a step they are off by {np.median(misfit):.0%}"
        return PathFault(0, f"the velocities do not fit to the positions: {off}")
    off_km = interpolation_errors_km(time_ns, state)
    for row in np.flatnonzero(~(off_km <= WITHIN_KM))[:1].tolist():
        step_s = 2 * np.pi * np.sqrt(perigee_km.min() ** 3 / MU_EARTH_KM3_S2) / _STEPS_PER_PERIOD
        return PathFault(
            row + 1,
            f"states {row + 1} and {row + 2} are {steps_s[row]:.6g} s apart: a curve between them is off by up to "
            f"{off_km[row]:.2g} km, at most {WITHIN_KM:g} km is allowed; states every {step_s:.0f} s suffice",
            is_between=True,
        )
    return None


def pieces_of_path(time_ns: IntArray, state: FloatArray) -> list[slice]:
    """Return the stretches of states (n, 6) between gaps, in which a curve follows them; none: it never does.

    A gap is a step over which no curve follows, and which is longer than the usual steps of the path.
    """
    steps_ns = np.diff(time_ns)
    usual_ns = np.sort(steps_ns)[(len(steps_ns) - 1) // 2]
    is_gap = ~(interpolation_errors_km(time_ns, state) <= WITHIN_KM) & (steps_ns > _GAP * usual_ns)
    edges = pairwise([0, *(np.flatnonzero(is_gap) + 1).tolist(), len(time_ns)])
    pieces = [slice(begin, end) for begin, end in edges if end > begin + 1]
    return [each for each in pieces if fault_of_path(time_ns[each], state[each]) is None]


def perigees_km(state: FloatArray) -> FloatArray:
    """Return the distances (n,) from the Earth's centre at perigee, of inertial states (n, 6); NaN on no closed
    orbit.
    """
    r, v = state[:, :3], state[:, 3:]
    with np.errstate(all="ignore"):
        axis_km = 1 / (2 / np.linalg.norm(r, axis=1) - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
        momentum = np.linalg.norm(np.cross(r, v), axis=1)
        eccentricity = np.sqrt(np.maximum(1 - momentum**2 / (MU_EARTH_KM3_S2 * axis_km), 0))
        return np.asarray(np.where(axis_km > 0, axis_km * (1 - eccentricity), np.nan))


def interpolation_errors_km(time_ns: IntArray, state: FloatArray) -> FloatArray:
    """Estimate the error of interpolation midway between each two states, (n - 1,), km."""
    elapsed_s = (utc_to_tai_ns(time_ns) - utc_to_tai_ns(time_ns[:1])) / SECOND_NS
    steps = np.arange(len(time_ns) - 1)
    parts = [_errors_km(elapsed_s, state, steps[start : start + _AT_ONCE]) for start in range(0, len(steps), _AT_ONCE)]
    return np.concatenate([np.empty(0), *parts])


def _errors_km(elapsed_s: FloatArray, state: FloatArray, steps: IntArray) -> FloatArray:
    half_s = (elapsed_s[steps + 1] - elapsed_s[steps]) / 2
    middles_s = elapsed_s[steps] + half_s
    first, points = nodes_around(steps + 1, len(elapsed_s))
    from_middle_s = elapsed_s[first[:, None] + np.arange(points)] - middles_s[:, None]
    r, v = state[steps, :3], state[steps, 3:]
    at_knots = two_body_state(
        np.repeat(r, points, axis=0), np.repeat(v, points, axis=0), (from_middle_s + half_s[:, None]).ravel()
    )
    knots = [part.reshape(-1, points, 3) for part in at_knots]
    true, _ = two_body_state(r, v, half_s)
    # The curve's value at time 0 is the first coefficient of its polynomial in times that are scaled to 1.
    scale = np.abs(from_middle_s).max(axis=1, keepdims=True)
    power, at = np.arange(2 * points), (from_middle_s / scale)[:, :, None]
    slopes = power * np.concatenate([np.zeros_like(at), at ** power[:-1]], axis=2)
    weights = np.linalg.inv(np.concatenate([at**power, slopes], axis=1))[:, 0, :]
    given = np.concatenate([knots[0], knots[1] * scale[:, :, None]], axis=1)
    return np.asarray(np.linalg.norm(np.einsum("mk,mki->mi", weights, given) - true, axis=1))


def _misfits(steps_s: FloatArray, state: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By which part of the way each step (n - 1,) misses the next position at the mean velocity, and what may be."""
    r, v = state[:, :3], state[:, 3:]
    way = steps_s[:, None] * (v[1:] + v[:-1]) / 2
    length = steps_s * (np.linalg.norm(v[1:], axis=1) + np.linalg.norm(v[:-1], axis=1)) / 2
    distance = np.linalg.norm(r, axis=1)
    turned = steps_s * np.sqrt(MU_EARTH_KM3_S2 / np.minimum(distance[1:], distance[:-1]) ** 3)
    # The mean velocity of an arc misses its chord by a twelfth of the square of its angle.
    return np.linalg.norm(r[1:] - r[:-1] - way, axis=1) / length, _MISFIT + turned**2 / 8
