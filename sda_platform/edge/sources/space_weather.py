"""Requests daily space weather and keeps it as a file of the home, which propagation reads; no table holds it."""

from pathlib import Path

from typing_extensions import override
from upath import UPath

from sda_platform.edge.sources.documents import UnexpectedContent
from sda_platform.edge.sources.pull import PullSource
from sda_platform.edge.sources.source import Services
from sda_platform.formats.space_weather import RECEIVED_SPACE_WEATHER, SpaceWeatherError, read_days
from sda_platform.lake import durable


class SpaceWeatherSource(PullSource):
    """Requests ``url`` every ``interval_s``; a file that can be read replaces `<home>/space-weather.csv`."""

    kind = "space-weather"

    def __init__(self, name: str, services: Services, *, url: str, interval_s: float) -> None:
        super().__init__(name, services, url=url, zone="", segment_format="", interval_s=interval_s)

    @override
    async def _deliver(self, document: Path) -> int:
        try:
            days = await self._in_thread(read_days, document)
        except SpaceWeatherError as error:
            raise UnexpectedContent(f"{str(error).replace(str(document), 'the answer')}; the file stays") from None
        path = UPath(self.services.state_directory.parent / RECEIVED_SPACE_WEATHER)
        await self._in_thread(durable.write, path, document.read_bytes())
        return len(days)
