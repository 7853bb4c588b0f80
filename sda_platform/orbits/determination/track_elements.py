"""Mean elements from a track: SGP4 elements that follow its numerical prediction over the next day.

A track predicts a day far better than SGP4 does. Elements are therefore fitted to that prediction, not to observations:
the error of SGP4 then is the one of a good fit, not of an extrapolated one. Their sigma counts both parts, which the
covariance of a fit to observations does not.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, orbits_of_teme
from sda_platform.orbits.earth_orientation import teme_of_gcrf
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import from_equinoctial, mean_elements, states_and_partials, to_equinoctial
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.units import SECOND_NS

SPAN_S = 86_400
"""The time that elements are for: from the newest window on."""
_STEP_S = 600
# Times at which the covariance of prediction is averaged over the span.
_QUARTERS = np.array([0.25, 0.5, 0.75, 1.0])
_ROUNDS = 15
# In sigmas: a smaller step changes nothing that matters.
_CONVERGED = 1e-3
# Steps of the numerical partials: metres of motion, well above SGP4's rounding; the last is B*, 1/earth radius.
_DIFFERENCE = np.array([1e-10, 1e-7, 1e-7, 1e-7, 1e-7, 1e-7, 1e-5])
# Share of the published sigma that a product's must not exceed. It was chosen among six on real geosynchronous arcs
# (`benchmarks/refined_elements.py --sp3`); no others of that kind judge it.
_BETTER = 0.4
# What SGP4 leaves out, about; it weighs positions against the drag term that the published set has, within this share
# of it and a little for sets with none.
_SGP4_SIGMA_KM, _DRAG_SHARE, _DRAG_LEAST = 0.5, 0.5, 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class ProductSigmas:
    """1 sigma of the position, root mean square over SPAN_S, of what a track gives and of the published set."""

    sigma_km: float
    """Of the prediction, and of the product against it."""
    published_sigma_km: float
    """Of the prediction, and of the published set against it."""

    @property
    def is_more_certain(self) -> bool:
        """Whether the published set is off by clearly more than the product may be, about twice its sigma."""
        return self.sigma_km < _BETTER * self.published_sigma_km


@dataclasses.dataclass(frozen=True, eq=False)
class TrackElements(ProductSigmas):
    """Elements that follow a track's prediction."""

    elements: ElementSets
    """One row, epoch at the newest window."""
    innovation: float
    """Squared normalised distance of the published set from the track, at the newest window."""


class NoFit(ValueError):
    """The track gives no element set; the message gives the reason."""


def elements_of_track(track: FilteredStates, published: Propagator, dynamics: Dynamics) -> TrackElements:
    """Elements that follow the numerical prediction of one object's track.

    Args:
        track: one row, with finite state.
        published: one row, the set to be refined with its object's error scale; its number carries over, and its drag
            term where a day does not determine one.
        dynamics: the numerical model.

    Raises:
        NoFit: the prediction meets the ground, SGP4 rejects a set, or the fit does not converge.

    Source: Hejduk et al. 2013, A catalogue-wide implementation of general perturbations orbit determination
    extrapolated from higher order orbital theory solutions (AAS 13-240).
    """
    orbit = _orbit(track)
    predicted, time_ns = _predicted(orbit, dynamics, SPAN_S)
    elements, off_km = elements_of_states(predicted, time_ns, published.elements)
    sigma_km = _predicted_sigma_km(orbit, dynamics)
    return TrackElements(
        elements=elements,
        sigma_km=float(np.hypot(off_km, sigma_km)),
        published_sigma_km=published_sigma_km(published, predicted, time_ns, sigma_km),
        innovation=_innovation(track, published),
    )


def following_elements(track: FilteredStates, published: Propagator, dynamics: Dynamics) -> tuple[ElementSets, float]:
    """Return the elements alone, and their rms distance from the prediction (km). Arguments and errors as above."""
    return elements_along(_orbit(track), published.elements, dynamics)


def published_sigma_km(published: Propagator, predicted: FloatArray, time_ns: IntArray, sigma_km: float) -> float:
    """1 sigma of the position of the published set, root mean square of the times (k,), as a prediction shows it.

    It is the distance from the ``predicted`` states (k, 6), TEME, with the sigma of these. The model of element-set
    errors has no part: of one object without history it may be off by a factor of ten. Raises NoFit.
    """
    error, r, _ = published.at(np.zeros(len(time_ns), np.int64), time_ns)
    if np.any(error):
        raise NoFit(f"SGP4 refuses the published set within the span: error {np.max(error)}")
    return float(np.hypot(np.sqrt(np.mean(np.sum((r - predicted[:, :3]) ** 2, axis=1))), sigma_km))


