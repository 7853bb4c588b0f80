"""SGP4 elements from observations: differential correction over any arc, and initial orbits of unknown objects.

Dynamics are SGP4's own, so that the result is an element set like any other in the catalogue. The unknowns are the
six equinoctial mean elements; the drag term is kept.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.determination.initial_orbit import NoOrbit, orbit_from_directions, orbit_from_positions
from sda_platform.orbits.elements import ElementSets, FloatArray, IntArray
from sda_platform.orbits.mean_elements import from_equinoctial, mean_elements, states_and_partials, to_equinoctial
from sda_platform.orbits.sensing.measurement_model import OPTICAL
from sda_platform.orbits.sensing.measurements import Linearisation, Measurements, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays

_STEPS = 100
_NOTHING_TO_GAIN = 1e-2
_OUTLIER_PROBABILITY = 1e-5
_IMPLAUSIBLE = 1e-6
# Steps of the numerical partials, in the unknowns' units: their cubes and SGP4's rounding are both far below
# 1e-8.
_DIFFERENCE = np.array([1e-9, 3e-6, 3e-6, 3e-6, 3e-6, 3e-6])
# In units of the largest singular value of the scaled design, squared.
_LEAST_DAMPING, _MOST_DAMPING = 1e-14, 1e4
_SMOOTHED_FROM = 8


@dataclasses.dataclass(frozen=True, eq=False)
class UncertainElements:
    """An element set with its covariance."""

    elements: ElementSets
    """One row."""
    covariance: FloatArray
    """(6, 6) of the equinoctial mean elements, in the units of ``orbits.mean_elements``."""


@dataclasses.dataclass(frozen=True, eq=False)
class Correction(UncertainElements):
    """Differentially corrected elements."""

    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    """(3,), (3,) at the epoch."""
    covariance_teme: FloatArray
    """(6, 6) at the epoch, km and km/s."""
    chi_square: float
    """Of the observations used and, with a prior, of the deviation from it."""
    degrees_of_freedom: int
    """Components used, less six unknowns where no prior determines them."""
    used: npt.NDArray[np.bool_]
    """(m,) which observations the fit uses; the others were unusable or outliers."""

    @property
    def is_plausible(self) -> bool:
        """Whether noise alone leaves residuals of this size in at least one of a million fits."""
        return self.degrees_of_freedom >= 0 and bool(
            chi2.sf(self.chi_square, max(self.degrees_of_freedom, 1)) > _IMPLAUSIBLE
        )


def correct_elements(
    observations: ObservationArrays,
    elements: ElementSets,
    prior: FloatArray | None = None,
) -> Correction:
    """The element set at the epoch of ``elements`` that fits the observations best, in weighted least squares.

    Levenberg-Marquardt steps. Observations with residuals that chance exceeds less than once in 100,000 are then left
    out, at most half of them. The rest is fitted again.

    Args:
        observations: (m,) of one object, in any order.
        elements: one row to start from; its drag term is kept.
        prior: (6, 6) covariance of the equinoctial mean elements of ``elements``, if they count as evidence.

    Raises:
        NoOrbit: fewer than six measured numbers and no prior, elements that SGP4 rejects, or no convergence.

    Source: Tapley, Schutz & Born, Statistical Orbit Determination (2004), section 4.3; Marquardt 1963.
    """
    order = observations.canonical_order(np.zeros(len(observations), dtype=np.int64))
    measurements = prepare(observations.take(order))
    usable = np.flatnonzero(measurements.usable)
    of_object = np.zeros(len(usable), dtype=np.int64)
    sure = measurements.take(usable).with_shared_clock_errors(of_object, observations.source_id[order[usable]])
    arc = _Arc(sure, elements, prior)
    active = np.ones(len(usable), dtype=bool)
    unknowns, rows, fit = arc.converge(to_equinoctial(elements)[0], active)
    for _ in range(len(usable)):
        excess = arc.excess(fit) / chi2.isf(_OUTLIER_PROBABILITY, arc.measurements.dimension)
        keep = excess <= max(1.0, 0.5 * float(excess[active].max(initial=0.0)))
        if (keep == active).all() or 2 * keep.sum() < len(usable):
            break
        active = keep
        unknowns, rows, fit = arc.converge(unknowns, active)
    used = np.zeros(len(observations), dtype=bool)
    used[order[usable[active]]] = True
    return arc.report(unknowns, rows, fit, active, used)


def first_orbit(observations: ObservationArrays) -> Correction:
    """Initial orbit of one tracklet: three observations, then differential correction with all of them.

    Radar and link observations are positions; angles-only observations are directions. The epoch is the middle
    observation's time. Three observations of the whole arc may give no orbit, as over an hour of an eccentric one. Then
    the middle half is tried, then the middle quarter.

    Raises:
        NoOrbit: fewer than three usable observations of one type, observations that determine no orbit (see
            ``initial_orbit``), or residuals that noise does not explain.
    """
    measurements = prepare(observations)
    measurements = measurements.take(np.flatnonzero(measurements.usable))
    measurements = measurements.take(np.argsort(measurements.time_ns, kind="stable"))
    placed = measurements.kind != OPTICAL
    chosen = measurements.take(np.flatnonzero(placed if placed.sum() >= min(3, (~placed).sum()) else ~placed))
    if len(chosen) < 3:
        raise NoOrbit(f"{len(chosen)} looks of one sort; three are needed")
    refusals = []
    for part in _middle_parts(len(chosen)):
        try:
            corrected = correct_elements(observations, _by_three(chosen.take(part)))
        except NoOrbit as refusal:
            refusals.append(refusal)
            continue
        if corrected.is_plausible:
            return corrected
        freedom = corrected.degrees_of_freedom
        refusals.append(
            NoOrbit(f"residuals of {corrected.chi_square:.0f} squared sigmas, {freedom} degrees of freedom")
        )
    raise refusals[0]


def _middle_parts(count: int) -> list[IntArray]:
    """Positions in an arc of ``count`` observations: all, the middle half, the middle quarter, and so on."""
    halves = [np.arange(count)]
    while len(halves[-1]) >= 2 * _SMOOTHED_FROM:
        quarter = len(halves[-1]) // 4
        halves.append(halves[-1][quarter:-quarter])
    return halves


def _by_three(chosen: Measurements) -> ElementSets:
    """Elements at the middle one of three observations, in order of time, from these alone."""
    start_ns = int(chosen.time_ns[0])
    elapsed_s = (chosen.time_ns - start_ns) / 1e9
    three = [0, len(chosen) // 2, -1]
    times = elapsed_s[three]
    if chosen.kind[0] != OPTICAL:
        r, v = orbit_from_positions(_smoothed(chosen.position_km(), elapsed_s, times), times)
    else:
        r, v = orbit_from_directions(chosen.site_km[three], _smoothed(chosen.direction, elapsed_s, times), times)
    return mean_elements(r, v, start_ns + round(float(times[1]) * 1e9))


def _smoothed(vectors: FloatArray, elapsed_s: FloatArray, times: FloatArray) -> FloatArray:
    """Vectors (3, 3) at three times from a cubic through many noisy ones (m, 3); a few are used without smoothing."""
    if len(vectors) < _SMOOTHED_FROM:
        return vectors[[0, len(vectors) // 2, -1]]
    middle, scale = times[1], max(float(times[2] - times[0]), 1e-9)
    powers = np.vander((elapsed_s - middle) / scale, 4)
    cubic = np.linalg.lstsq(powers, vectors, rcond=None)[0]
    return np.asarray(np.vander((times - middle) / scale, 4) @ cubic)


@dataclasses.dataclass(frozen=True, eq=False)
class _Arc:
    """The measurements of one object, with residuals and partials by its elements."""

    measurements: Measurements
    elements: ElementSets
    prior: FloatArray | None

    def converge(
        self, unknowns: FloatArray, active: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
        """Levenberg-Marquardt solution: unknowns (6,), whitened rows (k, 6), design and residual.

        Raises NoOrbit where the observations are too few, SGP4 rejects the start, or the steps do not converge.
        """
        given = int(self.measurements.dimension[active].sum())
        if self.prior is None and given < 6:
            raise NoOrbit(f"{given} measured numbers cannot determine six elements")
        start = unknowns
        weight = np.zeros((6, 6)) if self.prior is None else np.linalg.inv(np.linalg.cholesky(self.prior))
        damping, design, residual = _LEAST_DAMPING, *self._whitened(unknowns)
        cost = self._cost(residual, active, unknowns - start, weight)
        if not np.isfinite(cost):
            raise NoOrbit("SGP4 refuses the first orbit at the time of a measurement")
        for _ in range(_STEPS):
            rows = np.vstack([design[active].reshape(-1, 6), weight])
            right_side = np.concatenate([residual[active].ravel(), weight @ (start - unknowns)])
            scale = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
            # Not the normal equations: squared, a short arc's condition number would exceed double precision.
            u, size, vt = np.linalg.svd(rows / scale, full_matrices=False)
            projected = u.T @ right_side
            if projected @ projected < _NOTHING_TO_GAIN:
                return unknowns, rows, (design, residual)
            trial = unknowns + vt.T @ (projected * size / (size**2 + damping)) / scale
            trial_fit = self._whitened(trial)
            trial_cost = self._cost(trial_fit[1], active, trial - start, weight)
            if np.isfinite(trial_cost) and trial_cost <= cost:
                flat = cost - trial_cost < _NOTHING_TO_GAIN and damping <= _LEAST_DAMPING
                unknowns, cost, (design, residual) = trial, trial_cost, trial_fit
                damping = max(damping / 3, _LEAST_DAMPING)
                if flat:
                    return unknowns, rows, (design, residual)
            elif damping > _MOST_DAMPING:
                break
            else:
                damping *= 10
        raise NoOrbit("the differential correction does not converge")

    def excess(self, fit: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Squared residual (m,) of each observation in units of its own noise."""
        return np.asarray(np.einsum("mi,mi->m", fit[1], fit[1]))

    def report(
        self,
        unknowns: FloatArray,
        rows: FloatArray,
        fit: tuple[FloatArray, FloatArray],
        active: npt.NDArray[np.bool_],
        used: npt.NDArray[np.bool_],
    ) -> Correction:
        scale = np.linalg.norm(rows, axis=0)
        inverse = np.linalg.pinv(rows / scale, rcond=1e-15) / scale[:, None]
        covariance = inverse @ inverse.T
        state, partials = self._states(unknowns, self.elements.epoch_time_ns)
        unique, deviation = 6, 0.0
        if self.prior is not None:
            step = unknowns - to_equinoctial(self.elements)[0]
            unique, deviation = 0, float(np.sum((np.linalg.inv(np.linalg.cholesky(self.prior)) @ step) ** 2))
        return Correction(
            elements=self._element_sets(unknowns[None]),
            covariance=covariance,
            r_teme_km=state[0, :3],
            v_teme_km_s=state[0, 3:],
            covariance_teme=partials[0] @ covariance @ partials[0].T,
            chi_square=float(self.excess(fit)[active].sum()) + deviation,
            degrees_of_freedom=int(self.measurements.dimension[active].sum()) - unique,
            used=used,
        )

    def _cost(
        self, residual: FloatArray, active: npt.NDArray[np.bool_], deviation: FloatArray, weight: FloatArray
    ) -> float:
        return float(np.sum(residual[active] ** 2) + np.sum((weight @ deviation) ** 2))

    def _whitened(self, unknowns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Design (m, 6, 6) and residual (m, 6) in units of the noise."""
        state, partials = self._states(unknowns, self.measurements.time_ns)
        line: Linearisation = self.measurements.linearise(state[:, :3], state[:, 3:])
        if not np.isfinite(state).all():
            return np.full((len(state), 6, 6), np.nan), np.full((len(state), 6), np.nan)
        weight = np.linalg.inv(np.linalg.cholesky(line.noise))
        return weight @ line.partials @ partials, np.einsum("mij,mj->mi", weight, line.residual)

    def _states(self, unknowns: FloatArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (m, 6) and their derivatives (m, 6, 6) by the unknowns."""
        return states_and_partials(unknowns, _DIFFERENCE, self._element_sets, time_ns)

    def _element_sets(self, unknowns: FloatArray) -> ElementSets:
        made = from_equinoctial(unknowns, self.elements.epoch_time_ns[0], self.elements.bstar_per_earth_radius[0])
        return dataclasses.replace(made, norad_id=np.repeat(self.elements.norad_id, len(unknowns)))
