"""What SGP4 lacks: errors that a perfect element set has at any age, from integrated and measured orbits.

Differences between sets of one object do not show them, because both sets have them.
"""

from __future__ import annotations

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.error_causes import (
    ECCENTRIC,
    GEOSTATIONARY_AXIS_KM,
    axis_and_eccentricity,
    caused_covariance,
    errors_of_causes,
)

# Kinds of orbits: low, medium, geostationary, eccentric.
_LOW, _MEDIUM, _GEOSTATIONARY, _ECCENTRIC = range(4)
_LOW_PERIGEE_KM, _HIGHER_PERIGEE_KM = 8_378.135, 6_978.135
# Radial, in-track and cross-track. Low orbits: Aida & Kirschner (2013), element sets at epoch against precise orbits.
# Geostationary: SGP4 fits to 36 hours of 13 real satellites (BeiDou, QZSS) are off by 0.65, 0.8 and 0.64 km; the last
# is 0.12 km on inclined orbits. Other regimes: figures of the size seen against precise orbits.
_SIGMA_KM = np.array([[0.176, 0.695, 0.168], [0.25, 0.8, 0.2], [0.7, 1.2, 0.7], [1.0, 3.0, 1.0]])
# The osculating axis of SGP4 lacks tesseral and second-order short periods: 55 m rms against integrated low orbits,
# 52 m against the laser ephemeris of LAGEOS-2.
_AXIS_KM = 0.055
# Of each component of SGP4's velocity. On eccentric orbits it is that within 10,000 km of the Earth's centre, and falls
# outwards; their planes are off, too.
_SPEED_KM_S = np.array([8e-5, 1e-5, 3.5e-5, 1.2e-3])
_SPEED_BELOW_600_KM_S = 1.2e-4
_NEAR_KM, _PLANE_KM, _PLANE_SPEED_RATIO = 10_000.0, 2.5, 1.6


def steady_covariance_rtn(r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, RTN axes, of states (n, 3) that perfect element sets predict; NaN off closed
    orbits. The planes of eccentric orbits are off by what SGP4 lacks.
    """
    axis_km, eccentricity = axis_and_eccentricity(r_teme_km, v_teme_km_s)
    kind, nothing = _kinds(axis_km, eccentricity), np.zeros(len(axis_km))
    errors = errors_of_causes(_SIGMA_KM[kind], axis_km, nothing, nothing)
    errors[:, 0, 0] += _AXIS_KM**2
    covariance = caused_covariance(errors, r_teme_km, v_teme_km_s, axis_km)
    covariance[kind == _ECCENTRIC, 2, 2] += _PLANE_KM**2
    return covariance


def short_period_covariance_rtn(r_teme_km: FloatArray, v_teme_km_s: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6) of errors of velocity by the short periods that SGP4 lacks, RTN axes, by states (n, 3)."""
    axis_km, eccentricity = axis_and_eccentricity(r_teme_km, v_teme_km_s)
    kind = _kinds(axis_km, eccentricity)
    speed_km_s = _SPEED_KM_S[kind]
    is_lowest = (kind == _LOW) & (axis_km * (1 - eccentricity) < _HIGHER_PERIGEE_KM)
    speed_km_s = np.where(is_lowest, _SPEED_BELOW_600_KM_S, speed_km_s)
    slower = np.minimum(1.0, _NEAR_KM / np.linalg.norm(r_teme_km, axis=-1)) ** 1.5
    is_eccentric = kind == _ECCENTRIC
    speed_km_s = speed_km_s * np.where(is_eccentric, slower, 1.0)
    covariance = np.zeros((len(kind), 6, 6))
    covariance[:, 3:, 3:] = (speed_km_s**2)[:, None, None] * np.eye(3)
    covariance[is_eccentric, 5, 5] *= _PLANE_SPEED_RATIO**2
    return covariance


def _kinds(axis_km: FloatArray, eccentricity: FloatArray) -> IntArray:
    by_size = np.where(axis_km * (1 - eccentricity) < _LOW_PERIGEE_KM, _LOW, _MEDIUM)
    by_size = np.where(axis_km > GEOSTATIONARY_AXIS_KM, _GEOSTATIONARY, by_size)
    return np.asarray(np.where(eccentricity > ECCENTRIC, _ECCENTRIC, by_size))