def elements_along(
    orbit: UncertainOrbits, like: ElementSets, dynamics: Dynamics, span_s: int = SPAN_S
) -> tuple[ElementSets, float]:
    """Elements that follow the prediction of one orbit for ``span_s``, and their rms distance from it (km).

    ``like``: as `elements_of_states`. Raises NoFit.
    """
    predicted, time_ns = _predicted(orbit, dynamics, span_s)
    return elements_of_states(predicted, time_ns, like)


def _predicted(orbit: UncertainOrbits, dynamics: Dynamics, span_s: int) -> tuple[FloatArray, IntArray]:
    """States (n, 6), TEME, of the prediction of one orbit for ``span_s``, and their times (n,). Raises NoFit."""
    epoch_ns = int(orbit.epoch_ns[0]) // 1000 * 1000  # an OMM's epoch has microseconds
    if not np.isfinite(orbit.state).all():
        raise NoFit("the track has no state")
    time_ns: IntArray = epoch_ns + np.arange(0, span_s + 1, _STEP_S, dtype=np.int64) * SECOND_NS
    # The epoch may be up to a microsecond before the track's.
    ahead_ns = np.maximum(time_ns, orbit.epoch_ns)[None]
    predicted = teme_of_gcrf(dynamics.states(orbit.state, orbit.coefficients, orbit.epoch_ns, ahead_ns)[0], time_ns)
    if not np.isfinite(predicted).all():
        raise NoFit("the track's prediction has no closed orbit")
    return predicted, time_ns


def _orbit(track: FilteredStates) -> UncertainOrbits:
    return orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)


def elements_of_states(states: FloatArray, time_ns: IntArray, like: ElementSets) -> tuple[ElementSets, float]:
    """Elements at the first of the times that follow states (n, 6), TEME, km and km/s, and their rms distance (km).

    ``like``: one row, whose number and, by its prior, whose drag term the elements have. Raises NoFit.
    """
    epoch_ns, drag = int(time_ns[0]), float(like.bstar_per_earth_radius[0])
    number = int(like.norad_id[0])

    def sets(unknowns: FloatArray) -> ElementSets:
        made = from_equinoctial(unknowns[:, :6], epoch_ns, unknowns[:, 6])
        return dataclasses.replace(made, norad_id=np.repeat(number, len(unknowns)))

    start = np.append(to_equinoctial(mean_elements(states[:1, :3], states[:1, 3:], epoch_ns, drag))[0], drag)
    prior = np.zeros(7)
    prior[6] = 1 / (_DRAG_SHARE * abs(drag) + _DRAG_LEAST) ** 2
    unknowns = start
    for _ in range(_ROUNDS):
        found, partials = states_and_partials(unknowns, _DIFFERENCE, sets, time_ns)
        if not (np.isfinite(found).all() and np.isfinite(partials).all()):
            raise NoFit("SGP4 refuses the elements within the span")
        design = partials[:, :3].reshape(-1, 7) / _SGP4_SIGMA_KM
        normal = design.T @ design + np.diag(prior)
        gradient = design.T @ (states - found)[:, :3].reshape(-1) / _SGP4_SIGMA_KM - prior * (unknowns - start)
        scale = 1 / np.sqrt(np.diag(normal))
        step = scale * np.linalg.solve(normal * np.outer(scale, scale), gradient * scale)
        unknowns = unknowns + step
        if np.sqrt(step @ normal @ step) < _CONVERGED:
            break
    else:
        raise NoFit("the fit does not converge")
    elements = sets(unknowns[None])
    _, r, _ = Propagator(elements).at(np.zeros(len(time_ns), np.int64), time_ns)
    return elements, float(np.sqrt(np.mean(np.sum((r - states[:, :3]) ** 2, axis=1))))


def _predicted_sigma_km(orbit: UncertainOrbits, dynamics: Dynamics) -> float:
    time_ns = int(orbit.epoch_ns[0]) + (_QUARTERS * SPAN_S).astype(np.int64) * SECOND_NS
    several = orbit.at(dynamics, time_ns, np.zeros(len(_QUARTERS), np.int64))
    return float(np.sqrt(np.mean(np.trace(several.covariance[:, :3, :3], axis1=1, axis2=2))))


def _innovation(track: FilteredStates, published: Propagator) -> float:
    first = np.zeros(1, np.int64)
    _, r, v = published.at(first, track.epoch_ns)
    off = track.state[0] - np.hstack([r[0], v[0]])
    of_set = rtn_to_teme(element_covariance_rtn(published, first, track.epoch_ns, r, v), r, v)[0]
    covariance = of_set + track.covariance[0]
    return float(off @ np.linalg.solve(covariance, off))
