"""Errors of an orbit by six causes that keep position and velocity consistent, as covariances in RTN axes.

The causes are six element errors instead of six coordinates: semi-major axis, timing along the orbit, eccentricity
vector (two), tilt of the plane (two). The energy error is that of the axis alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.orbits.covariance import symmetric
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform.units import DAY_S

ECCENTRIC: Final = 0.1
"""Orbits of more eccentricity err in other ways."""
GEOSTATIONARY_AXIS_KM: Final = 36_000.0
"""Orbits of a larger axis count as geostationary."""
_MOST_AXIS_TIMING_CORRELATION = 0.95


def axis_and_eccentricity(r_km: FloatArray, v_km_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return osculating semi-major axis, km, and eccentricity, (n,) each; NaN off closed orbits."""
    axis_km = 1 / (2 / np.linalg.norm(r_km, axis=-1) - np.einsum("ni,ni->n", v_km_s, v_km_s) / MU_EARTH_KM3_S2)
    axis_km = np.where(axis_km > 0, axis_km, np.nan)
    momentum = np.linalg.norm(np.cross(r_km, v_km_s), axis=-1)
    return axis_km, np.sqrt(np.maximum(1 - momentum**2 / (MU_EARTH_KM3_S2 * axis_km), 0.0))


def motion_and_eccentricity(r_km: FloatArray, v_km_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return osculating mean motion, revolutions per day, and eccentricity, (n,) each; NaN off closed orbits."""
    with np.errstate(all="ignore"):
        axis_km, eccentricity = axis_and_eccentricity(r_km, v_km_s)
        return np.sqrt(MU_EARTH_KM3_S2 / axis_km**3) * DAY_S / (2 * np.pi), eccentricity


def drift_per_axis(axis_km: FloatArray) -> FloatArray:
    """Drift in-track, km/day, of a km of semi-major axis."""
    return np.asarray(1.5 * np.sqrt(MU_EARTH_KM3_S2 / axis_km**3) * DAY_S)


def errors_of_causes(
    sigma_km: FloatArray, axis_km: FloatArray, drift_km_per_day: FloatArray, age_days: FloatArray
) -> FloatArray:
    """Covariance (n, 6, 6) of the six causes, in the column order of `caused_covariance`.

    Args:
        sigma_km: (n, 3) errors radial, in-track and cross-track on a circular orbit.
        axis_km: (n,) semi-major axis.
        drift_km_per_day: (n,) in-track drift by the error of the axis, correlated with the timing that it has caused.
        age_days: (n,) time for which it has drifted.
    """
    speed = np.sqrt(MU_EARTH_KM3_S2 / axis_km)
    radial_km, in_track_km, cross_km = sigma_km.T
    # An eccentricity error that moves an object s_R up and down moves it 2 s_R to and fro; timing is left.
    timing_km = np.sqrt(np.maximum(in_track_km**2 - 4 * radial_km**2, (0.1 * in_track_km) ** 2))
    drift_axis_km = drift_km_per_day / drift_per_axis(axis_km)
    correlation = np.minimum(drift_km_per_day * age_days / timing_km, _MOST_AXIS_TIMING_CORRELATION)
    covariance = np.zeros((len(age_days), 6, 6))
    covariance[:, 0, 0] = drift_axis_km**2
    covariance[:, 1, 1] = (timing_km / speed) ** 2
    covariance[:, 0, 1] = covariance[:, 1, 0] = -correlation * drift_axis_km * timing_km / speed
    covariance[:, 2, 2] = covariance[:, 3, 3] = radial_km**2
    covariance[:, 4, 4] = covariance[:, 5, 5] = (cross_km / axis_km) ** 2
    return covariance


def caused_covariance(errors: FloatArray, r_km: FloatArray, v_km_s: FloatArray, axis_km: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, RTN axes, of states (n, 3) by ``errors`` (n, 6, 6) of `errors_of_causes`."""
    directions = _error_directions(r_km, v_km_s, axis_km)
    return symmetric(directions @ errors @ directions.swapaxes(-1, -2))


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
