"""How far element sets err: a covariance by orbital regime, age, mean-motion rate and the object's own history.

The figures are fitted to a month of real sets, of half of the objects: each set against later ones of its object.
`benchmarks/element_errors.py` measures them on the other half and later days. Errors of element sets have long tails:
of the covariance, the 95 % ellipsoid holds 95 % of them, and `element_tails` gives their distribution (`long_tails`).
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.error_causes import (
    ECCENTRIC,
    GEOSTATIONARY_AXIS_KM,
    axis_and_eccentricity,
    caused_covariance,
    drift_per_axis,
    errors_of_causes,
    motion_and_eccentricity,
)
from sda_platform.orbits.long_tails import GAUSSIAN, Tails, widening
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.theory_errors import short_period_covariance_rtn, steady_covariance_rtn
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform.units import DAY_NS, DAY_S

_EARTH_RADIUS_KM = 6378.135
_GEOSTATIONARY, _FIRST_ECCENTRIC = 6, 7
# The height in which the density of the atmosphere at 250 km falls by a factor of e.
_SCALE_HEIGHT_KM = 45.0
# The least rate on a circular orbit at 250 km, rev/day2: 6.1e-11 kg/m3 (US Standard Atmosphere 1976) and a drag area,
# with its coefficient, of 0.004 m2/kg.
_LEAST_RATE_HEIGHT_KM, _LEAST_RATE = 250.0, 4e-3
_MOST_OF_LIFETIME = 0.9
# Of the in-track error by drag: the error of the node, at most 3.5 J2 sin(i) cos(i).
_NODE_SHARE = 0.002


MOST_IN_TRACK_KM: Final = 12_000.0
"""The largest in-track sigma: the object may be anywhere on a low orbit."""
TRACKED_IN_TRACK_KM: Final = 20.0
"""The largest in-track sigma of a prediction that observations are associated with and fits start from. The deviation
from a prediction is propagated linearly, and an object farther off is found as an unknown one."""
# Of errors, the part that the Gaussian of a tracking prior holds. One that held 95 % would be so wide, for an object
# without history, that fragments beside it were taken for the object.
_TRACKED_PART = 0.9


@dataclasses.dataclass(frozen=True)
class RegimeErrors:
    """Errors of the element sets of a regime, on a circular orbit, of an object without history: sigmas of the Gaussian
    that holds 95 % of them where they do.

    Along an axis the variance at age t (days) is ``sigma**2 + (growth * t**exponent)**2``. In-track the uncertain drag
    adds ``drag_share * |rate of mean motion| * pi * axis * t**2``; `_growth` has its effects along the other axes.
    What SGP4 lacks comes on top (`steady_covariance_rtn`).
    """

    name: str
    radial_km: float
    in_track_km: float
    cross_track_km: float
    radial_growth_km: float
    in_track_growth_km: float
    cross_track_growth_km: float
    drag_share: float
    exponent: float = 1.0
    fit_share: float = 0.0
    """Error of height and plane at epoch, by a fit over about a day: share of the in-track error by a day's drag."""
    most_degrees: float = 6.0
    """Degrees of freedom of the errors of an object whose history is long."""


REGIMES: Final = (
    RegimeErrors("perigee below 500 km", 0.13, 1.1, 0.047, 0.2, 7.2, 0.065, 0.78, 1.4, 0.015),
    RegimeErrors("perigee 500-600 km", 0.15, 0.64, 0.14, 0.31, 0.49, 0.27, 1.3, 0.84),
    RegimeErrors("perigee 600-800 km", 0.055, 0.92, 0.054, 0.28, 1.1, 0.25, 1.5, 0.85),
    RegimeErrors("perigee 800-1000 km", 0.088, 0.38, 0.062, 0.22, 1.2, 0.16, 0.095, 1.0),
    RegimeErrors("perigee 1000-2000 km", 0.11, 0.69, 0.13, 0.14, 0.42, 0.25, 0.99, 0.83),
    RegimeErrors("medium", 0.12, 1.4, 0.079, 0.4, 1.9, 0.2, 1.8, 0.69),
    RegimeErrors("geostationary", 5.9, 1.6, 1.8, 1.4, 16.0, 0.45, 1.9, 0.88, most_degrees=3.0),
    RegimeErrors("eccentric, perigee below 1000 km", 2.3, 0.51, 0.43, 1.5, 13.0, 1.4, 0.42, 0.58),
    RegimeErrors("eccentric, perigee above 1000 km", 3.2, 19.0, 2.4, 1.8, 4.3, 2.6, 1.6, 0.43, most_degrees=3.5),
)
"""Eccentric: above 0.1; geostationary: axis above 36,000 km; the others by height of perigee."""
_PERIGEES_KM = (500.0, 600.0, 800.0, 1000.0, 2000.0)
_FIGURES = np.array([dataclasses.astuple(regime)[1:-1] for regime in REGIMES])
_MOST_DEGREES = np.array([regime.most_degrees for regime in REGIMES])
# The regime counts as this many degrees of freedom, and each difference in an object's history as that many.
_PRIOR_DEGREES, _DEGREES_PER_DIFFERENCE = 1.5, 1.3


