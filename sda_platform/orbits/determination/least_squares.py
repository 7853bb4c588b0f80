"""Weighted least squares of one object's observations, whatever moves the object: SGP4 or the numerical model."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.chi_square import share_above, square_exceeded_by
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.sensing.measurements import Linearisation, Measurements, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays

_STEPS = 100
_NOTHING_TO_GAIN = 1e-2
_OUTLIER_PROBABILITY = 1e-5
_IMPLAUSIBLE = 1e-6
# In units of the largest singular value of the scaled design, squared.
_LEAST_DAMPING, _MOST_DAMPING = 1e-14, 1e4


class ArcMotion(Protocol):
    """How an object moves, as a function of ``k`` unknowns."""

    def states(self, unknowns: FloatArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (m, 6), TEME, km and km/s, and their derivatives (m, 6, k) by the unknowns, or NaN."""


@dataclasses.dataclass(frozen=True, eq=False)
class ArcPrior:
    """What is known of the unknowns before the observations."""

    weight: FloatArray
    """(p, k) whitens a deviation from the start: rows of the inverse root of its covariance."""
    determined: int
    """How many of the unknowns count as known."""

    @classmethod
    def none(cls, unknowns: int) -> ArcPrior:
        """Return a prior without information."""
        return cls(np.zeros((1, unknowns)), 0)

    @classmethod
    def of(cls, covariance: FloatArray) -> ArcPrior:
        """All unknowns, with this covariance (k, k). Raises LinAlgError where it is not positive definite."""
        return cls(np.linalg.inv(np.linalg.cholesky(covariance)), len(covariance))


@dataclasses.dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    """How well a fit explains the observations (m,) of one object."""

    chi_square: float
    """Of the observations used and of the deviation from the prior."""
    degrees_of_freedom: int
    """Components used, less the unknowns that no prior determines."""
    used: BoolArray
    """(m,) which observations the fit uses; the others were unusable or outliers."""
    cost: float
    """Chi-square, where each outlier counts as much as the bound of outliers: it compares fits with other outliers."""

    @property
    def is_plausible(self) -> bool:
        """Whether noise alone leaves residuals of this size in at least one of a million fits."""
        freedom = self.degrees_of_freedom
        return freedom >= 0 and bool(share_above(self.chi_square, max(freedom, 1)) > _IMPLAUSIBLE)


@dataclasses.dataclass(frozen=True, eq=False)
class LeastSquares(GoodnessOfFit):
    """The unknowns that fit the observations best."""

    unknowns: FloatArray
    """(k,)"""
    covariance: FloatArray
    """(k, k)"""


def solve(observations: ObservationArrays, motion: ArcMotion, start: FloatArray, prior: ArcPrior) -> LeastSquares:
    """Levenberg-Marquardt from ``start`` (k,), which is also where the prior is.

    Observations with residuals that chance exceeds less than once in 100,000 are then left out, at most half of them.
    The rest is fitted again.

    Raises:
        NoOrbit: fewer than six measured numbers and no prior, a start without motion, or no convergence.

    Source: Tapley, Schutz & Born, Statistical Orbit Determination (2004), section 4.3; Marquardt 1963.
    """
    order = observations.canonical_order(np.zeros(len(observations), dtype=np.int64))
    measurements = prepare(observations.take(order))
    usable = np.flatnonzero(measurements.usable)
    of_object = np.zeros(len(usable), dtype=np.int64)
    sure = measurements.take(usable).with_shared_clock_errors(of_object, observations.source_id[order[usable]])
    arc = _Arc(sure, motion, start, prior)
    active = np.ones(len(usable), dtype=bool)
    unknowns, rows, residual = arc.converge(start, active)
    for _ in range(len(usable)):
        excess = _squares(residual) / square_exceeded_by(_OUTLIER_PROBABILITY, sure.dimension)
        keep = excess <= max(1.0, 0.5 * float(excess[active].max(initial=0.0)))
        if (keep == active).all() or 2 * keep.sum() < len(usable):
            break
        active = keep
        unknowns, rows, residual = arc.converge(unknowns, active)
    used = np.zeros(len(observations), dtype=bool)
    used[order[usable[active]]] = True
    scale = np.linalg.norm(rows, axis=0)
    inverse = np.linalg.pinv(rows / scale, rcond=1e-15) / scale[:, None]
    chi_square = float(_squares(residual)[active].sum() + np.sum((prior.weight @ (unknowns - start)) ** 2))
    return LeastSquares(
        unknowns=unknowns,
        covariance=inverse @ inverse.T,
        chi_square=chi_square,
        degrees_of_freedom=int(sure.dimension[active].sum()) + prior.determined - len(start),
        used=used,
        cost=chi_square + float(square_exceeded_by(_OUTLIER_PROBABILITY, sure.dimension[~active]).sum()),
    )


