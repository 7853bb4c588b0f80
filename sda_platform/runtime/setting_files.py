"""The files that settings name: read before a start, and by `sda status` while people change them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from sda_platform.conjunction.resource import AlertingResource, ScreeningResource
from sda_platform.edge.config import ConfigError, load_config
from sda_platform.formats.listings import ListingError
from sda_platform.ground.commanders import CommandersError, read_commanders
from sda_platform.lake.errors import LakeError
from sda_platform.landing.first_lines import MappingError, Mappings
from sda_platform.notification.rules import NotifyRules
from sda_platform.orbits.dynamics.space_weather import read_space_weather
from sda_platform.orbits.sensing.sensors import sensor_network
from sda_platform.settings import Settings
from sda_platform.signing_keys import UnusableKey
from sda_platform.tasking.resource import TaskingResource

_UNUSABLE: Final = (ListingError, ConfigError, MappingError, LakeError, CommandersError, UnusableKey, OSError)


def require_usable_files(settings: Settings) -> None:
    """Raise the error of the first file that cannot be used, one of _UNUSABLE."""
    for read in _readers(settings):
        read()


def wrong_files(settings: Settings) -> list[str]:
    """Return what is wrong with each file that cannot be used."""
    found: dict[str, None] = {}  # two readers of one file say the same
    for read in _readers(settings):
        try:
            read()
        except _UNUSABLE as error:
            found[str(error)] = None
    return list(found)


def _readers(settings: Settings) -> Iterator[Callable[[], object]]:
    """Yield a function for each file: fleet, volumes and sizes, then sensors, space weather, collectors and so on."""
    yield lambda: ScreeningResource(**settings.screening.model_dump()).listed()
    yield lambda: AlertingResource(**settings.alerting.model_dump()).policy()
    if sensors := settings.fusion.sensor_file:
        yield lambda: sensor_network(Path(sensors))
    yield TaskingResource(**settings.scheduling.model_dump()).closures_listed
    if settings.weather.space_weather:
        yield lambda: read_space_weather(Path(settings.weather.space_weather))
    if settings.collect or settings.collect_path.exists():
        yield lambda: load_config(settings.collect_path)
    yield Mappings.of(settings.home).load
    yield lambda: NotifyRules.load(settings)
    yield lambda: read_commanders(settings.access.commanders)
