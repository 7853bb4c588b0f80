"""Solar flux and geomagnetic activity from a file (`formats.space_weather`), or constants.

Without a file, and for days that it does not have, F10.7 is 150 and Ap 15: a mean of solar cycles 19 to 24.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.space_weather import AP_A_DAY, read_days
from sda_platform.units import DAY_NS

DEFAULT_F107, DEFAULT_AP = 150.0, 15.0
_UNIX_DAY = date(1970, 1, 1).toordinal()
_AP_NS = DAY_NS // AP_A_DAY
# The atmosphere follows geomagnetic activity after 6.7 hours.
_DELAY_NS = DAY_NS * 67 // 240


@dataclasses.dataclass(frozen=True, eq=False)
class SpaceWeather:
    """Values of k days from ``first_day`` (days since 1970) on, NaN where a day has none: F10.7 and its mean (k,), and
    Ap (k, 8).
    """

    first_day: int = 0
    f107: FloatArray = dataclasses.field(default_factory=lambda: np.empty(0))
    f107_mean: FloatArray = dataclasses.field(default_factory=lambda: np.empty(0))
    ap: FloatArray = dataclasses.field(default_factory=lambda: np.empty((0, AP_A_DAY)))

    @classmethod
    def of_days(cls, days: Mapping[date, tuple[float, ...]]) -> SpaceWeather:
        """From F10.7, its mean and the eight values of Ap of at least one day; NaN where unknown."""
        numbers = [day.toordinal() - _UNIX_DAY for day in days]
        table = np.full((max(numbers) - min(numbers) + 1, 2 + AP_A_DAY), np.nan)
        table[np.array(numbers) - min(numbers)] = list(days.values())
        return cls(min(numbers), table[:, 0], table[:, 1], table[:, 2:])

    def on(self, day: date) -> tuple[float, ...]:
        """F10.7, its mean and the eight values of Ap of one day, NaN where unknown."""
        row = day.toordinal() - _UNIX_DAY - self.first_day
        if not 0 <= row < len(self.ap):
            return (math.nan,) * (2 + AP_A_DAY)
        return float(self.f107[row]), float(self.f107_mean[row]), *self.ap[row].tolist()

    def at(self, time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """F10.7 of the day before, its 81-day mean, and Ap of the three hours 6.7 hours before ``time_ns`` (n,).

        Days without a value have the defaults.
        """
        before, same = (np.floor_divide(time_ns - delay_ns, DAY_NS) - self.first_day for delay_ns in (DAY_NS, 0))
        interval = np.floor_divide(time_ns - _DELAY_NS, _AP_NS) - AP_A_DAY * self.first_day
        mean = _value(self.f107_mean, same, DEFAULT_F107)
        daily = _value(self.f107, before, math.nan)
        return np.where(np.isnan(daily), mean, daily), mean, _value(self.ap.ravel(), interval, DEFAULT_AP)


CONSTANT_WEATHER = SpaceWeather()
"""The defaults at all times."""


def read_space_weather(path: Path) -> SpaceWeather:
    """Read a file of daily values. Raises SpaceWeatherError."""
    return SpaceWeather.of_days(read_days(path))


def _value(values: FloatArray, index: IntArray, default: float) -> FloatArray:
    if not len(values):
        return np.full(len(index), default)
    is_known = (index >= 0) & (index < len(values))
    found = values[np.clip(index, 0, len(values) - 1)]
    known = is_known & np.isfinite(found)
    return np.where(known, found, default)
