"""Daily solar flux and geomagnetic activity, a CSV with CelesTrak's columns (`SW-All.csv`, `SW-Last5Years.csv`).

They are DATE, AP_AVG, F10.7_OBS, F10.7_OBS_CENTER81, and AP1 to AP8, the eight three-hourly values of a day. Where
those are missing, as in monthly predictions, the day's average counts for each.
"""

import csv
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Final

from sda_platform.formats.listings import ListingError

_COLUMNS: Final = ("DATE", "AP_AVG", "F10.7_OBS", "F10.7_OBS_CENTER81")
AP_A_DAY: Final = 8
"""Values of Ap a day, of three hours each."""
RECEIVED_SPACE_WEATHER: Final = "space-weather.csv"
"""Name of the file in the home that a collector receives."""
_AP_COLUMNS: Final = tuple(f"AP{number}" for number in range(1, AP_A_DAY + 1))


class SpaceWeatherError(ListingError):
    """A space-weather file that cannot be read; the message gives file, line and reason."""


def read_days(path: Path) -> dict[date, tuple[float, ...]]:
    """Return F10.7, its 81-day mean and the eight values of Ap of each day, at least one; NaN where unknown.

    Raises SpaceWeatherError.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return _from_rows(path, csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpaceWeatherError(f"{path}: {error}") from error


def _from_rows(path: Path, rows: Iterable[Mapping[str, str]]) -> dict[date, tuple[float, ...]]:
    days: dict[date, tuple[float, ...]] = {}
    for line, row in enumerate(rows, 2):
        if missing := [name for name in _COLUMNS if row.get(name) is None]:
            raise SpaceWeatherError(f"{path}: column {missing[0]} is missing")
        try:
            day = date.fromisoformat(row["DATE"])
            average, daily, mean = (float(row[name] or "nan") for name in _COLUMNS[1:])
            parts = [float(row.get(name) or average) for name in _AP_COLUMNS]
        except ValueError as error:
            raise SpaceWeatherError(f"{path}, line {line}: {error}") from error
        days[day] = (daily, mean, *parts)
    if not days:
        raise SpaceWeatherError(f"{path}: no days")
    return days
