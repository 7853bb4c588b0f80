"""Weighted least squares per object and time window, with the SGP4 prediction as prior (see ``problem``).

Rows are put in a canonical order first, so the result is the same
to the last bit whatever order they arrive in, and whichever other windows are fitted in the same call.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.linearisation import ISL, OPTICAL, RADAR, move, normal_equations, surprises
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.problem import Problem, pose, states

BoolArray = npt.NDArray[np.bool_]

_MAX_ITERATIONS = 12
# In units of the fit's own sigmas. The step itself is still taken, and what it leaves is of second order.
_LAST_STEP = 0.1
OUTLIER_PROBABILITY = 1e-5
LEAVE_TOGETHER = 0.5
# Choices may come back to an earlier one; a dozen sort out any window that can be sorted out.
MAX_CHOICES = 12


@dataclasses.dataclass(frozen=True, eq=False)
class StateFits:
    """Fitted states of ``g`` windows at their middle times, TEME, one array per quantity."""

    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    covariance_teme: FloatArray
    """(g, 6, 6) km and km/s."""
    predicted_r_teme_km: FloatArray
    predicted_v_teme_km_s: FloatArray
    chi_square: FloatArray
    """(g,) weighted squares of the residuals and of the deviation from the prior together."""
    degrees_of_freedom: IntArray
    """(g,) how many numbers were fitted; the prior adds six equations for the six unknowns."""
    radar_count: IntArray
    optical_count: IntArray
    isl_count: IntArray
    outliers_rejected: IntArray
    unusable: IntArray
    """(g,) observations left out because source, numbers or prediction are missing."""
    iterations: IntArray
    converged: BoolArray
    """(g,) False where the fit did not settle or SGP4 refuses the object (the state is NaN then)."""
    used: BoolArray
    """(m,) which observations, in the caller's order, entered their window's fit."""


@dataclasses.dataclass(frozen=True, eq=False)
class StateFit:
    """One window of ``StateFits``: r, v (3,), covariance (6, 6), the rest plain numbers."""

    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    covariance_teme: FloatArray
    predicted_r_teme_km: FloatArray
    predicted_v_teme_km_s: FloatArray
    chi_square: float
    degrees_of_freedom: int
    radar_count: int
    optical_count: int
    isl_count: int
    outliers_rejected: int
    unusable: int
    iterations: int
    converged: bool


def fit_window(
    observations: ObservationArrays,
    propagator: Propagator,
    index: int,
    mid_time_ns: int,
) -> StateFit:
    """Fit one object's observations of one window as ``fit_windows`` does; without any, the prior."""
    group = np.zeros(len(observations), dtype=np.int64)
    fits = fit_windows(observations, group, propagator, [index], [mid_time_ns])
    arrays = {field.name: getattr(fits, field.name) for field in dataclasses.fields(StateFit)}
    return StateFit(**{name: value[0] if value.ndim > 1 else value[0].item() for name, value in arrays.items()})


