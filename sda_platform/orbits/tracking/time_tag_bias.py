"""Sensor time-tag biases: one offset per source, estimated jointly with the states of the observed objects.

A clock that runs ahead stamps observations late in their object's motion. The residuals are then proportional to the
rate of change of each observation, over all objects alike. The objects' states are unknowns too, and are eliminated.
Sources with disciplined clocks (links) anchor the estimate, as does the catalogue by its size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray, TextArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.fit_kernels import normal_equations
from sda_platform.orbits.sensing.measurement_model import whitened_rates
from sda_platform.orbits.sensing.measurements import clock_bound_s
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.problem import Problem, pose

_ROUNDS = 4


@dataclasses.dataclass(frozen=True, eq=False)
class TimeTagBiases:
    """Clock less true time of the ``s`` sources that are no references, each array (s,), by name."""

    source_id: TextArray
    offset_s: FloatArray
    """Bias: positive where the clock is ahead."""
    sigma_s: FloatArray
    """One sigma, scaled by the residuals' excess over their noise."""
    observation_count: IntArray
    anchors: IntArray
    """Number of references that observed the same objects in the same windows."""
    bound_s: FloatArray
    """Largest time-tag error that the clock's quality allows, over the source's observations."""
    residual_rms: FloatArray
    """Root mean square of the residuals in units of their noise, before correction."""


def estimate_time_tag_biases(
    observations: ObservationArrays,
    group: npt.ArrayLike,
    propagator: Propagator,
    index: npt.ArrayLike,
    mid_time_ns: npt.ArrayLike,
    *,
    references: Collection[str] = (),
    prior_sigma_s: float = 1.0,
) -> TimeTagBiases:
    """Estimate the biases of all sources but the references, by weighted least squares over windows of many objects.

    Runs twice: observations that the first estimate shows to be outliers are left out of the second.

    Args:
        observations, group, propagator, index, mid_time_ns: as of ``estimation.fit_windows``.
        references: sources whose stated clock quality is reliable.
        prior_sigma_s: 1 sigma of the bias of any other clock, whatever its stated quality.

    Source: elimination of the windows' states (Schur complement): Bierman, Factorization Methods (1977), chapter VI.
    """
    windows: IntArray = np.asarray(group, dtype=np.int64)
    objects, middle_ns = np.asarray(index, dtype=np.int64), np.asarray(mid_time_ns, dtype=np.int64)

    def estimate(used: BoolArray) -> TimeTagBiases:
        problem, order = pose(observations.take(used), windows[used], propagator, objects, middle_ns)
        return _estimate(problem, observations.take(used).take(order), references, prior_sigma_s)

    first = estimate(windows >= 0)
    fits = fit_windows(corrected(observations, first), windows, propagator, objects, middle_ns)
    return estimate(fits.used)


def corrected(observations: ObservationArrays, offsets: TimeTagBiases) -> ObservationArrays:
    """Return the observations with the biases subtracted from their times, and the uncertainty of that correction.

    Sources without an estimate are unchanged.
    """
    if not len(offsets.source_id):
        return observations
    place = np.minimum(np.searchsorted(offsets.source_id, observations.source_id), len(offsets.source_id) - 1)
    known = offsets.source_id[place] == observations.source_id
    shift_ns = np.where(known, np.round(offsets.offset_s[place] * 1e9), 0).astype(np.int64)
    return dataclasses.replace(
        observations,
        sensor_time_ns=observations.sensor_time_ns - shift_ns,
        clock_correction_sigma_s=np.where(known, offsets.sigma_s[place], np.nan),
    )


