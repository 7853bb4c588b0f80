"""How far element sets err: a covariance by orbital regime, age, mean-motion rate and the object's own history.

The figures are fitted to a month of real sets, of half of the objects: each set against later ones of its object.
`benchmarks/element_errors.py` measures them on the other half and later days. Errors of element sets have long tails.
The covariance is wide enough that 95 % lie inside its 95 % ellipsoid; half of them lie far inside.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from sda_platform.orbits.covariance import symmetric
from sda_platform.orbits.elements import ElementSets, FloatArray, IntArray
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
_SPEED_ERROR_KM_S = np.array([1.2e-4] * 4 + [8e-5] * 3 + [1e-5, 3.5e-5, 1.2e-3, 1.2e-3])
_NEAR_KM, _PLANE_ERROR_KM, _PLANE_SPEED_RATIO = 10_000.0, 2.5, 1.6
_FIRST_ECCENTRIC = 9


MOST_IN_TRACK_KM: Final = 12_000.0
"""The object may be anywhere on a low orbit."""
TRACKED_IN_TRACK_KM: Final = 20.0
"""The largest in-track sigma of a prediction that observations are associated with and fits start from. The deviation
from a prediction is propagated linearly, and an object farther off is found as an unknown one."""


@dataclasses.dataclass(frozen=True)
class RegimeErrors:
    """One-sigma errors of the element sets of a regime, on a circular orbit, of an object without history.

    Along an axis the variance at age t (days) is ``sigma**2 + (growth * t**exponent)**2``. In-track the uncertain drag
    adds ``drag_share * |rate of mean motion| * pi * axis * t**2``.
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
    least_scale: float = 0.0
    """The smallest error scale: near re-entry the next days do not resemble the last ones."""


# At epoch, low orbits: Aida & Kirschner (2013), element sets against precise orbits. Other regimes: figures of the size
# seen against precise orbits. Where objects manoeuvre often, errors grow slower than time.
REGIMES: Final = (
    RegimeErrors("perigee below 300 km", 0.176, 0.695, 0.168, 4.0, 40.0, 1.0, 2.0, 1.2, 1.0),
    RegimeErrors("perigee 300-400 km", 0.176, 0.695, 0.168, 0.3, 3.8, 0.4, 0.45),
    RegimeErrors("perigee 400-500 km", 0.176, 0.695, 0.168, 0.25, 5.0, 0.25, 0.55),
    RegimeErrors("perigee 500-600 km", 0.176, 0.695, 0.168, 0.16, 0.8, 0.1, 0.8),
    RegimeErrors("perigee 600-800 km", 0.176, 0.695, 0.168, 0.25, 1.5, 0.08, 0.85),
    RegimeErrors("perigee 800-1000 km", 0.176, 0.695, 0.168, 0.07, 0.35, 0.09, 0.55),
    RegimeErrors("perigee 1000-2000 km", 0.176, 0.695, 0.168, 0.09, 0.65, 0.045, 0.45),
    RegimeErrors("medium", 0.25, 0.8, 0.2, 0.06, 0.7, 0.1, 1.0),
    RegimeErrors("geostationary", 0.4, 1.2, 0.15, 1.7, 26.0, 8.0, 0.2, 0.5),
    RegimeErrors("eccentric, perigee below 1000 km", 1.0, 3.0, 1.0, 1.1, 9.0, 0.7, 0.22),
    RegimeErrors("eccentric, perigee above 1000 km", 1.0, 3.0, 1.0, 4.5, 9.0, 3.5, 1.5, 0.55),
)
"""Eccentric: above 0.1; geostationary: axis above 36,000 km; the others by height of perigee."""
_PERIGEES_KM = (300.0, 400.0, 500.0, 600.0, 800.0, 1000.0, 2000.0)
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
    most_km: float = MOST_IN_TRACK_KM,
) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, of the states that element sets predict, in the RTN axes of these states.

    It is built from six element errors instead of six coordinates, so that velocity errors are consistent with position
    errors: semi-major axis, timing along the orbit, eccentricity vector (two), tilt of the plane (two). The axis error
    has two parts. The drift of the first is the growth of the in-track error, and it is correlated with the timing
    error that it has caused. The second is that of SGP4, and independent. The energy error is that of the axis alone.
    The object's error scales (`Propagator.error_scale`) multiply the growth along each axis.

    Args:
        propagator: the element sets and their objects' error scales.
        index: (n,) rows of the propagator.
        time_ns: (n,) or scalar times of the states; before the epoch counts as after it.
        r_teme_km, v_teme_km_s: (n, 3) predicted states; rows that are not closed orbits give NaN.
        most_km: the largest in-track sigma; growth beyond it is left out.
    """
    elements = propagator.elements
    motion, eccentricity = elements.mean_motion_rev_per_day[index], elements.eccentricity[index]
    figures = _FIGURES[_regimes(motion, eccentricity)]
    age_days = np.abs(time_ns - elements.epoch_time_ns[index]) / _DAY_NS
    rate = 2 * np.abs(elements.mean_motion_dot_rev_per_day2[index])
    with np.errstate(all="ignore"):
        axis_km = _osculating_axis_km(r_teme_km, v_teme_km_s)
        errors = _element_errors(figures, propagator.error_scale[index], age_days, rate, axis_km, most_km)
        causes = _error_directions(r_teme_km, v_teme_km_s, axis_km)
        return symmetric(causes @ errors @ causes.swapaxes(-1, -2))


def tracking_prior_rtn(
    propagator: Propagator,
    index: IntArray,
    time_ns: IntArray | np.int64,
    r_teme_km: FloatArray,
    v_teme_km_s: FloatArray,
) -> FloatArray:
    """Covariance (n, 6, 6) of predictions that observations are associated with and that fits and filters start from.

    It is `element_covariance_rtn` with in-track errors of at most TRACKED_IN_TRACK_KM, and with the short periods that
    SGP4 lacks: errors of each component of velocity, and across the plane of eccentric orbits. Observations of half
    a minute see these errors; differences of element sets do not, because both sets have them.

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
    covariance[is_eccentric, 2, 2] += _PLANE_ERROR_KM**2
    return covariance