def regimes(elements: ElementSets) -> IntArray:
    """Position in REGIMES of each element set, (n,)."""
    return _regimes(elements.mean_motion_rev_per_day, elements.eccentricity)


def element_covariance_rtn(
    propagator: Propagator,
    index: IntArray,
    time_ns: IntArray | np.int64,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, of the states that element sets predict, in the RTN axes of these states.

    It is the sum of `set_covariance_rtn` and of what SGP4 lacks at any age (`theory_errors`). Its 95 % ellipsoid holds
    95 % of the errors; their distribution is that of `element_tails`.

    Args:
        propagator: the element sets and their objects' error scales.
        index: (n,) rows of the propagator.
        time_ns: (n,) or scalar times of the states; before the epoch counts as after it.
        r_teme_km, v_teme_km_s: (n, 3) predicted states; rows that are not closed orbits give NaN.
    """
    of_sets = set_covariance_rtn(propagator, index, time_ns, r_teme_km, v_teme_km_s)
    return of_sets + steady_covariance_rtn(r_teme_km, v_teme_km_s)


def set_covariance_rtn(
    propagator: Propagator,
    index: IntArray,
    time_ns: IntArray | np.int64,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
    *,
    most_km: float = np.inf,
) -> FloatArray:
    """Covariance (n, 6, 6), RTN, by what sets differ in from others of their objects; as `element_covariance_rtn`.

    The object's error scales (`Propagator.error_scale`) multiply the errors along each axis. In-track, the sigma of the
    growth is at most MOST_IN_TRACK_KM, and ``most_km``: where it would be larger, all growth is smaller in proportion.
    """
    elements = propagator.elements
    motion, eccentricity = elements.mean_motion_rev_per_day[index], elements.eccentricity[index]
    rate = 2 * np.abs(elements.mean_motion_dot_rev_per_day2[index])
    age_days = np.abs(time_ns - elements.epoch_time_ns[index]) / DAY_NS
    scale = propagator.error_scale[index]
    return _set_covariance_rtn(motion, eccentricity, rate, scale, age_days, r_teme_km, v_teme_km_s, most_km)


def path_covariance_rtn(age_days: FloatArray, r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, in RTN axes, of a path whose author states none; NaN off closed orbits.

    It is that of element sets of the same orbit and age: no better than what is published of each object. The drag is
    that of an object with little drag, without a history.

    Args:
        age_days: (n,) time since the path was made.
        r_teme_km, v_teme_km_s: (n, 3) states of the path.
    """
    motion, eccentricity = motion_and_eccentricity(r_teme_km, v_teme_km_s)
    with np.errstate(all="ignore"):
        steady = steady_covariance_rtn(r_teme_km, v_teme_km_s)
    nothing, usual = np.zeros(len(motion)), np.ones((len(motion), 3))
    orbit = motion, eccentricity, nothing, usual, age_days
    return steady + _set_covariance_rtn(*orbit, r_teme_km, v_teme_km_s, np.inf)


def tracking_prior_rtn(
    propagator: Propagator,
    index: IntArray,
    time_ns: IntArray | np.int64,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
) -> FloatArray:
    """Covariance (n, 6, 6) of predictions that observations are associated with and that fits and filters start from.

    It is `element_covariance_rtn` with in-track errors of at most TRACKED_IN_TRACK_KM, and with the short periods that
    SGP4 lacks: errors of each component of velocity. Observations of half a minute see these errors. It is that of the
    Gaussian that holds 90 % of the errors of sets.

    Arguments as of `element_covariance_rtn`. Source: predictions against an independent integration
    (`benchmarks/track_consistency.py`).
    """
    states = r_teme_km, v_teme_km_s
    degrees = degrees_of_freedom(propagator, index)
    narrower = widening(degrees, _TRACKED_PART) / widening(degrees)
    of_sets = set_covariance_rtn(propagator, index, time_ns, *states, most_km=TRACKED_IN_TRACK_KM)
    return narrower[:, None, None] * of_sets + steady_covariance_rtn(*states) + short_period_covariance_rtn(*states)


def degrees_of_freedom(propagator: Propagator, index: IntArray) -> FloatArray:
    """Return the degrees of freedom (n,) of the distribution of errors of sets, by their objects' histories."""
    return _degrees(regimes(propagator.elements.take(index)), propagator.history_differences[index])


def path_degrees_of_freedom(r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> FloatArray:
    """Return the same (n,) of errors with covariances of `path_covariance_rtn`: of an object without a history."""
    return _degrees(_regimes(*motion_and_eccentricity(r_teme_km, v_teme_km_s)), np.zeros(len(r_teme_km), np.int64))


def element_tails(degrees: FloatArray, r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> Tails:
    """Return the distribution of errors with covariances of `element_covariance_rtn`, turned to TEME.

    Args:
        degrees: (n,) degrees of freedom; GAUSSIAN where the covariance is of another source.
        r_teme_km, v_teme_km_s: (n, 3) the states.
    """
    steady, rows = np.zeros((len(degrees), 6, 6)), np.flatnonzero(degrees != GAUSSIAN)
    r, v = r_teme_km[rows], v_teme_km_s[rows]
    steady[rows] = rtn_to_teme(steady_covariance_rtn(r, v), r, v)
    return Tails(degrees, steady)


def scale_by_history(times_usual: FloatArray, regime: IntArray, differences: IntArray) -> FloatArray:
    """Return error scales (n, 3) of objects whose errors are ``times_usual`` (n, 3) those in the middle of the regime.

    The more ``differences`` (n,) say so, the thinner are the tails, and the narrower is the Gaussian that holds 95 %.
    """
    held = widening(_degrees(regime, differences)) * middle_variance(regime)
    return np.asarray(times_usual * np.sqrt(held)[:, None])


def middle_variance(regime: IntArray) -> FloatArray:
    """Return the variance (n,) that describes the middle of a regime's errors, over that of the Gaussian that holds
    95 % of them.
    """
    return 1 / widening(_degrees(regime, np.zeros_like(regime)))


def _degrees(regime: IntArray, differences: IntArray) -> FloatArray:
    known = _PRIOR_DEGREES + _DEGREES_PER_DIFFERENCE * differences
    return np.asarray(1 / (1 / known + 1 / _MOST_DEGREES[regime]))


def _set_covariance_rtn(
    motion_rev_per_day: FloatArray,
    eccentricity: FloatArray,
    rate_rev_per_day2: FloatArray,
    scale: FloatArray,
    age_days: FloatArray,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
    most_km: float,
) -> FloatArray:
    figures = _FIGURES[_regimes(motion_rev_per_day, eccentricity)]
    with np.errstate(all="ignore"):
        rate, lifetime_days = _decay(motion_rev_per_day, eccentricity, rate_rev_per_day2)
        axis_km, _ = axis_and_eccentricity(r_teme_km, v_teme_km_s)
        growth = _growth(figures, scale, age_days, rate, lifetime_days, axis_km, eccentricity, most_km)
        sigma_km = np.hypot(figures[:, :3] * scale, growth[:, :3])
        errors = errors_of_causes(sigma_km, axis_km, growth[:, 3], age_days)
        return caused_covariance(errors, r_teme_km, v_teme_km_s, axis_km)


def _regimes(motion_rev_per_day: FloatArray, eccentricity: FloatArray) -> IntArray:
    axis_km = _mean_axis_km(motion_rev_per_day)
    perigee_km = axis_km * (1 - eccentricity) - _EARTH_RADIUS_KM
    by_height = np.searchsorted(_PERIGEES_KM, perigee_km, side="right")
    is_eccentric = eccentricity > ECCENTRIC
    eccentric = np.where(perigee_km < 1000.0, _FIRST_ECCENTRIC, _FIRST_ECCENTRIC + 1)
    return np.asarray(
        np.where(is_eccentric, eccentric, np.where(axis_km > GEOSTATIONARY_AXIS_KM, _GEOSTATIONARY, by_height))
    )


def _mean_axis_km(motion_rev_per_day: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.cbrt(MU_EARTH_KM3_S2 / (motion_rev_per_day * 2 * np.pi / DAY_S) ** 2))


def _decay(
    motion_rev_per_day: FloatArray, eccentricity: FloatArray, rate_rev_per_day2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rate of mean motion, rev/day2, and the lifetime that remains, days; each (n,).

    The rate is at least that of an object with little drag. Objects held up by thrust show less, and so do sets whose
    drag was not estimated. On an eccentric orbit, drag acts near perigee only. Source: King-Hele, Satellite Orbits in
    an Atmosphere (1987), at leading order.
    """
    axis_km = _mean_axis_km(motion_rev_per_day)
    lower = (_LEAST_RATE_HEIGHT_KM + _EARTH_RADIUS_KM - axis_km * (1 - eccentricity)) / _SCALE_HEIGHT_KM
    near_perigee = 1 / np.sqrt(1 + 2 * np.pi * axis_km * eccentricity / _SCALE_HEIGHT_KM)
    rate = np.maximum(rate_rev_per_day2, _LEAST_RATE * np.exp(np.minimum(lower, 5.0)) * near_perigee)
    return rate, 0.75 * (eccentricity + 2 * _SCALE_HEIGHT_KM / axis_km) * motion_rev_per_day / rate


def _growth(
    figures: FloatArray,
    scale: FloatArray,
    age_days: FloatArray,
    rate_rev_per_day2: FloatArray,
    lifetime_days: FloatArray,
    axis_km: FloatArray,
    eccentricity: FloatArray,
    most_km: float,
) -> FloatArray:
    """Errors that have grown, (n, 4): radial, in-track and cross-track, km, and the in-track drift, km/day.

    Uncertain drag has more effects than the in-track error. The drift is that of the rate at the time of the state,
    which grows as the lifetime ends; the error of the axis is at most its height. Drag keeps the perigee, so an error
    of the axis is one of eccentricity, too. The node turns at another rate. On an eccentric orbit, an in-track error of
    a good part of the orbit changes the height by more than its linear part.
    """
    grown = figures[:, 3:6] * scale * age_days[:, None] ** figures[:, 7:8]
    drag = scale[:, 1] * figures[:, 6] * rate_rev_per_day2 * np.pi * axis_km
    in_track_km = np.hypot(grown[:, 1], drag * age_days**2)
    held = np.minimum(1.0, most_km / np.maximum(in_track_km, 1e-9))
    drag_drift = 2 * drag * age_days / (1 - np.minimum(age_days / lifetime_days, _MOST_OF_LIFETIME))
    drag_axis_km = np.minimum(drag_drift / drift_per_axis(axis_km), np.maximum(axis_km - _EARTH_RADIUS_KM, 1.0))
    # Errors that grow slower than time come from manoeuvres after the epoch: at the epoch the axis has none of them.
    begun = np.where(figures[:, 7] < 1, np.minimum(age_days, 1.0), 1.0)
    steady_drift = figures[:, 4] * scale[:, 1] * begun * np.maximum(age_days, 1.0) ** (figures[:, 7] - 1)
    drift = np.hypot(steady_drift, drag_axis_km * drift_per_axis(axis_km))
    bounded_km = np.minimum(held * in_track_km, MOST_IN_TRACK_KM)
    nonlinear_km = axis_km * eccentricity * np.minimum(np.sqrt(0.75) * (bounded_km / axis_km) ** 2, 1.0)
    fit_km, eccentricity_km = figures[:, 8] * drag, (1 - eccentricity) * drag_axis_km
    radial_km = np.hypot(held * np.sqrt(grown[:, 0] ** 2 + eccentricity_km**2 + fit_km**2), nonlinear_km)
    cross_km = held * np.sqrt(grown[:, 2] ** 2 + (_NODE_SHARE * drag * age_days**2) ** 2 + fit_km**2)
    return np.stack([radial_km, bounded_km, cross_km, held * drift], axis=1)