def _estimate(
    problem: Problem, observations: ObservationArrays, references: Collection[str], prior_sigma_s: float
) -> TimeTagBiases:
    """Biases from a problem whose rows are these observations."""
    is_estimated = ~np.isin(observations.source_id, list(references))
    names, source_of_estimated = np.unique(observations.source_id[is_estimated], return_inverse=True)
    source = np.full(len(is_estimated), -1)
    source[is_estimated] = source_of_estimated
    # The bias of an estimated source is an unknown, so it is not part of the noise.
    time_sigma_s = np.where(is_estimated, 0.0, problem.measurements.time_sigma_s)
    exact = dataclasses.replace(problem.measurements, time_sigma_s=time_sigma_s)
    solution = _solve(dataclasses.replace(problem, measurements=exact), source, len(names), prior_sigma_s)
    largest_bound_s = np.zeros(len(names))
    np.maximum.at(largest_bound_s, source_of_estimated, clock_bound_s(observations)[is_estimated])
    numbers = np.bincount(source_of_estimated, problem.measurements.dimension[is_estimated], minlength=len(names))

    def root_mean_square(residual: FloatArray) -> FloatArray:
        squares = np.bincount(source_of_estimated, (residual[is_estimated] ** 2).sum(axis=1), minlength=len(names))
        return np.asarray(np.sqrt(squares / np.maximum(numbers, 1)))

    return TimeTagBiases(
        source_id=names,
        offset_s=solution.offset_s,
        sigma_s=np.sqrt(np.diag(solution.covariance)) * np.maximum(root_mean_square(solution.corrected), 1.0),
        observation_count=np.bincount(source_of_estimated, minlength=len(names)),
        anchors=_anchors(problem.group, observations.source_id, is_estimated, names),
        bound_s=largest_bound_s,
        residual_rms=root_mean_square(solution.residual),
    )


def _anchors(group: IntArray, source_id: TextArray, is_estimated: BoolArray, names: TextArray) -> IntArray:
    """Number of references that observed objects in windows shared with each of ``names``."""
    references_in_windows = [
        np.unique(source_id[~is_estimated & np.isin(group, group[is_estimated & (source_id == name)])])
        for name in names
    ]
    return np.array([len(references) for references in references_in_windows], dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Solution:
    offset_s: FloatArray
    covariance: FloatArray
    residual: FloatArray
    """(m, 6) residuals of the uncorrected observations against the objects' states, in units of noise."""
    corrected: FloatArray
    """(m, 6) residuals after correction."""


def _solve(problem: Problem, source: IntArray, source_count: int, prior_sigma_s: float) -> _Solution:
    """Biases (s,) and their covariance (s, s), by Gauss-Newton in biases and states together.

    ``source``: (m,) index of the source that stamped each observation; -1 for a reference.
    """
    count = len(problem.prior.r_mid)
    rows = np.arange(len(problem.group))
    columns = problem.measurements.columns
    rates = whitened_rates(columns, rows, problem.r_obs, problem.v_obs)
    rates[source < 0] = 0.0
    source_or_0 = np.maximum(source, 0)
    prior = np.full(source_count, prior_sigma_s**-2)
    states, offset_s, covariance = (
        np.zeros((count, 6)),
        np.zeros(source_count),
        np.zeros((source_count, source_count)),
    )
    all_rows = np.ones(len(rows), dtype=bool)

    def residuals() -> tuple[FloatArray, FloatArray]:
        design, residual = np.empty((len(rows), 6, 6)), np.empty((len(rows), 6))
        problem.linearise(rows, states, problem.group, design, residual)
        return design, residual

    def by_source(values: FloatArray) -> FloatArray:
        return np.bincount(source_or_0, values.sum(axis=1), minlength=source_count).astype(np.float64)

    for _ in range(_ROUNDS if source_count else 0):
        design, residual = residuals()
        residual = residual + rates * offset_s[source_or_0][:, None]
        normal, gradient, _ = normal_equations(rows, design, residual, problem.group, all_rows, count)
        normal += np.eye(6)
        gradient -= states
        coupling = np.zeros((source_count, count, 6))
        np.add.at(coupling, (source_or_0, problem.group), -np.einsum("kij,ki->kj", design, rates))
        inverse = np.linalg.inv(normal)
        eliminated = np.einsum("sgi,gij->sgj", coupling, inverse)
        information = np.diag(prior + by_source(rates**2)) - np.einsum("sgj,tgj->st", eliminated, coupling)
        right_side = -by_source(rates * residual) - prior * offset_s - np.einsum("sgj,gj->s", eliminated, gradient)
        covariance = np.linalg.inv(information)
        step_s = covariance @ right_side
        states = states + np.einsum("gij,gj->gi", inverse, gradient - np.einsum("sgj,s->gj", coupling, step_s))
        offset_s = offset_s + step_s
    residual = residuals()[1]
    return _Solution(
        offset_s, covariance, residual, residual + rates * offset_s[source_or_0][:, None] if source_count else residual
    )
