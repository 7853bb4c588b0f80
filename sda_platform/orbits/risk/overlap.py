"""The relative state of two uncertain orbits where their densities overlap most.

At each time the orbits are not linearised at their means. They are linearised at the most probable pair of elements
whose positions coincide (the point of peak overlap). A collision would come from there. On a curved orbit, far from the
mean, that differs from the straight ellipsoids of the means.

Source: Hall, "Expected Collision Rates for Tracked Satellites", J. Spacecraft and Rockets 58 (2021).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numba import njit

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.equinoctial import UncertainOrbit, move
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
    elements, covariances, axes = (
        np.ascontiguousarray([getattr(orbit, name) for orbit in (first, second)])
        for name in ("elements", "covariance", "axes")
    )
    mean, covariance = np.empty((count, 6)), np.empty((count, 6, 6))
    spent = _meet(elements, covariances, axes, np.ascontiguousarray(dt_s), budget.left, mean, covariance)
    budget.spend(spent)
    found = np.isfinite(mean).all(axis=-1) & np.isfinite(covariance).all(axis=(-2, -1))
    covariance[~found] = np.eye(6)
    mean[~found] = np.nan
    variance, principal = np.linalg.eigh(covariance[:, :3, :3])
    return Overlap(mean, covariance, np.maximum(variance, _LEAST_VARIANCE_KM2), principal)


def log_overlap(met: Overlap, radius_km: float) -> FloatArray:
    """Minus half the squared Mahalanobis distance from the mean to the ball of ``radius_km``, (n,); -inf for NaN."""
    log = np.empty(len(met.mean))
    _distances(met.offset_km, met.variance_km2, radius_km, log)
    return log


@njit(cache=True, nogil=True, error_model="numpy")
def _distances(offset_km: Any, variance_km2: Any, radius_km: float, log: Any) -> None:
    for row in range(len(log)):
        offset, variance = offset_km[row], variance_km2[row]
        far = math.sqrt((offset**2).sum())
        if not far >= 0.0:
            log[row] = -np.inf
            continue
        log[row] = 0.0
        if far <= radius_km:
            continue
        # The nearest point is offset / (1 + multiplier * variance); its distance from the centre falls with the
        # multiplier.
        low, high = -60.0, math.log(far / radius_km + 1) - math.log(variance[0]) + 1
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            factor, reach2 = math.exp(middle), 0.0
            for axis in range(3):
                reach2 += (offset[axis] / (1 + factor * variance[axis])) ** 2
            if math.sqrt(reach2) > radius_km:
                low = middle
            else:
                high = middle
        for axis in range(3):
            log[row] -= 0.5 * (offset[axis] / (1 + math.exp(-high) / variance[axis])) ** 2 / variance[axis]


@njit(cache=True, nogil=True, error_model="numpy")
def _meet(
    elements: Any, covariances: Any, axes: Any, dt_s: Any, most_evaluations: int, mean: Any, covariance: Any
) -> int:
    """Find the overlap of two orbits, (2, 6) each, at each time; the number of evaluations.

    Fills in the relative state's means (n, 6), NaN where there is none, and covariances (n, 6, 6). Ends early with
    more evaluations than are allowed.
    """
    here, gains = np.empty((2, 6)), np.empty((2, 6, 6))
    spent = 0
    for row in range(len(dt_s)):
        here[:] = elements
        step = np.inf
        for _ in range(_ITERATIONS):
            spent += 1
            _relate(elements, covariances, axes, here, dt_s[row], 3, mean[row], covariance[row], gains)
            step = _approach(elements, covariances, mean[row], covariance[row], gains, here)
            if spent > most_evaluations:
                return spent
            if not step >= _CONVERGED:
                break
        if step < _CONVERGED:
            _relate(elements, covariances, axes, here, dt_s[row], 6, mean[row], covariance[row], gains)
        else:
            mean[row] = np.nan
    return spent


@njit(cache=True, nogil=True, error_model="numpy")
def _approach(elements: Any, covariances: Any, mean: Any, covariance: Any, gains: Any, here: Any) -> float:
    """Move both orbits ``here`` (2, 6) to the likeliest elements whose positions coincide; the largest change, sigmas.

    NaN where there are none.
    """
    pull = mean[:3].copy()
    position = covariance[:3, :3].copy()
    least_km2 = _LEAST_VARIANCE_KM2 + _REGULAR * (position[0, 0] + position[1, 1] + position[2, 2])
    for axis in range(3):
        position[axis, axis] += least_km2
    _solve(position, pull)
    largest = 0.0
    for orbit in range(2):
        way = 1.0 - 2.0 * orbit
        for n in range(6):
            moved = elements[orbit, n]
            for axis in range(3):
                moved += way * pull[axis] * gains[orbit, axis, n]
            change = abs(moved - here[orbit, n]) / math.sqrt(max(covariances[orbit, n, n], 1e-60))
            if not change <= largest:
                largest = change
            here[orbit, n] = moved
    return largest


@njit(cache=True, nogil=True, error_model="numpy")
def _relate(
    elements: Any, covariances: Any, axes: Any, here: Any, dt_s: float, terms: int, mean: Any, covariance: Any,
    gains: Any,
) -> None:  # fmt: skip
    """Fill in the relative state, linearised at the elements ``here`` (2, 6); 3 ``terms``: its position alone.

    Its mean (terms,), its covariance (terms, terms), and the covariance of each orbit's own state with its elements,
    (2, terms, 6).
    """
    state, own, turned, slope = np.empty(6), np.empty((6, 6)), np.empty(6), np.empty((6, 6))
    mean[:terms] = 0.0
    covariance[:terms, :terms] = 0.0
    for orbit in range(2):
        move(here[orbit], dt_s, state, own)
        _turn(axes[orbit], state, own, terms, turned, slope)
        for i in range(terms):
            value = turned[i]
            for n in range(6):
                value += slope[i, n] * (elements[orbit, n] - here[orbit, n])
            mean[i] += value if orbit else -value
        gain = gains[orbit]
        for i in range(terms):
            for n in range(6):
                gain[i, n] = (slope[i] * covariances[orbit, :, n]).sum()
        for i in range(terms):
            for j in range(terms):
                covariance[i, j] += 0.5 * (gain[i] * slope[j] + gain[j] * slope[i]).sum()


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(axes: Any, state: Any, own: Any, terms: int, turned: Any, slope: Any) -> None:
    """Fill in the first terms of a state (6,) and of its derivatives (6, 6), from the orbit's axes to inertial ones."""
    for i in range(terms):
        half, axis = i // 3 * 3, i % 3
        turned[i] = 0.0
        slope[i, :] = 0.0
        for k in range(3):
            turned[i] += axes[k, axis] * state[half + k]
            for n in range(6):
                slope[i, n] += axes[k, axis] * own[half + k, n]


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(matrix: Any, right: Any) -> None:
    """Solve three linear equations in place, with pivots; NaN or infinities where the matrix is singular."""
    for column in range(3):
        pivot = column
        for i in range(column + 1, 3):
            if abs(matrix[i, column]) > abs(matrix[pivot, column]):
                pivot = i
        for j in range(3):
            matrix[column, j], matrix[pivot, j] = matrix[pivot, j], matrix[column, j]
        right[column], right[pivot] = right[pivot], right[column]
        for i in range(column + 1, 3):
            factor = matrix[i, column] / matrix[column, column]
            for j in range(column, 3):
                matrix[i, j] -= factor * matrix[column, j]
            right[i] -= factor * right[column]
    for i in range(2, -1, -1):
        for j in range(i + 1, 3):
            right[i] -= matrix[i, j] * right[j]
        right[i] /= matrix[i, i]
