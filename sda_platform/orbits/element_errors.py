"""How far element sets err: a covariance by orbital regime, age, mean-motion rate and the object's own history.

The figures are fitted to a month of real sets, of half of the objects: each set against later ones of its object.
`benchmarks/element_errors.py` measures them on the other half and later days. Errors of element sets have long tails.
The covariance is wide enough that 95 % lie inside its 95 % ellipsoid; half of them lie far inside.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import symmetric
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

_DAY_S, _DAY_NS = 86400.0, 86_400e9
_EARTH_RADIUS_KM = 6378.135
_ECCENTRIC, _GEO_AXIS_KM = 0.1, 36_000.0
# The osculating axis of SGP4 lacks tesseral and second-order short periods: 55 m rms against integrated low orbits,
# 52 m against the laser ephemeris of LAGEOS-2.
_AXIS_KM = 0.055
_MOST_AXIS_TIMING_CORRELATION = 0.95
# Of SGP4's velocity, by position in REGIMES: low, medium, geostationary, eccentric. On eccentric orbits it is that
# within 10,000 km of the Earth's centre, and falls outwards; their planes are off, too.
_SPEED_ERROR_KM_S = np.array([1.2e-4] * 2 + [8e-5] * 3 + [1e-5, 3.5e-5, 1.2e-3, 1.2e-3])
_NEAR_KM, _PLANE_ERROR_KM, _PLANE_SPEED_RATIO = 10_000.0, 2.5, 1.6
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


@dataclasses.dataclass(frozen=True)
class RegimeErrors:
    """One-sigma errors of the element sets of a regime, on a circular orbit, of an object without history.

    Along an axis the variance at age t (days) is ``sigma**2 + (growth * t**exponent)**2``. In-track the uncertain drag
    adds ``drag_share * |rate of mean motion| * pi * axis * t**2``; `_growth` has its effects along the other axes.
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


# At epoch, low orbits: Aida & Kirschner (2013), element sets against precise orbits. Geostationary: SGP4 fits to 36
# hours of 13 real satellites (BeiDou, QZSS) are off by 0.65, 0.8 and 0.64 km; the last is 0.12 km on inclined orbits.
# Other regimes: figures of the size seen against precise orbits. Where objects manoeuvre often, errors grow slower than
# time.
REGIMES: Final = (
    RegimeErrors("perigee below 500 km", 0.176, 0.695, 0.168, 0.1, 2.0, 0.1, 0.28, fit_share=0.015),
    RegimeErrors("perigee 500-600 km", 0.176, 0.695, 0.168, 0.16, 0.8, 0.1, 0.8),
    RegimeErrors("perigee 600-800 km", 0.176, 0.695, 0.168, 0.25, 1.5, 0.08, 0.85),
    RegimeErrors("perigee 800-1000 km", 0.176, 0.695, 0.168, 0.07, 0.35, 0.09, 0.55),
    RegimeErrors("perigee 1000-2000 km", 0.176, 0.695, 0.168, 0.09, 0.65, 0.045, 0.45),
    RegimeErrors("medium", 0.25, 0.8, 0.2, 0.06, 0.7, 0.1, 1.0),
    RegimeErrors("geostationary", 0.7, 1.2, 0.7, 1.7, 26.0, 8.0, 0.2, 0.5),
    RegimeErrors("eccentric, perigee below 1000 km", 1.0, 3.0, 1.0, 0.6, 5.0, 0.6, 0.15),
    RegimeErrors("eccentric, perigee above 1000 km", 1.0, 3.0, 1.0, 4.5, 9.0, 3.5, 1.5, 0.55),
)
"""Eccentric: above 0.1; geostationary: axis above 36,000 km; the others by height of perigee."""
_PERIGEES_KM = (500.0, 600.0, 800.0, 1000.0, 2000.0)
_FIGURES = np.array([dataclasses.astuple(regime)[1:] for regime in REGIMES])


def regimes(elements: ElementSets) -> IntArray:
    """Position in REGIMES of each element set, (n,)."""
    return _regimes(elements.mean_motion_rev_per_day, elements.eccentricity)