def fit_windows(
    observations: ObservationArrays,
    group: npt.ArrayLike,
    propagator: Propagator,
    index: npt.ArrayLike,
    mid_time_ns: npt.ArrayLike,
) -> StateFits:
    """Bayesian weighted least squares of many windows at once.

    Gauss-Newton from the SGP4 state, prior covariance as a-priori information. After it settles, observations that
    misfit a fit of the others as chance would less than once in 100,000 are dropped, worst first, and the window fitted
    again; one that fits after all comes back. A majority of the window stays, whatever it says. Clock errors count as
    shared by all of a source's observations in the window.

    Args:
        observations: (m,) in any order.
        group: (m,) the window, in [0, g), each observation belongs to; negative leaves it out.
        propagator: the catalogue.
        index: (g,) position in the catalogue of each window's object.
        mid_time_ns: (g,) time of each window's state.

    Raises:
        ValueError: a window's object is not in the catalogue.

    Source: Tapley, Schutz & Born, Statistical Orbit Determination (2004), section 4.6; deletion residuals:
    Baarda (1968), A Testing Procedure for Use in Geodetic Networks.
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
    )
    solution = _solve(problem)
    return _report(problem, solution, order, groups)


@dataclasses.dataclass(eq=False)
class _Solution:
    whitened: FloatArray
    information: FloatArray
    design: FloatArray
    """(k, 6, 6) and misfit (k, 6) of the rows in units of their noise, where the last step leads by first order."""
    misfit: FloatArray
    chi_square: FloatArray
    iterations: IntArray
    converged: BoolArray
    active: BoolArray
    outliers: IntArray
    choices: IntArray


def _solve(problem: Problem) -> _Solution:
    count, rows = len(problem.prior.r_mid), len(problem.group)
    state = _Solution(
        whitened=np.zeros((count, 6)),
        information=np.broadcast_to(np.eye(6), (count, 6, 6)).copy(),
        design=np.empty((rows, 6, 6)),
        misfit=np.empty((rows, 6)),
        chi_square=np.zeros(count),
        iterations=np.zeros(count, dtype=np.int64),
        converged=np.zeros(count, dtype=bool),
        active=np.ones(rows, dtype=bool),
        outliers=np.zeros(count, dtype=np.int64),
        choices=np.zeros(count, dtype=np.int64),
    )
    sizes = np.bincount(problem.group, minlength=count)
    # A lone reading may contradict the prior; of more, a majority must be left.
    must_keep = np.where(sizes > 1, sizes // 2 + 1, 0)
    open_windows = problem.prior.known.copy()
    while open_windows.any():
        _settle(problem, state, open_windows)
        open_windows = _choose(problem, state, open_windows, must_keep)
    return state


def _settle(problem: Problem, state: _Solution, open_windows: BoolArray) -> None:
    """Gauss-Newton on the open windows; each stops on its own account, whatever the others do."""
    moving = open_windows.copy()
    # From the prediction each time: where a dropped outlier had pulled the state must leave no trace.
    state.whitened[moving] = 0.0
    state.converged[moving] = False
    state.iterations[moving] = 0
    while moving.any():
        rows = np.flatnonzero(moving[problem.group])
        live = np.flatnonzero(moving)
        place = (np.cumsum(moving) - 1)[problem.group]
        at = state.whitened[live]
        problem.look(rows, at, place, state.design, state.misfit)
        normal, gradient, square = normal_equations(rows, state.design, state.misfit, place, state.active, len(live))
        normal += np.eye(6)
        gradient -= at
        step = np.linalg.solve(normal, gradient[:, :, None])[:, :, 0]
        gain = np.einsum("gi,gi->g", gradient, step)
        move(rows, state.design, state.misfit, place, step)
        state.whitened[live] = at + step
        state.information[live] = normal
        state.chi_square[live] = np.maximum(square + np.einsum("gi,gi->g", at, at) - gain, 0.0)
        state.iterations[live] += 1
        settled = gain < _LAST_STEP**2
        state.converged[live[settled]] = True
        moving[live[settled | (state.iterations[live] >= _MAX_ITERATIONS)]] = False


def _choose(problem: Problem, state: _Solution, open_windows: BoolArray, must_keep: IntArray) -> BoolArray:
    """Take the readings that disagree with the others out, and those back in that agree after all.

    Of a window's outliers only those at least half as far out as its worst leave at a time: the worst may have
    made the others look bad. Returns the windows to fit again.
    """
    rows = np.flatnonzero(open_windows[problem.group])
    again = np.zeros_like(open_windows)
    if not len(rows):
        return again
    window = problem.group[rows]
    posterior = np.zeros_like(state.information)
    posterior[open_windows] = np.linalg.inv(state.information[open_windows])
    surprise = surprises(rows, state.design, state.misfit, problem.group, posterior, state.active)
    excess = surprise / chi2.isf(OUTLIER_PROBABILITY, np.arange(1, 7))[problem.measurements.dimension[rows] - 1]
    worst = np.zeros(len(open_windows))
    np.maximum.at(worst, window, np.where(state.active[rows], excess, 0.0))
    chosen = (excess <= 1.0) | (excess < LEAVE_TOGETHER * worst[window])
    kept = np.bincount(window[chosen], minlength=len(open_windows))
    changed = np.bincount(window[chosen != state.active[rows]], minlength=len(open_windows)) > 0
    again = open_windows & changed & (kept >= must_keep) & (state.choices < MAX_CHOICES)
    taken = again[window]
    state.active[rows[taken]] = chosen[taken]
    state.choices[again] += 1
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
