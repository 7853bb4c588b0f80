"""Monte Carlo probability of collision: pairs of orbits drawn from their covariances, propagated, hits counted once.

For pairs that meet repeatedly or stay together, where the expected number of collisions counts one pair several
times. It cannot resolve probabilities below a few hits in the number of trials.

Source: Hall, Hejduk & Johnson, "Remediating Non-Positive Definite State Covariances", AAS 17-567 (2017), for drawing
in equinoctial elements at TCA.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.orbits.equinoctial import UncertainOrbit, plane_axes, square_root
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

_BATCH = 10_000
_STEPS = 100
_BISECTIONS = 25


@dataclasses.dataclass(frozen=True)
class Counted:
    """The fraction of trials that collided."""

    hits: int
    trials: int

    @property
    def probability(self) -> float:
        """Estimate of the probability of collision."""
        return self.hits / self.trials

    @property
    def standard_error(self) -> float:
        """Compute the one-sigma error of the estimate; without a hit, that of one hit."""
        fraction = max(self.hits, 1) / self.trials
        return float(np.sqrt(fraction * (1 - min(fraction, 1.0)) / self.trials))


def count_collisions(
    first: UncertainOrbit,
    second: UncertainOrbit,
    radius_km: float,
    start_s: float,
    end_s: float,
    *,
    seed: int,
    relative_error: float = 0.005,
    most_trials: int = 200_000,
    count_inside_at_start: bool = True,
) -> Counted:
    """Draw pairs until the estimate is as precise as required or ``most_trials`` are used; equal seeds, equal
    answers.

    ``count_inside_at_start``: whether pairs that are within the radius when the window begins are hits.
    """
    random = np.random.default_rng(seed)
    roots = [square_root(orbit.covariance) for orbit in (first, second)]
    hits = trials = 0
    while trials < most_trials:
        drawn = [
            orbit.elements + random.standard_normal((_BATCH, 6)) @ root.T
            for orbit, root in zip((first, second), roots, strict=True)
        ]
        paths = [_paths(elements, orbit.axes) for elements, orbit in zip(drawn, (first, second), strict=True)]
        hits += _hits(paths[0], paths[1], radius_km, start_s, end_s, count_inside_at_start)
        trials += _BATCH
        if hits and (1 - hits / trials) / hits < relative_error**2:
            break
    return Counted(hits, trials)


def _paths(elements: FloatArray, axes: FloatArray) -> FloatArray:
    """Propagation terms of each orbit, (n, 13): n, f, g, l; and the vectors that make up a position."""
    n, f, g, p, q, longitude = elements.T
    axis = (MU_EARTH_KM3_S2 / n**2) ** (1 / 3)
    with np.errstate(invalid="ignore"):  # a draw that is on no closed orbit counts as no collision
        b = 1 / (1 + np.sqrt(1 - f * f - g * g))
    first, second = ((axis[:, None] * direction) @ axes for direction in plane_axes(p, q))
    with_cosine = (1 - g * g * b)[:, None] * first + (f * g * b)[:, None] * second
    with_sine = (f * g * b)[:, None] * first + (1 - f * f * b)[:, None] * second
    constant = -f[:, None] * first - g[:, None] * second
    return np.concatenate([np.stack([n, f, g, longitude], axis=-1), with_cosine, with_sine, constant], axis=-1)


@njit(cache=True, nogil=True)
def _hits(
    paths_1: FloatArray,
    paths_2: FloatArray,
    radius_km: float,
    start_s: float,
    end_s: float,
    count_inside_at_start: bool,
) -> int:
    """How many of the pairs come within ``radius_km``: at the nodes exactly, between them on Hermite cubics."""
    step_s = (end_s - start_s) / _STEPS
    near2 = radius_km * radius_km
    state_1, state_2 = np.empty(6), np.empty(6)
    before, now = np.empty(6), np.empty(6)
    hits = 0
    for row in range(len(paths_1)):
        eccentric_1 = paths_1[row, 3] + paths_1[row, 0] * start_s
        eccentric_2 = paths_2[row, 3] + paths_2[row, 0] * start_s
        closing = False
        for node in range(_STEPS + 1):
            time_s = start_s + node * step_s
            eccentric_1 = _move(paths_1[row], time_s, eccentric_1, state_1)
            eccentric_2 = _move(paths_2[row], time_s, eccentric_2, state_2)
            distance2 = 0.0
            product = 0.0
            for axis in range(3):
                now[axis] = state_2[axis] - state_1[axis]
                now[axis + 3] = state_2[axis + 3] - state_1[axis + 3]
                distance2 += now[axis] * now[axis]
                product += now[axis] * now[axis + 3]
            if node == 0 and distance2 < near2 and not count_inside_at_start:
                break
            if distance2 < near2 or (node > 0 and closing and product >= 0 and _least2(before, now, step_s) < near2):
                hits += 1
                break
            closing = product < 0
            before[:] = now
    return hits


@njit(cache=True, nogil=True)
def _move(path: FloatArray, time_s: float, guess: float, state: FloatArray) -> float:
    """Fill ``state`` (6,) with position and velocity at ``time_s``; returns the eccentric longitude, from ``guess``."""
    rate, f, g = path[0], path[1], path[2]
    mean = path[3] + rate * time_s
    eccentric = guess
    for _ in range(20):
        cosine, sine = np.cos(eccentric), np.sin(eccentric)
        step = (eccentric + g * cosine - f * sine - mean) / (1 - g * sine - f * cosine)
        eccentric -= step
        if abs(step) < 1e-9:  # the error is its square
            break
    cosine, sine = np.cos(eccentric), np.sin(eccentric)
    speed = rate / (1 - f * cosine - g * sine)
    for axis in range(3):
        state[axis] = path[4 + axis] * cosine + path[7 + axis] * sine + path[10 + axis]
        state[axis + 3] = speed * (path[7 + axis] * cosine - path[4 + axis] * sine)
    return eccentric


@njit(cache=True, nogil=True)
def _least2(before: FloatArray, after: FloatArray, step_s: float) -> float:
    """Least squared distance on the cubic between two states, where the distance stops falling once."""
    low, high, least2 = 0.0, 1.0, 0.0
    for _ in range(_BISECTIONS):
        s = 0.5 * (low + high)
        product, least2 = 0.0, 0.0
        for axis in range(3):
            p0, p1 = before[axis], after[axis]
            v0, v1 = before[axis + 3] * step_s, after[axis + 3] * step_s
            square, cubic = 3 * (p1 - p0) - 2 * v0 - v1, 2 * (p0 - p1) + v0 + v1
            position = p0 + s * (v0 + s * (square + s * cubic))
            product += position * (v0 + s * (2 * square + 3 * s * cubic))
            least2 += position * position
        if product < 0:
            low = s
        else:
            high = s
    return least2
