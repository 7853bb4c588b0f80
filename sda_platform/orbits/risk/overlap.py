"""The relative state of two uncertain orbits where their densities overlap most.

At each time the orbits are not linearised at their means. They are linearised at the most probable pair of elements
whose positions coincide (the point of peak overlap). A collision would come from there. On a curved orbit, far from the
mean, that differs from the straight ellipsoids of the means.

Source: Hall, "Expected Collision Rates for Tracked Satellites", J. Spacecraft and Rockets 58 (2021).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.equinoctial import UncertainOrbit, states_at
from sda_platform.orbits.risk.degenerate import solve_or_nan
from sda_platform.orbits.risk.work_budget import WorkBudget

_ITERATIONS = 60
# In sigmas of each element: far below any effect on the probability.
_CONVERGED = 1e-7
_LEAST_VARIANCE_KM2 = 1e-7**2
# Keeps the solution finite where one variance exceeds the others beyond floating-point range.
_REGULAR = 1e-14
_BISECTIONS = 70


@dataclasses.dataclass(frozen=True, eq=False)
class Overlap:
    """Relative state of second minus first at n times, as a Gaussian valid where the two overlap.

    Attributes:
        mean: (n, 6) km, km/s; NaN where no point of overlap was found.
        covariance: (n, 6, 6).
        variance_km2, axes: (n, 3) and (n, 3, 3), the principal variances of the position, ascending, and their axes
            as columns.
    """

    mean: FloatArray
    covariance: FloatArray
    variance_km2: FloatArray
    axes: FloatArray

    def take(self, rows: IntArray) -> Overlap:
        """Select times by their numbers."""
        return Overlap(self.mean[rows], self.covariance[rows], self.variance_km2[rows], self.axes[rows])

    @property
    def offset_km(self) -> FloatArray:
        """The mean position along the principal axes, (n, 3)."""
        return np.asarray(np.einsum("nji,nj->ni", self.axes, self.mean[:, :3]))


def overlap(first: UncertainOrbit, second: UncertainOrbit, dt_s: FloatArray, budget: WorkBudget) -> Overlap:
    """Return the overlap at ``dt_s`` (n,) after the common reference time of both orbits. Raises WorkExhausted."""
    count = len(dt_s)
    here, there = np.tile(first.elements, (count, 1)), np.tile(second.elements, (count, 1))
    scale_1, scale_2 = (np.sqrt(np.maximum(np.diagonal(o.covariance), 1e-60)) for o in (first, second))
    moving = np.ones(count, dtype=np.bool_)
    with np.errstate(all="ignore"):
        for _ in range(_ITERATIONS):
            budget.spend(int(moving.sum()))
            offset, position, gain_1, gain_2 = _relative(first, second, here[moving], there[moving], dt_s[moving], 3)
            position = 0.5 * (position + position.swapaxes(-1, -2))
            trace = np.trace(position, axis1=-2, axis2=-1)[:, None, None]
            position += (_LEAST_VARIANCE_KM2 + _REGULAR * np.nan_to_num(trace)) * np.eye(3)
            pull = solve_or_nan(position, offset)
            next_1 = first.elements + np.einsum("nk,nki->ni", pull, gain_1)
            next_2 = second.elements - np.einsum("nk,nki->ni", pull, gain_2)
            step = np.maximum(
                np.abs((next_1 - here[moving]) / scale_1).max(axis=-1),
                np.abs((next_2 - there[moving]) / scale_2).max(axis=-1),
            )
            here[moving], there[moving] = next_1, next_2
            moving[np.flatnonzero(moving)[step < _CONVERGED]] = False
            if not moving.any():
                break
        here[moving] = np.nan
        mean, covariance, _, _ = _relative(first, second, here, there, dt_s, 6)
    found = np.isfinite(mean).all(axis=-1) & np.isfinite(covariance).all(axis=(-2, -1))
    covariance[~found] = np.eye(6)
    mean[~found] = np.nan
    position = covariance[:, :3, :3]
    variance, axes = np.linalg.eigh(0.5 * (position + position.swapaxes(-1, -2)))
    return Overlap(mean, covariance, np.maximum(variance, _LEAST_VARIANCE_KM2), axes)


def log_overlap(met: Overlap, radius_km: float) -> FloatArray:
    """Minus half the squared Mahalanobis distance from the mean to the ball of ``radius_km``, (n,); -inf for NaN."""
    variance, offset = met.variance_km2, np.nan_to_num(met.offset_km, nan=1e9)
    outside = np.linalg.norm(offset, axis=-1) > radius_km
    # The nearest point is offset / (1 + multiplier * variance); its distance from the centre falls with the multiplier.
    low = np.full(len(variance), -60.0)
    high = np.log(np.linalg.norm(offset, axis=-1) / radius_km + 1) - np.log(variance[:, 0]) + 1
    with np.errstate(over="ignore"):
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            reach = np.linalg.norm(offset / (1 + np.exp(middle)[:, None] * variance), axis=-1)
            low, high = np.where(reach > radius_km, middle, low), np.where(reach > radius_km, high, middle)
        shift = offset / (1 + np.exp(-high)[:, None] / variance)
        distance2 = (shift**2 / variance).sum(axis=-1)
    log = np.where(outside, -0.5 * distance2, 0.0)
    return np.where(np.isfinite(met.mean).all(axis=-1), log, -np.inf)


def _relative(
    first: UncertainOrbit, second: UncertainOrbit, here: FloatArray, there: FloatArray, dt_s: FloatArray, terms: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the relative state, linearised at elements ``here`` and ``there`` (n, 6); 3 ``terms``: its position alone.

    Returns its mean (n, terms), its covariance (n, terms, terms), and the covariance of each orbit's own state with its
    elements, (n, terms, 6).
    """
    mean_1, slope_1 = _linearised(first, here, dt_s, terms)
    mean_2, slope_2 = _linearised(second, there, dt_s, terms)
    gain_1, gain_2 = slope_1 @ first.covariance, slope_2 @ second.covariance
    covariance = gain_1 @ slope_1.swapaxes(-1, -2) + gain_2 @ slope_2.swapaxes(-1, -2)
    return mean_2 - mean_1, covariance, gain_1, gain_2


def _linearised(
    orbit: UncertainOrbit, elements: FloatArray, dt_s: FloatArray, terms: int
) -> tuple[FloatArray, FloatArray]:
    """Return the first ``terms`` of the mean state (n, terms), and their derivatives by the elements (n, terms, 6)."""
    state, slope = states_at(orbit, elements, dt_s)
    state, slope = state[:, :terms], slope[:, :terms]
    return state + np.einsum("nij,nj->ni", slope, orbit.elements - elements), slope
