"""Geometric visibility at given instants: horizon and range for all sensors, darkness and sunlight for telescopes.

Visibility intervals are computed by ``sensing.passes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.frames import (
    enu_basis_itrf,
    geodetic_to_itrf_km,
    radec,
    site_is_dark,
    site_to_teme,
    sun_teme_km,
    sunlit_fraction,
    teme_to_itrf,
    topocentric,
)
from sda_platform.orbits.sensing.light import echo_range_km, seen_state
from sda_platform.orbits.sensing.sensors import Sensor

_MARGIN: Final = float(np.sin(np.radians(2.0)))
"""Elevation an object can gain near the horizon between two instants that are ten seconds apart."""
_SITE: Final = ("latitude_deg", "longitude_deg", "altitude_m")


@dataclass(frozen=True)
class LinesOfSight:
    """m true lines of sight, in order of time, source and object; states are those at reception."""

    sensor: npt.NDArray[np.int64]
    index: IntArray
    time_ns: IntArray
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    azimuth_rad: FloatArray
    elevation_rad: FloatArray
    range_km: FloatArray
    range_rate_km_s: FloatArray
    right_ascension_rad: FloatArray
    declination_rad: FloatArray


def lines_of_sight(
    sensors: Sequence[Sensor],
    sensor: IntArray,
    index: IntArray,
    time_ns: IntArray,
    states: tuple[npt.NDArray[np.uint8], FloatArray, FloatArray],
) -> LinesOfSight:
    """Return the lines of sight along which an object can be observed, in the given order.

    ``sensor`` (n,) are positions in ``sensors``, ``index`` (n,) numbers of objects. ``states``: error (n,), position
    (n, 3) km and velocity (n, 3) km/s, TEME, of the object at ``time_ns`` (n,).
    """
    error, r_teme_km, v_teme_km_s = states
    column = _columns(sensors)
    latitude_deg, longitude_deg, altitude_m = (column[name][sensor] for name in _SITE)
    site_km, site_km_s = site_to_teme(latitude_deg, longitude_deg, altitude_m, time_ns)
    r_seen, v_seen, _ = seen_state(r_teme_km, v_teme_km_s, site_km)
    azimuth, elevation, _, range_rate = topocentric(r_seen, v_seen, latitude_deg, longitude_deg, altitude_m, time_ns)
    range_km = echo_range_km(r_seen, site_km, site_km_s)
    measured = (azimuth, elevation, range_km, range_rate, *radec(r_seen - site_km))
    with np.errstate(invalid="ignore"):
        seen = (error == 0) & (elevation >= np.radians(column["min_elevation_deg"][sensor]))
        seen &= range_km <= column["max_range_km"][sensor]
    optical = np.array([s.kind == "optical" for s in sensors], dtype=bool)[sensor]
    seen &= ~optical | _dark_and_lit(column, sensor, time_ns, r_teme_km)
    kept = (part[seen] for part in (sensor, index, time_ns, r_teme_km, v_teme_km_s, *measured))
    return LinesOfSight(*kept)


def comes_near(sensor: Sensor, r_teme_km: FloatArray, time_ns: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether objects (n,) come near a sensor's field of regard at any of the instants (t,), ten seconds apart.

    ``r_teme_km``: (n, t, 3).
    """
    site_km = geodetic_to_itrf_km(sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
    up = enu_basis_itrf(sensor.latitude_deg, sensor.longitude_deg)[2]
    line_km = teme_to_itrf(r_teme_km, time_ns) - site_km
    range_km = np.linalg.norm(line_km, axis=-1)
    with np.errstate(invalid="ignore"):
        near = line_km @ up >= range_km * (np.sin(np.radians(sensor.min_elevation_deg)) - _MARGIN)
        near &= range_km <= sensor.max_range_km * 1.05
        if sensor.kind == "optical":
            near &= site_is_dark(sensor.latitude_deg, sensor.longitude_deg, time_ns)
            near &= sunlit_fraction(r_teme_km, sun_teme_km(time_ns)) >= 1.0
        return np.asarray(near.any(axis=1))


def _columns(sensors: Sequence[Sensor]) -> dict[str, FloatArray]:
    names = (*_SITE, "min_elevation_deg", "max_range_km")
    return {name: np.array([getattr(s, name) for s in sensors], dtype=np.float64) for name in names}


def _dark_and_lit(
    column: dict[str, FloatArray], sensor: IntArray, time_ns: IntArray, r_teme_km: FloatArray
) -> npt.NDArray[np.bool_]:
    dark = site_is_dark(column["latitude_deg"][sensor], column["longitude_deg"][sensor], time_ns)
    with np.errstate(invalid="ignore"):
        return np.asarray(dark & (sunlit_fraction(r_teme_km, sun_teme_km(time_ns)) >= 1.0))
