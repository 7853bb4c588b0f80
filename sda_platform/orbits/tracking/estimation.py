"""Weighted least squares per object and time window, with the SGP4 prediction as prior (see ``problem``).

Rows are sorted canonically first. The result is therefore the same to the last bit for any order of arrival, and for
any other windows fitted in the same call.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.chi_square import square_exceeded_by
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.fit_kernels import apply_step, deletion_residuals, normal_equations
from sda_platform.orbits.sensing.measurement_model import ISL, OPTICAL, RADAR
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.problem import Problem, pose, states

_MAX_ITERATIONS = 12
# In units of the fit's own sigmas. The last step is applied; its remainder is of second order.
_LAST_STEP = 0.1
OUTLIER_PROBABILITY = 1e-5
REJECT_TOGETHER = 0.5
# Selections may cycle; a dozen resolve every window that can be resolved.
MAX_SELECTIONS = 12


@dataclasses.dataclass(frozen=True, eq=False)
class StateFits:
    """Fitted states of ``g`` windows at their middle times, TEME, one array per quantity."""

    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    covariance_teme: FloatArray
    """(g, 6, 6) km and km/s."""
    predicted_r_teme_km: FloatArray
    predicted_v_teme_km_s: FloatArray
    prior_covariance_teme: FloatArray
    """(g, 6, 6) of the predicted states."""
    chi_square: FloatArray
    """(g,) weighted squares of the residuals and of the deviation from the prior together."""
    degrees_of_freedom: IntArray
    """(g,) number of fitted components; the prior adds six equations for the six unknowns."""
    radar_count: IntArray
    optical_count: IntArray
    isl_count: IntArray
    outliers_rejected: IntArray
    unusable: IntArray
    """(g,) observations left out because source, numbers or prediction are missing."""
    iterations: IntArray
    converged: BoolArray
    """(g,) False where the fit did not converge or SGP4 rejects the object (the state is NaN then)."""
    used: BoolArray
    """(m,) which observations, in the caller's order, entered their window's fit."""


def fit_windows(
    observations: ObservationArrays,
    group: npt.ArrayLike,
    propagator: Propagator,
    index: npt.ArrayLike,
    mid_time_ns: npt.ArrayLike,
    further: FloatArray | None = None,
) -> StateFits:
    """Bayesian weighted least squares of many windows at once.

    Gauss-Newton from the SGP4 state, with the prior covariance as a-priori information. After convergence,
    observations with a deletion residual less probable than 1 in 100,000 are rejected, largest first, and the window
    is fitted again. A rejected observation that fits again is readmitted. A majority of each window's observations
    always stays. Time-tag errors are shared by all of a source's observations in the window.

    Args:
        observations: (m,) in any order.
        group: (m,) the window, in [0, g), each observation belongs to; negative leaves it out.
        propagator: the catalogue.
        index: (g,) position in the catalogue of each window's object.
        mid_time_ns: (g,) time of each window's state.
        further: (g, 6, 6) what adds to the covariance of each window's prior, TEME, km and km/s.

    Raises:
        ValueError: a window's object is not in the catalogue.

    Source: Tapley, Schutz & Born, Statistical Orbit Determination (2004), section 4.6; deletion residuals: Baarda
    (1968), A Testing Procedure for Use in Geodetic Networks.
    """
    groups: IntArray = np.asarray(group, dtype=np.int64)
    objects: IntArray = np.asarray(index, dtype=np.int64)
    if ((objects < 0) | (objects >= len(propagator))).any():
        raise ValueError(f"object positions must be in [0, {len(propagator)}), got {objects.tolist()}")
    problem, order = pose(
        observations,
        groups,
        propagator,
        objects,
        np.asarray(mid_time_ns, dtype=np.int64),
        further,
    )
    solution = _solve(problem)
    return _report(problem, solution, order, groups)


@dataclasses.dataclass(eq=False)
class _Solution:
    whitened: FloatArray
    information: FloatArray
    design: FloatArray
    """(k, 6, 6) and residual (k, 6) of the rows in units of their noise, after the last step to first order."""
    residual: FloatArray
    chi_square: FloatArray
    iterations: IntArray
    converged: BoolArray
    active: BoolArray
    outliers: IntArray
    selections: IntArray


def _solve(problem: Problem) -> _Solution:
    count, rows = len(problem.prior.r_mid), len(problem.group)
    state = _Solution(
        whitened=np.zeros((count, 6)),
        information=np.broadcast_to(np.eye(6), (count, 6, 6)).copy(),
        design=np.empty((rows, 6, 6)),
        residual=np.empty((rows, 6)),
        chi_square=np.zeros(count),
        iterations=np.zeros(count, dtype=np.int64),
        converged=np.zeros(count, dtype=bool),
        active=np.ones(rows, dtype=bool),
        outliers=np.zeros(count, dtype=np.int64),
        selections=np.zeros(count, dtype=np.int64),
    )
    sizes = np.bincount(problem.group, minlength=count)
    # A single observation may contradict the prior; of several, a majority must remain.
    must_keep = np.where(sizes > 1, sizes // 2 + 1, 0)
    open_windows = problem.prior.known.copy()
    while open_windows.any():
        _converge(problem, state, open_windows)
        open_windows = _select(problem, state, open_windows, must_keep)
    return state


def _converge(problem: Problem, state: _Solution, open_windows: BoolArray) -> None:
    """Gauss-Newton on the open windows; each converges independently of the others."""
    iterating = open_windows.copy()
    # Each solution starts from the prediction, so that a rejected outlier leaves no trace in the state.
    state.whitened[iterating] = 0.0
    state.converged[iterating] = False
    state.iterations[iterating] = 0
    while iterating.any():
        rows = np.flatnonzero(iterating[problem.group])
        live = np.flatnonzero(iterating)
        position = (np.cumsum(iterating) - 1)[problem.group]
        at = state.whitened[live]
        problem.linearise(rows, at, position, state.design, state.residual)
        normal, gradient, square = normal_equations(
            rows, state.design, state.residual, position, state.active, len(live)
        )
        normal += np.eye(6)
        gradient -= at
        step = np.linalg.solve(normal, gradient[:, :, None])[:, :, 0]
        gain = np.einsum("gi,gi->g", gradient, step)
        apply_step(rows, state.design, state.residual, position, step)
        state.whitened[live] = at + step
        state.information[live] = normal
        state.chi_square[live] = np.maximum(square + np.einsum("gi,gi->g", at, at) - gain, 0.0)
        state.iterations[live] += 1
        converged_now = gain < _LAST_STEP**2
        state.converged[live[converged_now]] = True
        iterating[live[converged_now | (state.iterations[live] >= _MAX_ITERATIONS)]] = False


def _select(problem: Problem, state: _Solution, open_windows: BoolArray, must_keep: IntArray) -> BoolArray:
    """Reject observations inconsistent with the rest of their window, and readmit those that are consistent again.

    At a time, only outliers at least half as large as the window's largest are rejected, because the largest distorts
    the residuals of the others. Returns the windows to fit again.
    """
    rows = np.flatnonzero(open_windows[problem.group])
    again = np.zeros_like(open_windows)
    if not len(rows):
        return again
    window = problem.group[rows]
    posterior = np.zeros_like(state.information)
    posterior[open_windows] = np.linalg.inv(state.information[open_windows])
    deletion_residual = deletion_residuals(rows, state.design, state.residual, problem.group, posterior, state.active)
    limits = square_exceeded_by(OUTLIER_PROBABILITY, np.arange(1, 7))
    excess = deletion_residual / limits[problem.measurements.dimension[rows] - 1]
    worst = np.zeros(len(open_windows))
    np.maximum.at(worst, window, np.where(state.active[rows], excess, 0.0))
    selected = (excess <= 1.0) | (excess < REJECT_TOGETHER * worst[window])
    kept = np.bincount(window[selected], minlength=len(open_windows))
    changed = np.bincount(window[selected != state.active[rows]], minlength=len(open_windows)) > 0
    again = open_windows & changed & (kept >= must_keep) & (state.selections < MAX_SELECTIONS)
    changed_rows = again[window]
    state.active[rows[changed_rows]] = selected[changed_rows]
    state.selections[again] += 1
    state.outliers = np.bincount(problem.group[~state.active], minlength=len(open_windows))
    return again


def _report(problem: Problem, solution: _Solution, order: IntArray, group: IntArray) -> StateFits:
    prior, count = problem.prior, len(problem.prior.r_mid)
    r_teme_km, v_teme_km_s, covariance = states(prior, solution.whitened, solution.information)
    active = solution.active
    kinds = {
        kind: np.bincount(problem.group[active & (problem.measurements.kind == kind)], minlength=count)
        for kind in (RADAR, OPTICAL, ISL)
    }
    dimension = np.bincount(problem.group[active], problem.measurements.dimension[active], minlength=count)
    given = np.bincount(group[group >= 0], minlength=count)
    used = np.zeros(len(group), dtype=bool)
    used[order[active]] = True
    return StateFits(
        r_teme_km=r_teme_km,
        v_teme_km_s=v_teme_km_s,
        covariance_teme=covariance,
        predicted_r_teme_km=prior.r_mid,
        predicted_v_teme_km_s=prior.v_mid,
        prior_covariance_teme=prior.covariance,
        chi_square=np.where(prior.known, solution.chi_square, np.nan),
        degrees_of_freedom=dimension.astype(np.int64),
        radar_count=kinds[RADAR],
        optical_count=kinds[OPTICAL],
        isl_count=kinds[ISL],
        outliers_rejected=solution.outliers,
        unusable=given - np.bincount(problem.group, minlength=count),
        iterations=solution.iterations,
        converged=solution.converged,
        used=used,
    )