def element_covariance_rtn(
    propagator: Propagator,
    index: IntArray,
    time_ns: IntArray | np.int64,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
    *,
    most_km: float = np.inf,
) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, of the states that element sets predict, in the RTN axes of these states.

    It is built from six element errors instead of six coordinates, so that velocity errors are consistent with position
    errors: semi-major axis, timing along the orbit, eccentricity vector (two), tilt of the plane (two). The axis error
    has two parts. The drift of the first is the growth of the in-track error, and it is correlated with the timing
    error that it has caused. The second is that of SGP4, and independent. The energy error is that of the axis alone.
    The object's error scales (`Propagator.error_scale`) multiply the growth along each axis. In-track, the sigma is at
    most MOST_IN_TRACK_KM. The planes of eccentric orbits are off by what SGP4 lacks, at any age.

    Args:
        propagator: the element sets and their objects' error scales.
        index: (n,) rows of the propagator.
        time_ns: (n,) or scalar times of the states; before the epoch counts as after it.
        r_teme_km, v_teme_km_s: (n, 3) predicted states; rows that are not closed orbits give NaN.
        most_km: the largest growth in-track. Where it would be larger, all growth is smaller in proportion.
    """
    elements = propagator.elements
    motion, eccentricity = elements.mean_motion_rev_per_day[index], elements.eccentricity[index]
    rate = 2 * np.abs(elements.mean_motion_dot_rev_per_day2[index])
    age_days = np.abs(time_ns - elements.epoch_time_ns[index]) / _DAY_NS
    scale = propagator.error_scale[index]
    return _covariance_rtn(motion, eccentricity, rate, scale, age_days, r_teme_km, v_teme_km_s, most_km)


def path_covariance_rtn(age_days: FloatArray, r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, in RTN axes, of a path whose author states none; NaN off closed orbits.

    It is that of element sets of the same orbit and age: no better than what is published of each object. The drag is
    that of an object with little drag, without a history.

    Args:
        age_days: (n,) time since the path was made.
        r_teme_km, v_teme_km_s: (n, 3) states of the path.
    """
    with np.errstate(all="ignore"):
        axis_km = _osculating_axis_km(r_teme_km, v_teme_km_s)
        momentum = np.linalg.norm(np.cross(r_teme_km, v_teme_km_s), axis=-1)
        eccentricity = np.sqrt(np.maximum(1 - momentum**2 / (MU_EARTH_KM3_S2 * axis_km), 0.0))
        motion = np.sqrt(MU_EARTH_KM3_S2 / axis_km**3) * _DAY_S / (2 * np.pi)
    nothing, usual = np.zeros(len(axis_km)), np.ones((len(axis_km), 3))
    return _covariance_rtn(motion, eccentricity, nothing, usual, age_days, r_teme_km, v_teme_km_s, np.inf)


def tracking_prior_rtn(
    propagator: Propagator,
    index: IntArray,
    time_ns: IntArray | np.int64,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
) -> FloatArray:
    """Covariance (n, 6, 6) of predictions that observations are associated with and that fits and filters start from.

    It is `element_covariance_rtn` with in-track errors of at most TRACKED_IN_TRACK_KM, and with the short periods that
    SGP4 lacks: errors of each component of velocity. Observations of half a minute see these errors. Differences of
    element sets do not, because both sets have them.

    Arguments as of `element_covariance_rtn`. Source: predictions against an independent integration
    (`benchmarks/track_consistency.py`).
    """
    covariance = element_covariance_rtn(propagator, index, time_ns, r_teme_km, v_teme_km_s, most_km=TRACKED_IN_TRACK_KM)
    elements = propagator.elements
    regime = _regimes(elements.mean_motion_rev_per_day[index], elements.eccentricity[index])
    is_eccentric = regime >= _FIRST_ECCENTRIC
    slower = np.minimum(1.0, _NEAR_KM / np.linalg.norm(r_teme_km, axis=-1)) ** 1.5
    speed_km_s = _SPEED_ERROR_KM_S[regime] * np.where(is_eccentric, slower, 1.0)
    covariance[:, 3:, 3:] += (speed_km_s**2)[:, None, None] * np.eye(3)
    covariance[is_eccentric, 5, 5] += (_PLANE_SPEED_RATIO**2 - 1) * speed_km_s[is_eccentric] ** 2
    return covariance


def _covariance_rtn(
    motion_rev_per_day: FloatArray,
    eccentricity: FloatArray,
    rate_rev_per_day2: FloatArray,
    scale: FloatArray,
    age_days: FloatArray,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
    most_km: float,
) -> FloatArray:
    regime = _regimes(motion_rev_per_day, eccentricity)
    figures = _FIGURES[regime]
    with np.errstate(all="ignore"):
        rate, lifetime_days = _decay(motion_rev_per_day, eccentricity, rate_rev_per_day2)
        axis_km = _osculating_axis_km(r_teme_km, v_teme_km_s)
        growth = _growth(figures, scale, age_days, rate, lifetime_days, axis_km, eccentricity, most_km)
        errors = _element_errors(figures, growth, age_days, axis_km)
        causes = _error_directions(r_teme_km, v_teme_km_s, axis_km)
        covariance = causes @ errors @ causes.swapaxes(-1, -2)
    covariance[regime >= _FIRST_ECCENTRIC, 2, 2] += _PLANE_ERROR_KM**2
    return symmetric(covariance)


def _regimes(motion_rev_per_day: FloatArray, eccentricity: FloatArray) -> IntArray:
    axis_km = _mean_axis_km(motion_rev_per_day)
    perigee_km = axis_km * (1 - eccentricity) - _EARTH_RADIUS_KM
    by_height = np.searchsorted(_PERIGEES_KM, perigee_km, side="right")
    is_eccentric = eccentricity > _ECCENTRIC
    eccentric = np.where(perigee_km < 1000.0, _FIRST_ECCENTRIC, _FIRST_ECCENTRIC + 1)
    return np.asarray(np.where(is_eccentric, eccentric, np.where(axis_km > _GEO_AXIS_KM, _GEOSTATIONARY, by_height)))


