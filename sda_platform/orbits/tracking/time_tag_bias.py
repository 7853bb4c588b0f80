"""Whose clock is off: one offset per source, estimated from everything it and the others saw.

A clock that runs ahead stamps readings late in their object's motion: residuals that go with the rate at which each
reading changes, over all objects alike. The objects' own states are unknowns, too, and eliminated; sources that are
known to be right (a link with a disciplined clock) anchor the rest, as does the catalogue by its sheer number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.linearisation import normal_equations, whitened_rates
from sda_platform.orbits.sensing.measurements import clock_bound_s
from sda_platform.orbits.sensing.observations import ObservationArrays, TextArray
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.problem import Problem, pose

BoolArray = npt.NDArray[np.bool_]

_ROUNDS = 4


@dataclasses.dataclass(frozen=True, eq=False)
class TimeTagBiases:
    """Clock less true time of the ``s`` sources that are no references, each array (s,), by name."""

    source_id: TextArray
    offset_s: FloatArray
    """How far the clock is ahead."""
    sigma_s: FloatArray
    """One sigma; larger by as much as the residuals that are left exceed their noise."""
    readings: IntArray
    anchors: IntArray
    """How many references saw what this source saw."""
    bound_s: FloatArray
    """The largest skew that the clock's quality allows, of any of the readings."""
    residual_rms: FloatArray
    """Root mean square of the residuals in units of their noise, before the clock is corrected."""


def estimate_time_tag_biases(
    observations: ObservationArrays,
    group: npt.ArrayLike,
    propagator: Propagator,
    index: npt.ArrayLike,
    mid_time_ns: npt.ArrayLike,
    *,
    references: Collection[str] = (),
    doubt_s: float = 1.0,
) -> TimeTagBiases:
    """Offsets of all sources but the references at once, by weighted least squares over windows of many objects.

    Twice: what a first estimate shows to be no reading of its object has no say in the second.

    Args:
        observations, group, propagator, index, mid_time_ns: as of ``estimation.fit_windows``.
        references: sources whose clocks are as good as they say.
        doubt_s: 1 sigma by which any other clock may be off, whatever it says.

    Source: elimination of the windows' states (Schur complement): Bierman, Factorization Methods (1977), chapter VI.
    """
    windows: IntArray = np.asarray(group, dtype=np.int64)
    objects, middle_ns = np.asarray(index, dtype=np.int64), np.asarray(mid_time_ns, dtype=np.int64)

    def estimate(used: BoolArray) -> TimeTagBiases:
        problem, order = pose(observations.take(used), windows[used], propagator, objects, middle_ns)
        return _estimate(problem, observations.take(used).take(order), references, doubt_s)

    first = estimate(windows >= 0)
    fits = fit_windows(corrected(observations, first), windows, propagator, objects, middle_ns)
    return estimate(fits.used)


