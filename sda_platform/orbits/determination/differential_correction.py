"""SGP4 elements from observations: differential correction over any arc, and initial orbits of unknown objects.

Dynamics are SGP4's own, so that the result is an element set like any other in the catalogue. The unknowns are the
six equinoctial mean elements; the drag term is kept.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.determination.initial_orbit import NoOrbit, orbit_from_directions, orbit_from_positions
from sda_platform.orbits.determination.least_squares import ArcPrior, GoodnessOfFit, solve
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import (
    DIFFERENCE,
    from_equinoctial,
    mean_elements,
    states_and_partials,
    to_equinoctial,
)
from sda_platform.orbits.sensing.measurement_model import OPTICAL
from sda_platform.orbits.sensing.measurements import Measurements, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays

_SMOOTHED_FROM = 8


@dataclasses.dataclass(frozen=True, eq=False)
class UncertainElements:
    """An element set with its covariance."""

    elements: ElementSets
    """One row."""
    covariance: FloatArray
    """(6, 6) of the equinoctial mean elements, in the units of ``orbits.mean_elements``."""


@dataclasses.dataclass(frozen=True, eq=False)
class Correction(UncertainElements, GoodnessOfFit):
    """Differentially corrected elements."""

    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    """(3,), (3,) at the epoch."""
    covariance_teme: FloatArray
    """(6, 6) at the epoch, km and km/s."""


def correct_elements(observations: ObservationArrays, elements: ElementSets) -> Correction:
    """Return the element set at the epoch of ``elements`` that fits the observations best, in weighted least squares.

    Args:
        observations: (m,) of one object, in any order.
        elements: one row to start from; its drag term is kept.

    Raises:
        NoOrbit: as `least_squares.solve`, also where SGP4 rejects elements.
    """
    motion = _MeanMotion(elements)
    fit = solve(observations, motion, to_equinoctial(elements)[0], ArcPrior.none(6))
    state, partials = motion.states(fit.unknowns, elements.epoch_time_ns)
    return Correction(
        elements=motion.element_sets(fit.unknowns[None]),
        covariance=fit.covariance,
        r_teme_km=state[0, :3],
        v_teme_km_s=state[0, 3:],
        covariance_teme=partials[0] @ fit.covariance @ partials[0].T,
        chi_square=fit.chi_square,
        degrees_of_freedom=fit.degrees_of_freedom,
        used=fit.used,
        cost=fit.cost,
    )


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
    """Return positions in an arc of ``count`` observations: all, the middle half, the middle quarter, and so on."""
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
class _MeanMotion:
    """SGP4's motion as a function of equinoctial mean elements."""

    elements: ElementSets
    """One row with epoch, number and drag term."""

    def states(self, unknowns: FloatArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (m, 6) and their derivatives (m, 6, 6) by the unknowns."""
        return states_and_partials(unknowns, DIFFERENCE, self.element_sets, time_ns)

    def element_sets(self, unknowns: FloatArray) -> ElementSets:
        """Sets (n,) of unknowns (n, 6)."""
        made = from_equinoctial(unknowns, self.elements.epoch_time_ns[0], self.elements.bstar_per_earth_radius[0])
        return dataclasses.replace(made, norad_id=np.repeat(self.elements.norad_id, len(unknowns)))