def _mean_axis_km(motion_rev_per_day: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.cbrt(MU_EARTH_KM3_S2 / (motion_rev_per_day * 2 * np.pi / _DAY_S) ** 2))


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


def _osculating_axis_km(r: FloatArray, v: FloatArray) -> FloatArray:
    axis_km = 1 / (2 / np.linalg.norm(r, axis=-1) - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
    return np.where(axis_km > 0, axis_km, np.nan)


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
    drag_axis_km = np.minimum(drag_drift / _drift_per_axis(axis_km), np.maximum(axis_km - _EARTH_RADIUS_KM, 1.0))
    # Errors that grow slower than time come from manoeuvres after the epoch: at the epoch the axis has none of them.
    begun = np.where(figures[:, 7] < 1, np.minimum(age_days, 1.0), 1.0)
    steady_drift = figures[:, 4] * scale[:, 1] * begun * np.maximum(age_days, 1.0) ** (figures[:, 7] - 1)
    drift = np.hypot(steady_drift, drag_axis_km * _drift_per_axis(axis_km))
    bounded_km = np.minimum(held * in_track_km, MOST_IN_TRACK_KM)
    nonlinear_km = axis_km * eccentricity * np.minimum(np.sqrt(0.75) * (bounded_km / axis_km) ** 2, 1.0)
    fit_km, eccentricity_km = figures[:, 8] * drag, (1 - eccentricity) * drag_axis_km
    radial_km = np.hypot(held * np.sqrt(grown[:, 0] ** 2 + eccentricity_km**2 + fit_km**2), nonlinear_km)
    cross_km = held * np.sqrt(grown[:, 2] ** 2 + (_NODE_SHARE * drag * age_days**2) ** 2 + fit_km**2)
    return np.stack([radial_km, bounded_km, cross_km, held * drift], axis=1)


def _drift_per_axis(axis_km: FloatArray) -> FloatArray:
    """Drift in-track, km/day, of a km of semi-major axis."""
    return np.asarray(1.5 * np.sqrt(MU_EARTH_KM3_S2 / axis_km**3) * _DAY_S)


def _element_errors(figures: FloatArray, growth: FloatArray, age_days: FloatArray, axis_km: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6) of the six causes in the column order of ``_error_directions``."""
    speed = np.sqrt(MU_EARTH_KM3_S2 / axis_km)
    radial_km, in_track_km, cross_km = np.hypot(figures[:, :3], growth[:, :3]).T
    drift_km_per_day = growth[:, 3]
    # An eccentricity error that moves an object s_R up and down moves it 2 s_R to and fro; timing is left.
    timing_km = np.sqrt(np.maximum(in_track_km**2 - 4 * radial_km**2, (0.1 * in_track_km) ** 2))
    drift_axis_km = drift_km_per_day / _drift_per_axis(axis_km)
    correlation = np.minimum(drift_km_per_day * age_days / timing_km, _MOST_AXIS_TIMING_CORRELATION)
    covariance = np.zeros((len(age_days), 6, 6))
    covariance[:, 0, 0] = drift_axis_km**2 + _AXIS_KM**2
    covariance[:, 1, 1] = (timing_km / speed) ** 2
    covariance[:, 0, 1] = covariance[:, 1, 0] = -correlation * drift_axis_km * timing_km / speed
    covariance[:, 2, 2] = covariance[:, 3, 3] = radial_km**2
    covariance[:, 4, 4] = covariance[:, 5, 5] = (cross_km / axis_km) ** 2
    return covariance


def _error_directions(r: FloatArray, v: FloatArray, axis_km: FloatArray) -> FloatArray:
    """Derivatives (n, 6, 6) of the state by each cause: rows R T N and rates, one column per cause.

    Columns: axis (km), time (s), eccentricity in and out of phase (km), tilt about the radial and transverse axes
    (rad). All but the first keep the orbit's energy exactly, for any eccentricity.
    """
    radius = np.linalg.norm(r, axis=-1)
    radial = np.einsum("ni,ni->n", r, v) / radius
    transverse = np.linalg.norm(np.cross(r, v), axis=-1) / radius
    gravity = MU_EARTH_KM3_S2 / radius**2
    rate = transverse / radius
    columns = np.zeros((len(r), 6, 6))
    columns[:, 0, 0] = radius / axis_km
    columns[:, 3, 0], columns[:, 4, 0] = -radial / (2 * axis_km), -transverse / (2 * axis_km)
    columns[:, 0, 1], columns[:, 1, 1], columns[:, 3, 1] = radial, transverse, -gravity
    columns[:, 0, 2], columns[:, 4, 2] = 1.0, -gravity / transverse
    columns[:, 1, 3], columns[:, 3, 3], columns[:, 4, 3] = 2.0, -rate, rate * radial / transverse
    columns[:, 5, 4] = transverse
    columns[:, 2, 5], columns[:, 5, 5] = -radius, -radial
    return columns