def _squares(residual: FloatArray) -> FloatArray:
    """Return squared residual (m,) of each observation in units of its own noise."""
    return np.asarray(np.einsum("mi,mi->m", residual, residual))


@dataclasses.dataclass(frozen=True, eq=False)
class _Arc:
    """The measurements of one object, with residuals and partials by its unknowns."""

    measurements: Measurements
    motion: ArcMotion
    start: FloatArray
    prior: ArcPrior

    def converge(self, unknowns: FloatArray, active: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Unknowns (k,), whitened rows (j, k) of what is active and of the prior, residual (m, 6).

        Raises NoOrbit where the observations are too few, the start has no motion, or the steps do not converge.
        """
        given, count, weight = int(self.measurements.dimension[active].sum()), len(unknowns), self.prior.weight
        if given < count - self.prior.determined:
            raise NoOrbit(f"{given} measured numbers cannot determine six elements")
        damping, design, residual = _LEAST_DAMPING, *self._whitened(unknowns)
        cost = self._cost(residual, active, unknowns)
        if not np.isfinite(cost):
            raise NoOrbit("the first orbit has no state at the time of a measurement")
        for _ in range(_STEPS):
            rows = np.vstack([design[active].reshape(-1, count), weight])
            right_side = np.concatenate([residual[active].ravel(), weight @ (self.start - unknowns)])
            scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
            # Not the normal equations: squared, a short arc's condition number would exceed double precision.
            u, size, vt = np.linalg.svd(rows / scale, full_matrices=False)
            projected = u.T @ right_side
            if projected @ projected < _NOTHING_TO_GAIN:
                return unknowns, rows, residual
            trial = unknowns + vt.T @ (projected * size / (size**2 + damping)) / scale
            trial_design, trial_residual = self._whitened(trial)
            trial_cost = self._cost(trial_residual, active, trial)
            if np.isfinite(trial_cost) and trial_cost <= cost:
                flat = cost - trial_cost < _NOTHING_TO_GAIN and damping <= _LEAST_DAMPING
                unknowns, cost, design, residual = trial, trial_cost, trial_design, trial_residual
                damping = max(damping / 3, _LEAST_DAMPING)
                if flat:
                    return unknowns, rows, residual
            elif damping > _MOST_DAMPING:
                break
            else:
                damping *= 10
        raise NoOrbit("the differential correction does not converge")

    def _cost(self, residual: FloatArray, active: BoolArray, unknowns: FloatArray) -> float:
        return float(np.sum(residual[active] ** 2) + np.sum((self.prior.weight @ (unknowns - self.start)) ** 2))

    def _whitened(self, unknowns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Design (m, 6, k) and residual (m, 6) in units of the noise."""
        state, partials = self.motion.states(unknowns, self.measurements.time_ns)
        line: Linearisation = self.measurements.linearise(state[:, :3], state[:, 3:])
        if not np.isfinite(state).all():
            return np.full(partials.shape, np.nan), np.full((len(state), 6), np.nan)
        weight = np.linalg.inv(np.linalg.cholesky(line.noise))
        return weight @ line.partials @ partials, np.einsum("mij,mj->mi", weight, line.residual)
