"""Covariance of element sets: a prior by orbital regime and age, and its linear propagation.

The two-body dynamics are in ``orbits.two_body``. Probabilities built on this prior are good for screening only: it
describes a population, not one object.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_stm

_DAY_S = 86400.0
_EARTH_RADIUS_KM = 6378.135
_MAX_AXIS_TIMING_CORRELATION = 0.95
# White acceleration that models what SGP4 leaves out: 70 m and 2 cm/s after one low orbit.
_ACCELERATION_KM2_S3 = 1e-13


@dataclasses.dataclass(frozen=True)
class PriorSigmas:
    """One-sigma position errors of an element set on a circular orbit: at its epoch, and growth with age."""

    radial_km: float
    transverse_km: float
    normal_km: float
    radial_growth_km_per_day: float
    transverse_growth_km_per_day: float


LEO = PriorSigmas(0.176, 0.695, 0.168, 0.125, 0.392)
"""Mean altitude below 2,000 km. Aida & Kirschner (2013), TLE against precise orbits."""
MEO = PriorSigmas(0.250, 0.800, 0.200, 0.030, 0.250)
GEO = PriorSigmas(0.400, 1.200, 0.150, 0.050, 0.300)
HEO = PriorSigmas(1.000, 3.000, 1.000, 0.200, 1.000)
"""Eccentricity above 0.1. MEO, GEO and HEO are rounded engineering figures of the size seen when element sets
are compared with precise orbits; they are not taken from one source.
"""


def prior_covariance_rtn(r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike, age_days: npt.ArrayLike) -> FloatArray:
    """Covariance (n, 6, 6) of position (km) and inertial velocity (km/s), in the RTN axes of each state.

    It is built from six independent element errors instead of six independent coordinates, so that velocity errors
    are consistent with the position errors: semi-major axis, timing along the orbit, eccentricity vector (two), tilt
    of the plane (two). On a circular orbit the position sigmas are exactly those of the regime at every phase: radial
    ``s_R + g_R age`` (up to the few metres of the axis error), transverse ``s_T + g_T age``, normal ``s_N``. The axis
    sigma is the one whose drift is the transverse growth, ``g_T = 1.5 n s_a``; it is correlated with the timing error
    it has already caused. The energy error is that of the axis alone.

    Args:
        r_teme_km, v_teme_km_s: (n, 3) inertial states; rows that are not closed orbits give NaN.
        age_days: (n,) or scalar time since the element epoch; its sign does not matter.
    """
    r = np.atleast_2d(np.asarray(r_teme_km, dtype=np.float64))
    v = np.atleast_2d(np.asarray(v_teme_km_s, dtype=np.float64))
    age = np.abs(np.broadcast_to(np.asarray(age_days, dtype=np.float64), (len(r),)))
    with np.errstate(all="ignore"):
        axis_km, eccentricity = _shape_of(r, v)
        mean_motion = np.sqrt(MU_EARTH_KM3_S2 / axis_km**3)
        sigma = _regime_sigmas(axis_km, eccentricity)
        causes = _error_directions(r, v, axis_km)
        elements = _element_covariance(sigma, age, mean_motion, axis_km)
        covariance = causes @ elements @ causes.swapaxes(-1, -2)
    return _symmetric(covariance)


def rtn_to_teme(covariance_rtn: npt.ArrayLike, r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike) -> FloatArray:
    """Rotate covariances (n, 6, 6) from the RTN axes of the states (n, 3) into TEME."""
    rotation = _rotation6(rtn_basis(np.atleast_2d(r_teme_km), np.atleast_2d(v_teme_km_s)))
    return _symmetric(rotation.swapaxes(-1, -2) @ np.asarray(covariance_rtn, dtype=np.float64) @ rotation)


def teme_to_rtn(covariance_teme: npt.ArrayLike, r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike) -> FloatArray:
    """Rotate covariances (n, 6, 6) from TEME into the RTN axes of the states (n, 3)."""
    rotation = _rotation6(rtn_basis(np.atleast_2d(r_teme_km), np.atleast_2d(v_teme_km_s)))
    return _symmetric(rotation @ np.asarray(covariance_teme, dtype=np.float64) @ rotation.swapaxes(-1, -2))


def transport(
    deviation: npt.ArrayLike,
    covariance: npt.ArrayLike,
    r_teme_km: npt.ArrayLike,
    v_teme_km_s: npt.ArrayLike,
    dt_s: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Propagate deviations and covariances linearly from a reference state to ``dt_s`` later (or earlier).

    The caller propagates the reference (SGP4); two-body dynamics apply to the small difference only. Neglecting J2 in
    the difference costs about 0.1 % of it per radian of perigee or node motion, well below the covariance itself.

    Args:
        deviation: (n, 6) TEME, km and km/s, true minus reference.
        covariance: (n, 6, 6) of the deviation.
        r_teme_km, v_teme_km_s: (n, 3) reference states at the start.
        dt_s: (n,) or scalar seconds.

    Returns:
        deviation (n, 6) and covariance (n, 6, 6) at the end, TEME.
    """
    stm = two_body_stm(r_teme_km, v_teme_km_s, dt_s)
    moved = np.einsum("nij,nj->ni", stm, np.atleast_2d(np.asarray(deviation, dtype=np.float64)))
    return moved, _symmetric(stm @ np.asarray(covariance, dtype=np.float64) @ stm.swapaxes(-1, -2))