def corrected(observations: ObservationArrays, offsets: TimeTagBiases) -> ObservationArrays:
    """The observations with the offsets taken out of their times, and how well these are known.

    Sources without one stay as they are.
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
    problem: Problem, observations: ObservationArrays, references: Collection[str], doubt_s: float
) -> TimeTagBiases:
    """Offsets from a problem whose rows are these observations."""
    doubted = ~np.isin(observations.source_id, list(references))
    names, source_of_doubted = np.unique(observations.source_id[doubted], return_inverse=True)
    source = np.full(len(doubted), -1)
    source[doubted] = source_of_doubted
    # Of the doubted the offset is solved for, so that it is no noise.
    time_sigma_s = np.where(doubted, 0.0, problem.measurements.time_sigma_s)
    exact = dataclasses.replace(problem.measurements, time_sigma_s=time_sigma_s)
    solution = _solve(dataclasses.replace(problem, measurements=exact), source, len(names), doubt_s)
    largest = np.zeros(len(names))
    np.maximum.at(largest, source_of_doubted, clock_bound_s(observations)[doubted])
    numbers = np.bincount(source_of_doubted, problem.measurements.dimension[doubted], minlength=len(names))

    def root_mean_square(misfit: FloatArray) -> FloatArray:
        squares = np.bincount(source_of_doubted, (misfit[doubted] ** 2).sum(axis=1), minlength=len(names))
        return np.asarray(np.sqrt(squares / np.maximum(numbers, 1)))

    return TimeTagBiases(
        source_id=names,
        offset_s=solution.offset_s,
        sigma_s=np.sqrt(np.diag(solution.covariance)) * np.maximum(root_mean_square(solution.corrected), 1.0),
        readings=np.bincount(source_of_doubted, minlength=len(names)),
        anchors=_anchors(problem.group, observations.source_id, doubted, names),
        bound_s=largest,
        residual_rms=root_mean_square(solution.misfit),
    )


def _anchors(group: IntArray, source_id: TextArray, doubted: BoolArray, names: TextArray) -> IntArray:
    """How many references saw objects in windows in which each of ``names`` saw them, too."""
    met = [np.unique(source_id[~doubted & np.isin(group, group[doubted & (source_id == name)])]) for name in names]
    return np.array([len(references) for references in met], dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Solution:
    offset_s: FloatArray
    covariance: FloatArray
    misfit: FloatArray
    """(m, 6) of the readings as they are stamped, against the objects' states, in units of their noise."""
    corrected: FloatArray
    """(m, 6) the same with the offsets taken out."""


def _solve(problem: Problem, source: IntArray, clocks: int, doubt_s: float) -> _Solution:
    """Offsets (s,) and their covariance (s, s), by Gauss-Newton in offsets and states together.

    ``source``: (m,) whose clock stamped each reading; -1 for one that is right.
    """
    count = len(problem.prior.r_mid)
    rows = np.arange(len(problem.group))
    readings = problem.measurements.readings
    rates = whitened_rates(readings, rows, problem.r_obs, problem.v_obs)
    rates[source < 0] = 0.0
    clock = np.maximum(source, 0)
    prior = np.full(clocks, doubt_s**-2)
    states, offset_s, covariance = np.zeros((count, 6)), np.zeros(clocks), np.zeros((clocks, clocks))
    everyone = np.ones(len(rows), dtype=bool)

    def misfits() -> tuple[FloatArray, FloatArray]:
        design, misfit = np.empty((len(rows), 6, 6)), np.empty((len(rows), 6))
        problem.look(rows, states, problem.group, design, misfit)
        return design, misfit

    def by_clock(values: FloatArray) -> FloatArray:
        return np.bincount(clock, values.sum(axis=1), minlength=clocks).astype(np.float64)

    for _ in range(_ROUNDS if clocks else 0):
        design, misfit = misfits()
        misfit = misfit + rates * offset_s[clock][:, None]
        normal, gradient, _ = normal_equations(rows, design, misfit, problem.group, everyone, count)
        normal += np.eye(6)
        gradient -= states
        coupling = np.zeros((clocks, count, 6))
        np.add.at(coupling, (clock, problem.group), -np.einsum("kij,ki->kj", design, rates))
        inverse = np.linalg.inv(normal)
        reached = np.einsum("sgi,gij->sgj", coupling, inverse)
        information = np.diag(prior + by_clock(rates**2)) - np.einsum("sgj,tgj->st", reached, coupling)
        right = -by_clock(rates * misfit) - prior * offset_s - np.einsum("sgj,gj->s", reached, gradient)
        covariance = np.linalg.inv(information)
        step_s = covariance @ right
        states = states + np.einsum("gij,gj->gi", inverse, gradient - np.einsum("sgj,s->gj", coupling, step_s))
        offset_s = offset_s + step_s
    misfit = misfits()[1]
    return _Solution(offset_s, covariance, misfit, misfit + rates * offset_s[clock][:, None] if clocks else misfit)
