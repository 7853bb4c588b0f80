"""Reference frames, sites, the Sun and the Earth's shadow: the geometry between orbits and sensors.

TEME is the true-equator mean-equinox frame of date of SGP4, and ITRF the Earth-fixed frame of sites. Between them are
mean sidereal time of UT1 and polar motion, as published (`earth_parameters`). Celestial frames are in
``earth_orientation``. Geometry only: light time is in ``sensing.light``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.earth_parameters import orientation, ut1_ns
from sda_platform.units import DAY_NS

EARTH_ROTATION_RAD_S = 7.292115146706979e-5
WGS84_RADIUS_KM = 6378.137
WGS84_FLATTENING = 1 / 298.257223563
SUN_RADIUS_KM = 695_700.0
ASTRONOMICAL_UNIT_KM = 149_597_870.7
DARK_SUN_ELEVATION_RAD = float(np.radians(-12.0))

_J2000_UNIX_NS = 946_728_000_000_000_000
# The terrestrial origin moves on the equator by 47 microarcseconds a century (IERS Conventions 2010, eq. 5.13).
_ORIGIN_RAD_PER_CENTURY = -47e-6 * np.pi / 648_000
_X, _Y, _Z = 0, 1, 2


def gmst82_rad(time_ns: npt.ArrayLike) -> FloatArray:
    """Greenwich mean sidereal time in [0, 2 pi) at instants (...), UTC, from their UT1.

    Source: Aoki et al. 1982; Vallado, Fundamentals of Astrodynamics (4th ed.), eq. 3-47.
    """
    return _gmst82_of_ut1(ut1_ns(time_ns, orientation(time_ns)))


def _gmst82_of_ut1(count_ns: npt.NDArray[np.int64]) -> FloatArray:
    since_j2000 = count_ns - _J2000_UNIX_NS
    centuries = since_j2000 / (36525.0 * DAY_NS)
    # The 876600 h term is whole days per day: taking the day's fraction from integers keeps full precision.
    day_fraction = (since_j2000 % DAY_NS) / DAY_NS
    seconds = 67310.54841 + centuries * (8640184.812866 + centuries * (0.093104 - 6.2e-6 * centuries))
    return np.asarray((day_fraction + seconds / 86400.0) % 1.0 * (2 * np.pi))


def _earth_angles_rad(time_ns: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the turn about the pole, and the pole's coordinates x and y, (...) each."""
    seen = orientation(time_ns)
    count_ns = ut1_ns(time_ns, seen)
    origin_rad = _ORIGIN_RAD_PER_CENTURY * (count_ns - _J2000_UNIX_NS) / (36525.0 * DAY_NS)
    return _gmst82_of_ut1(count_ns) + origin_rad, seen.polar_x_rad, seen.polar_y_rad


def teme_to_itrf(r_teme_km: npt.ArrayLike, time_ns: npt.ArrayLike) -> FloatArray:
    """Rotate vectors (..., 3) from TEME into ITRF. Source: Vallado et al., AIAA 2006-6753, appendix C."""
    turn, x, y = _earth_angles_rad(time_ns)
    about_pole = _rotated(np.asarray(r_teme_km, dtype=np.float64), turn, _Z)
    return _rotated(_rotated(about_pole, -x, _Y), -y, _X)


def itrf_to_teme(r_itrf_km: npt.ArrayLike, time_ns: npt.ArrayLike) -> FloatArray:
    """Rotate vectors (..., 3) from ITRF into TEME."""
    turn, x, y = _earth_angles_rad(time_ns)
    about_pole = _rotated(_rotated(np.asarray(r_itrf_km, dtype=np.float64), y, _X), x, _Y)
    return _rotated(about_pole, -turn, _Z)


def velocity_teme_to_itrf(r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike, time_ns: npt.ArrayLike) -> FloatArray:
    """Velocity relative to the rotating Earth, in ITRF, (..., 3) km/s."""
    relative = np.asarray(v_teme_km_s, dtype=np.float64) - earth_rotation_cross(r_teme_km)
    return teme_to_itrf(relative, time_ns)


def velocity_itrf_to_teme(r_itrf_km: npt.ArrayLike, v_itrf_km_s: npt.ArrayLike, time_ns: npt.ArrayLike) -> FloatArray:
    """Inertial velocity in TEME, (..., 3) km/s, of what moves at ``v_itrf_km_s`` relative to the rotating Earth."""
    return itrf_to_teme(v_itrf_km_s, time_ns) + earth_rotation_cross(itrf_to_teme(r_itrf_km, time_ns))


