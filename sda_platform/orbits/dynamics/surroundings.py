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

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import tai_to_utc_ns, utc_to_tai_ns
from sda_platform.orbits.dynamics.atmosphere import geomagnetic_temperature_k, night_temperature_k, season
from sda_platform.orbits.dynamics.space_weather import SpaceWeather
from sda_platform.orbits.earth_orientation import gcrf_to_itrf, moon_gcrf_km
from sda_platform.orbits.earth_parameters import terrestrial_time
from sda_platform.orbits.frames import ASTRONOMICAL_UNIT_KM, EARTH_ROTATION_RAD_S
from sda_platform.units import DAY_NS

# Cubics over half an hour interpolate the Moon to metres, and the rest better.
GRID_S = 1800.0
_GRID_NS = int(GRID_S * 1e9)
LONGEST_STEP_S = 2 * GRID_S
"""How far an integrator may look beyond the times that were asked for."""
_MARGIN = 4
"""Rows of the table before and after those times: the longest step, and what a cubic needs beside it."""


class Surroundings(NamedTuple):
    """Rows in steps of GRID_S of elapsed time."""

    first_tai_ns: int
    table: FloatArray
    """(k, 18): the rotation from GCRF into the Earth-fixed frame (9, by rows), Moon (3) and Sun (3) in km, GCRF;
    exospheric temperature of the night and its rise by storms, K; season.
    """

    def place(self, time_ns: IntArray) -> tuple[IntArray, FloatArray]:
        """Rows of the table at or before UTC times, and the seconds since them: the same whatever the table spans."""
        row, after_ns = np.divmod(utc_to_tai_ns(time_ns) - self.first_tai_ns, _GRID_NS)
        return row, after_ns / 1e9


def surroundings(first_ns: int, last_ns: int, weather: SpaceWeather) -> Surroundings:
    """Tables that cover the times from ``first_ns`` to ``last_ns``, whole days of UTC."""
    return _of_days(first_ns // DAY_NS, -(-(last_ns + 1) // DAY_NS), weather)


@lru_cache(maxsize=16)
def _of_days(first: int, end: int, weather: SpaceWeather) -> Surroundings:
    # Rows lie at the same instants in every table, also beside one that begins before a leap second.
    first_ns = (int(utc_to_tai_ns(first * DAY_NS)) // _GRID_NS - _MARGIN) * _GRID_NS
    end_ns = (-(-int(utc_to_tai_ns(end * DAY_NS)) // _GRID_NS) + _MARGIN) * _GRID_NS
    time_ns = tai_to_utc_ns(np.arange(first_ns, end_ns + 1, _GRID_NS, dtype=np.int64))
    tt = terrestrial_time(time_ns)
    moon = moon_gcrf_km(time_ns)
    sun = -erfa.epv00(*tt)[0]["p"] * ASTRONOMICAL_UNIT_KM
    f107, f107_mean, ap = weather.at(time_ns)
    air = np.stack([night_temperature_k(f107, f107_mean), geomagnetic_temperature_k(ap), season(time_ns)], axis=1)
    turn = gcrf_to_itrf(time_ns).reshape(-1, 9)
    return Surroundings(first_ns, np.ascontiguousarray(np.hstack([turn, moon, sun, air])))


@njit(cache=True, nogil=True, error_model="numpy")
def at_time(around: Any, row: int, after_s: float, values: Any) -> None:
    """Interpolate the table into ``values`` (18,), at the time ``after_s`` after that of a row.

    Rotations (first 9) are interpolated without the Earth's mean spin since the time itself, then nearly constant.
    """
    place = after_s / GRID_S
    whole = int(np.floor(place))
    low, u = row + whole - 1, place - whole
    a, b = -u * (u - 1) * (u - 2) / 6, (u + 1) * (u - 1) * (u - 2) / 2
    c, d = -(u + 1) * u * (u - 2) / 2, (u + 1) * u * (u - 1) / 6
    for n in range(6):
        values[n] = 0.0
    for k, share in enumerate((a, b, c, d)):
        spin = EARTH_ROTATION_RAD_S * GRID_S * (u + 1 - k)
        cosine, sine = share * np.cos(spin), share * np.sin(spin)
        for n in range(3):
            x, y = around.table[low + k, n], around.table[low + k, 3 + n]
            values[n] += cosine * x + sine * y
            values[3 + n] += cosine * y - sine * x
    for n in range(6, 15):
        values[n] = (
            a * around.table[low, n]
            + b * around.table[low + 1, n]
            + c * around.table[low + 2, n]
            + d * around.table[low + 3, n]
        )
    for n in range(15, 18):
        values[n] = (1 - u) * around.table[low + 1, n] + u * around.table[low + 2, n]
