"""What forces depend on besides the satellite, on a grid of time: the Earth's orientation, Moon, Sun, and the air.

Orientation is IAU 2006/2000A with published UT1 and polar motion; before and after the published span their nearest
values count. Moon: ERFA ``moon98`` (Meeus), Sun: ERFA ``epv00``. The grid is one of elapsed time (TAI).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import erfa
import numpy as np
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.formats.time_systems import tai_to_utc_ns, utc_to_tai_ns
from sda_platform.orbits.dynamics.atmosphere import geomagnetic_temperature_k, night_temperature_k, season
from sda_platform.orbits.dynamics.space_weather import SpaceWeather
from sda_platform.orbits.earth_orientation import gcrf_to_itrf
from sda_platform.orbits.earth_parameters import terrestrial_time
from sda_platform.orbits.frames import ASTRONOMICAL_UNIT_KM, EARTH_ROTATION_RAD_S
from sda_platform.units import DAY_NS

# Cubics over half an hour interpolate the Moon to metres, and the rest better.
GRID_S = 1800.0
_MARGIN = 3


class Surroundings(NamedTuple):
    """Tables from ``start_s`` on, in steps of GRID_S; elapsed seconds count from ``zero_tai_ns``."""

    zero_tai_ns: int
    start_s: float
    table: FloatArray
    """(k, 18): the rotation from GCRF into the Earth-fixed frame without the Earth's mean spin since zero (9, by
    rows), Moon (3) and Sun (3) in km, GCRF; exospheric temperature of the night and its rise by storms, K; season.
    """


def surroundings(first_ns: int, last_ns: int, weather: SpaceWeather) -> Surroundings:
    """Tables that cover the times from ``first_ns`` to ``last_ns``, whole days of UTC."""
    return _of_days(first_ns // DAY_NS, -(-(last_ns + 1) // DAY_NS), weather)


@lru_cache(maxsize=16)
def _of_days(first: int, end: int, weather: SpaceWeather) -> Surroundings:
    step_ns, zero_ns = int(GRID_S * 1e9), int(utc_to_tai_ns(first * DAY_NS))
    count = (end - first) * (DAY_NS // step_ns) + 2 * _MARGIN + 1
    elapsed_ns = (np.arange(count, dtype=np.int64) - _MARGIN) * step_ns
    time_ns = tai_to_utc_ns(zero_ns + elapsed_ns)
    spin = EARTH_ROTATION_RAD_S * elapsed_ns / 1e9
    cosine, sine, still = np.cos(spin), np.sin(spin), np.zeros(len(spin))
    back = np.stack([cosine, -sine, still, sine, cosine, still, still, still, still + 1], 1).reshape(-1, 3, 3)
    tt = terrestrial_time(time_ns)
    moon = erfa.moon98(*tt)["p"] * ASTRONOMICAL_UNIT_KM
    sun = -erfa.epv00(*tt)[0]["p"] * ASTRONOMICAL_UNIT_KM
    f107, f107_mean, ap = weather.at(time_ns)
    air = np.stack([night_temperature_k(f107, f107_mean), geomagnetic_temperature_k(ap), season(time_ns)], axis=1)
    slow = (back @ gcrf_to_itrf(time_ns)).reshape(-1, 9)
    return Surroundings(zero_ns, -_MARGIN * GRID_S, np.ascontiguousarray(np.hstack([slow, moon, sun, air])))


@njit(cache=True, nogil=True, error_model="numpy")
def at_time(around: Any, t_s: float, values: Any) -> None:
    """Interpolate the table into ``values`` (18,); the rotation (first 9) includes the spin."""
    place = (t_s - around.start_s) / GRID_S
    low = min(max(int(np.floor(place)) - 1, 0), len(around.table) - 4)
    u = place - low - 1
    a, b = -u * (u - 1) * (u - 2) / 6, (u + 1) * (u - 1) * (u - 2) / 2
    c, d = -(u + 1) * u * (u - 2) / 2, (u + 1) * u * (u - 1) / 6
    for n in range(15):
        values[n] = (
            a * around.table[low, n]
            + b * around.table[low + 1, n]
            + c * around.table[low + 2, n]
            + d * around.table[low + 3, n]
        )
    for n in range(15, 18):
        values[n] = (1 - u) * around.table[low + 1, n] + u * around.table[low + 2, n]
    spin = EARTH_ROTATION_RAD_S * t_s
    cosine, sine = np.cos(spin), np.sin(spin)
    for n in range(3):
        x, y = values[n], values[3 + n]
        values[n], values[3 + n] = cosine * x + sine * y, cosine * y - sine * x
