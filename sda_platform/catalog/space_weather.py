"""Space weather as a Dagster resource: a file or constants; commits record the days that their rows depend on."""

import math
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Self

from pydantic import Field
from typing_extensions import override

from sda_platform.formats.space_weather import AP_A_DAY, RECEIVED_SPACE_WEATHER
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.space_weather import (
    CONSTANT_WEATHER,
    DEFAULT_AP,
    DEFAULT_F107,
    SpaceWeather,
    read_space_weather,
)
from sda_platform.orchestration.recorded_settings import RecordedResource
from sda_platform.setting_sections import SpaceWeatherSettings
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS

_AP = "ap"
_QUANTITIES = ("f107", "f107_mean", *(f"{_AP}{number}" for number in range(1, AP_A_DAY + 1)))
# Tracks reach back by hours and forward by a day, after a manoeuvre by the horizon of a screening.
_DAYS_BEFORE, _DAYS_AFTER = 4, 9


class SpaceWeatherResource(SpaceWeatherSettings, RecordedResource["SpaceWeatherResource"]):
    """The density of the air depends on it. Commits record values, so a file that grows changes no replay."""

    _UNRECORDED = ("space_weather", "received")

    received: str = Field(default="", description="File that is used if it is there, and no other one is named.")
    days: dict[str, dict[str, float]] | None = Field(
        default=None,
        description="F10.7, its 81-day mean and eight values of Ap by day, as far as known; null: those of the file.",
    )

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the resource of a home, with the file that its collector receives."""
        received = settings.home.absolute() / RECEIVED_SPACE_WEATHER
        return cls(**settings.weather.model_dump(), received=str(received))

    @override
    def recorded(self) -> dict[str, Any]:
        """Return the days for the manifest; `near` selects the days of a commit before."""
        return {"days": self.days or {}}

    def near(self, time_ns: int) -> Self:
        """Return this resource with the days that propagation near ``time_ns`` needs.

        Raises SpaceWeatherError where the file cannot be used.
        """
        if self.days is not None:
            return self
        weather = read_space_weather(Path(self._file)) if self._file else CONSTANT_WEATHER
        today = date(1970, 1, 1) + timedelta(days=time_ns // DAY_NS)
        span = (today + timedelta(days=n) for n in range(-_DAYS_BEFORE, _DAYS_AFTER + 1))
        days = {day.isoformat(): _known(weather.on(day)) for day in span}
        return self.as_recorded({"days": {day: values for day, values in days.items() if values}})

    def dynamics(self) -> Dynamics:
        """Return the numerical model in the weather of the days."""
        days = {
            date.fromisoformat(day): tuple(_value(values, name) for name in _QUANTITIES)
            for day, values in (self.days or {}).items()
        }
        return Dynamics(SpaceWeather.of_days(days)) if days else Dynamics()

    def stated(self) -> str:
        """Describe the space weather that density depends on, for people."""
        if not self.days:
            return f"F10.7 {DEFAULT_F107:g}, Ap {DEFAULT_AP:g} (constant)"
        return f"{self._file or 'a file'}: {len(self.days)} days from {min(self.days)} to {max(self.days)}"

    @property
    def _file(self) -> str:
        return self.space_weather or (self.received if self.received and Path(self.received).is_file() else "")


def _value(day: Mapping[str, float], name: str) -> float:
    # Commits of earlier releases have one value of Ap a day.
    return day.get(name, day.get(_AP, math.nan) if name.startswith(_AP) else math.nan)


def _known(values: tuple[float, ...]) -> dict[str, float]:
    return {name: value for name, value in zip(_QUANTITIES, values, strict=True) if not math.isnan(value)}