def _regimes(motion_rev_per_day: FloatArray, eccentricity: FloatArray) -> IntArray:
    with np.errstate(all="ignore"):
        axis_km = np.cbrt(MU_EARTH_KM3_S2 / (motion_rev_per_day * 2 * np.pi / _DAY_S) ** 2)
    perigee_km = axis_km * (1 - eccentricity) - _EARTH_RADIUS_KM
    by_height = np.searchsorted(_PERIGEES_KM, perigee_km, side="right")
    is_eccentric = eccentricity > _ECCENTRIC
    eccentric = np.where(perigee_km < 1000.0, _FIRST_ECCENTRIC, _FIRST_ECCENTRIC + 1)
    return np.asarray(np.where(is_eccentric, eccentric, np.where(axis_km > _GEO_AXIS_KM, 8, by_height)))


def _osculating_axis_km(r: FloatArray, v: FloatArray) -> FloatArray:
    axis_km = 1 / (2 / np.linalg.norm(r, axis=-1) - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
    return np.where(axis_km > 0, axis_km, np.nan)


def _element_errors(
    figures: FloatArray,
    scale: FloatArray,
    age_days: FloatArray,
    rate_rev_per_day2: FloatArray,
    axis_km: FloatArray,
    most_km: float,
) -> FloatArray:
    """Covariance (n, 6, 6) of the six causes in the column order of ``_error_directions``."""
    mean_motion = np.sqrt(MU_EARTH_KM3_S2 / axis_km**3)
    speed = mean_motion * axis_km
    scale = np.maximum(scale, figures[:, 8:9])
    growth = figures[:, 3:6] * scale
    grown = growth * age_days[:, None] ** figures[:, 7:8]
    drag = scale[:, 1] * figures[:, 6] * rate_rev_per_day2 * np.pi * axis_km
    in_track_growth_km = np.hypot(grown[:, 1], drag * age_days**2)
    held = np.minimum(1.0, most_km / np.maximum(in_track_growth_km, 1e-9))
    in_track_km = np.hypot(figures[:, 1], held * in_track_growth_km)
    radial_km, cross_km = (np.hypot(figures[:, n], held * grown[:, n]) for n in (0, 2))
    # An eccentricity error that moves an object s_R up and down moves it 2 s_R to and fro; timing is left.
    timing_km = np.sqrt(np.maximum(in_track_km**2 - 4 * radial_km**2, (0.1 * in_track_km) ** 2))
    # Errors that grow slower than time come from manoeuvres after the epoch: at the epoch the axis has none of them.
    begun = np.where(figures[:, 7] < 1, np.minimum(age_days, 1.0), 1.0)
    steady = growth[:, 1] * begun * np.maximum(age_days, 1.0) ** (figures[:, 7] - 1)
    drift_km_per_day = held * np.hypot(steady, 2 * drag * age_days)
    drift_axis_km = drift_km_per_day / (1.5 * mean_motion * _DAY_S)
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
