"""Ephemerides, states at many times: the state and covariance between them.

States are interpolated by Hermite's polynomial through positions and velocities of the nearest states, whatever method
the message proposes: every state has a velocity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.interpolate import KroghInterpolator

from sda_platform.orbits.elements import FloatArray, IntArray

_POINTS = 4  # degree 7, which messages propose most
_NS = 1e9
_LOWER = np.tril_indices(6)


def states_at(epoch_ns: IntArray, state: FloatArray, time_ns: IntArray) -> FloatArray:
    """States (m, 6) at ``time_ns`` (m,) of an object whose states (n, 6) at ``epoch_ns`` (n,), ascending, are known.

    km and km/s in an inertial frame. NaN outside of the known times; a single state holds at its epoch only.
    """
    found = np.full((len(time_ns), 6), np.nan)
    inside = np.flatnonzero((time_ns >= epoch_ns[0]) & (time_ns <= epoch_ns[-1]))
    points = min(_POINTS, len(epoch_ns))
    after = np.searchsorted(epoch_ns, time_ns[inside], side="right")
    first = np.clip(after - (points + 1) // 2, 0, len(epoch_ns) - points)
    for start in np.unique(first).tolist():
        rows = inside[first == start]
        chosen = slice(start, start + points)
        at_s = (epoch_ns[chosen] - epoch_ns[start]) / _NS
        knots = np.repeat(at_s, 2)
        values = state[chosen].reshape(-1, 3)  # position, velocity, position, velocity …
        curve = KroghInterpolator(knots, values)
        wanted_s = (time_ns[rows] - epoch_ns[start]) / _NS
        found[rows] = np.concatenate([curve(wanted_s), curve.derivative(wanted_s)], axis=1)
    return found


def covariances_from_lower(terms: npt.ArrayLike) -> FloatArray:
    """Covariances (m, 6, 6) from their lower triangles (m, 21), row by row."""
    lower = np.asarray(terms, np.float64).reshape(-1, len(_LOWER[0]))
    full = np.zeros((len(lower), 6, 6))
    full[:, _LOWER[0], _LOWER[1]] = lower
    return np.asarray(full + np.tril(full, -1).swapaxes(1, 2))


def turned(covariance: FloatArray, rotation: FloatArray) -> FloatArray:
    """Covariances (m, 6, 6) of position and velocity, both turned by ``rotation`` (m, 3, 3)."""
    both = np.zeros((len(rotation), 6, 6))
    both[:, :3, :3] = both[:, 3:, 3:] = rotation
    return both @ covariance @ both.swapaxes(1, 2)