def process_noise(elapsed_s: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, that a tracked state gains over ``elapsed_s`` (n,), forwards or backwards.

    Source: Bar-Shalom, Li & Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), eq. 6.2.2-12.
    """
    noise = np.zeros((len(elapsed_s), 6, 6))
    dt, unit = elapsed_s[:, None, None], np.eye(3)
    noise[:, :3, :3], noise[:, 3:, 3:] = np.abs(dt) ** 3 / 3 * unit, np.abs(dt) * unit
    noise[:, :3, 3:] = noise[:, 3:, :3] = dt * np.abs(dt) / 2 * unit
    return np.asarray(_ACCELERATION_KM2_S3 * noise)


def _shape_of(r: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    r_norm = np.linalg.norm(r, axis=-1)
    axis_km = 1 / (2 / r_norm - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
    axis_km = np.where(axis_km > 0, axis_km, np.nan)
    radial = np.einsum("ni,ni->n", r, v) / np.sqrt(MU_EARTH_KM3_S2 * axis_km)
    return axis_km, np.hypot(1 - r_norm / axis_km, radial)


def _regime_sigmas(axis_km: FloatArray, eccentricity: FloatArray) -> FloatArray:
    """Sigmas and growths (n, 5) in the order of the fields of ``PriorSigmas``."""
    table = np.array([dataclasses.astuple(regime) for regime in (LEO, MEO, GEO, HEO)])
    altitude_km = axis_km - _EARTH_RADIUS_KM
    regime = np.select([eccentricity > 0.1, altitude_km < 2000.0, altitude_km < 30000.0], [3, 0, 1], default=2)
    return np.asarray(table[regime])


def _element_covariance(sigma: FloatArray, age: FloatArray, mean_motion: FloatArray, axis_km: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6) of the six causes in the column order of ``_error_directions``."""
    radial_km = sigma[:, 0] + sigma[:, 3] * age
    transverse_km = sigma[:, 1] + sigma[:, 4] * age
    axis_sigma = sigma[:, 4] / (1.5 * mean_motion * _DAY_S)
    # An eccentricity error that moves an object s_R up and down moves it 2 s_R to and fro; timing is left.
    timing_km = np.sqrt(np.maximum(transverse_km**2 - 4 * radial_km**2, 0.0))
    drift_km = np.minimum(sigma[:, 4] * age, _MAX_AXIS_TIMING_CORRELATION * timing_km)
    covariance = np.zeros((len(age), 6, 6))
    speed = mean_motion * axis_km
    covariance[:, 0, 0] = axis_sigma**2
    covariance[:, 1, 1] = (timing_km / speed) ** 2
    covariance[:, 0, 1] = covariance[:, 1, 0] = -axis_sigma * drift_km / speed
    covariance[:, 2, 2] = covariance[:, 3, 3] = radial_km**2
    covariance[:, 4, 4] = covariance[:, 5, 5] = (sigma[:, 2] / axis_km) ** 2
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


def _rotation6(basis: FloatArray) -> FloatArray:
    rotation = np.zeros((*basis.shape[:-2], 6, 6))
    rotation[..., :3, :3] = rotation[..., 3:, 3:] = basis
    return rotation


def _symmetric(matrix: FloatArray) -> FloatArray:
    return 0.5 * (matrix + matrix.swapaxes(-1, -2))