def earth_rotation_cross(r_km: npt.ArrayLike) -> FloatArray:
    """omega x r in km/s, (..., 3): the inertial velocity of a point fixed to the Earth at ``r_km``, TEME."""
    r = np.asarray(r_km, dtype=np.float64)
    return np.stack([-r[..., 1], r[..., 0], np.zeros_like(r[..., 0])], axis=-1) * EARTH_ROTATION_RAD_S


def geodetic_to_itrf_km(
    latitude_deg: npt.ArrayLike, longitude_deg: npt.ArrayLike, altitude_m: npt.ArrayLike
) -> FloatArray:
    """WGS84 geodetic position to Earth-fixed (..., 3) km. Source: Vallado eq. 3-7."""
    latitude, longitude = np.radians(latitude_deg), np.radians(longitude_deg)
    altitude_km = np.asarray(altitude_m, dtype=np.float64) / 1000.0
    e2 = WGS84_FLATTENING * (2 - WGS84_FLATTENING)
    curvature_km = WGS84_RADIUS_KM / np.sqrt(1 - e2 * np.sin(latitude) ** 2)
    across = (curvature_km + altitude_km) * np.cos(latitude)
    return np.stack(
        np.broadcast_arrays(
            across * np.cos(longitude),
            across * np.sin(longitude),
            (curvature_km * (1 - e2) + altitude_km) * np.sin(latitude),
        ),
        axis=-1,
    )


def site_to_teme(
    latitude_deg: npt.ArrayLike,
    longitude_deg: npt.ArrayLike,
    altitude_m: npt.ArrayLike,
    time_ns: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """A site's position (..., 3) km and velocity (..., 3) km/s in TEME at ``time_ns``."""
    r_teme_km = itrf_to_teme(geodetic_to_itrf_km(latitude_deg, longitude_deg, altitude_m), time_ns)
    return r_teme_km, earth_rotation_cross(r_teme_km)


def enu_basis_teme(latitude_deg: npt.ArrayLike, longitude_deg: npt.ArrayLike, time_ns: npt.ArrayLike) -> FloatArray:
    """Return rows east, north, up of a geodetic site, expressed in TEME: (..., 3, 3)."""
    return itrf_to_teme(enu_basis_itrf(latitude_deg, longitude_deg), np.asarray(time_ns)[..., None])


def enu_basis_itrf(latitude_deg: npt.ArrayLike, longitude_deg: npt.ArrayLike) -> FloatArray:
    """Compute the east, north and up directions, Earth-fixed: (..., 3, 3)."""
    latitude, longitude = np.broadcast_arrays(np.radians(latitude_deg), np.radians(longitude_deg))
    sin_lat, cos_lat = np.sin(latitude), np.cos(latitude)
    sin_lon, cos_lon = np.sin(longitude), np.cos(longitude)
    east = np.stack([-sin_lon, cos_lon, np.zeros_like(sin_lon)], axis=-1)
    north = np.stack([-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat], axis=-1)
    up = np.stack([cos_lat * cos_lon, cos_lat * sin_lon, sin_lat], axis=-1)
    return np.stack([east, north, up], axis=-2)


def topocentric(
    r_teme_km: npt.ArrayLike,
    v_teme_km_s: npt.ArrayLike,
    latitude_deg: npt.ArrayLike,
    longitude_deg: npt.ArrayLike,
    altitude_m: npt.ArrayLike,
    time_ns: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Geometric azimuth [0, 2 pi) from north by east, elevation, range_km, range_rate_km_s, each (...)."""
    site_km, site_km_s = site_to_teme(latitude_deg, longitude_deg, altitude_m, time_ns)
    line_km = np.asarray(r_teme_km, dtype=np.float64) - site_km
    enu_km = np.einsum("...ij,...j->...i", enu_basis_teme(latitude_deg, longitude_deg, time_ns), line_km)
    range_km = np.linalg.norm(line_km, axis=-1)
    azimuth_rad = np.arctan2(enu_km[..., 0], enu_km[..., 1]) % (2 * np.pi)
    elevation_rad = np.arctan2(enu_km[..., 2], np.hypot(enu_km[..., 0], enu_km[..., 1]))
    closing = np.asarray(v_teme_km_s, dtype=np.float64) - site_km_s
    range_rate_km_s = np.einsum("...i,...i->...", line_km, closing) / range_km
    return azimuth_rad, elevation_rad, range_km, range_rate_km_s


def radec(line: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Right ascension [0, 2 pi) and declination, rad, of directions (..., 3) of any length."""
    x, y, z = np.moveaxis(np.asarray(line, dtype=np.float64), -1, 0)
    return np.arctan2(y, x) % (2 * np.pi), np.arctan2(z, np.hypot(x, y))


def towards(longitude_rad: npt.ArrayLike, latitude_rad: npt.ArrayLike) -> FloatArray:
    """Unit vectors (..., 3) of directions (...): the inverse of `radec`."""
    longitude, latitude = np.broadcast_arrays(longitude_rad, latitude_rad)
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=-1)


def sun_teme_km(time_ns: npt.ArrayLike) -> FloatArray:
    """Low-precision Sun (..., 3) km in the mean equator and equinox of date, good to 0.01 degrees until 2050.

    Used as TEME: the nutation between the two (< 20 arcsec) is below the model's own error.
    Source: Astronomical Almanac low-precision formula; Vallado algorithm 29.
    """
    centuries = (np.asarray(time_ns, dtype=np.int64) - _J2000_UNIX_NS) / (36525.0 * DAY_NS)
    anomaly = np.radians(357.5291092 + 35999.05034 * centuries)
    longitude = np.radians(
        280.460 + 36000.771 * centuries + 1.914666471 * np.sin(anomaly) + 0.019994643 * np.sin(2 * anomaly)
    )
    distance_km = ASTRONOMICAL_UNIT_KM * (
        1.000140612 - 0.016708617 * np.cos(anomaly) - 0.000139589 * np.cos(2 * anomaly)
    )
    obliquity = np.radians(23.439291 - 0.0130042 * centuries)
    direction = np.stack(
        [np.cos(longitude), np.cos(obliquity) * np.sin(longitude), np.sin(obliquity) * np.sin(longitude)],
        axis=-1,
    )
    return np.asarray(direction * np.asarray(distance_km)[..., None])


def sunlit_fraction(r_teme_km: npt.ArrayLike, sun_km: npt.ArrayLike) -> FloatArray:
    """Visible part of the Sun's disc from satellites (..., 3) past a spherical Earth: 0 umbra, 1 full light.

    Source: Montenbruck & Gill, Satellite Orbits (2000), section 3.4.2, eqs. 3.85-3.94.
    """
    r = np.asarray(r_teme_km, dtype=np.float64)
    to_sun = np.asarray(sun_km, dtype=np.float64) - r
    distance, sun_distance = np.linalg.norm(r, axis=-1), np.linalg.norm(to_sun, axis=-1)
    a = np.arcsin(SUN_RADIUS_KM / sun_distance)
    b = np.arcsin(np.minimum(WGS84_RADIUS_KM / distance, 1.0))
    cosine = -np.einsum("...i,...i->...", r, to_sun) / (distance * sun_distance)
    c = np.arccos(np.clip(cosine, -1.0, 1.0))
    with np.errstate(all="ignore"):
        x = (c**2 + a**2 - b**2) / (2 * c)
        y = np.sqrt(np.maximum(a**2 - x**2, 0.0))
        overlap = a**2 * np.arccos(np.clip(x / a, -1, 1)) + b**2 * np.arccos(np.clip((c - x) / b, -1, 1)) - c * y
        partial = 1.0 - overlap / (np.pi * a**2)
    return np.where(c >= a + b, 1.0, np.where(c <= b - a, 0.0, partial))


def site_is_dark(
    latitude_deg: npt.ArrayLike,
    longitude_deg: npt.ArrayLike,
    time_ns: npt.ArrayLike,
    sun_elevation_limit_rad: float = DARK_SUN_ELEVATION_RAD,
) -> npt.NDArray[np.bool_]:
    """Return whether the Sun is below the limit (nautical twilight by default) at sites (...)."""
    up = enu_basis_teme(latitude_deg, longitude_deg, time_ns)[..., 2, :]
    sun = sun_teme_km(time_ns)
    sine = np.einsum("...i,...i->...", up, sun) / np.linalg.norm(sun, axis=-1)
    return np.asarray(np.arcsin(np.clip(sine, -1, 1)) < sun_elevation_limit_rad)


def rtn_basis(r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike) -> FloatArray:
    """Return rows radial, transverse, normal of orbits (..., 3), expressed in the frame of the input: (..., 3, 3).

    ``basis @ vector`` takes a vector of that frame into RTN.
    """
    r = np.asarray(r_teme_km, dtype=np.float64)
    normal = np.cross(r, np.asarray(v_teme_km_s, dtype=np.float64))
    radial = r / np.linalg.norm(r, axis=-1, keepdims=True)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.stack([radial, np.cross(normal, radial), normal], axis=-2)


def _rotated(vector: FloatArray, angle_rad: FloatArray, axis: int) -> FloatArray:
    """Vectors (..., 3) in axes turned by ``angle_rad`` (...) about the coordinate axis ``axis``."""
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    parts = list(np.moveaxis(vector, -1, 0))
    one, two = (axis + 1) % 3, (axis + 2) % 3
    parts[one], parts[two] = cosine * parts[one] + sine * parts[two], cosine * parts[two] - sine * parts[one]
    return np.stack(np.broadcast_arrays(*parts), axis=-1)
