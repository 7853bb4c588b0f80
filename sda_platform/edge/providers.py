"""What one downloads of public providers, as sources: element sets, messages of the fleet, facts, space weather.

Each request has the interval that its provider asks for, or a longer one. Space-Track: element sets at most once an
hour, messages three times a day (space-track.org, "API use guidelines"). CelesTrak: a file only after it has changed,
two hours at least (celestrak.org, "Usage policy"). Facts and space weather are CelesTrak's for both, as it gives radar
cross sections and F10.7.
"""

from typing import Final, Literal

from pydantic import Field

from sda_platform.edge.file_options import PullConfig
from sda_platform.edge.options import MarkedOptions, Options
from sda_platform.edge.sources.pull import LEAST_INTERVAL_S
from sda_platform.edge.sources.source import Services, Source
from sda_platform.edge.sources.space_weather import SpaceWeatherSource
from sda_platform.formats.markings import MARKS
from sda_platform.units import DAY_S

SPACE_TRACK: Final = "space-track"
CELESTRAK: Final = "celestrak"
_THRICE_A_DAY_S: Final = DAY_S / 3
_SPACE_TRACK_RANK, _CELESTRAK_RANK = 20, 10
_QUERY: Final = "/basicspacedata/query/class"
# Its group of active satellites, and those of debris; no group has all objects.
_GROUPS: Final = (
    "active", "analyst", "fengyun-1c-debris", "iridium-33-debris", "cosmos-2251-debris", "cosmos-1408-debris",
)  # fmt: skip


class SpaceWeatherConfig(Options):
    """Daily space weather, kept as `<home>/space-weather.csv`."""

    kind: Literal["space-weather"]
    url: str = Field(description="A CSV with CelesTrak's columns.")
    interval_s: float = Field(DAY_S, ge=LEAST_INTERVAL_S, description="Time between two requests, seconds.")

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        return SpaceWeatherSource(name, services, url=self.url, interval_s=self.interval_s)


class ProviderConfig(MarkedOptions):
    """What `sda connect` fetches, as several sources: element sets, messages of the fleet (Space-Track, user and
    password in SPACETRACK_USER and SPACETRACK_PASSWORD), facts of objects, space weather."""

    kind: Literal["space-track", "celestrak"]
    space_track: str = Field("https://www.space-track.org", description="Address of Space-Track, or of a mirror.")
    celestrak: str = Field("https://celestrak.org", description="Address of CelesTrak, or of a mirror.")

    def sources(self) -> dict[str, PullConfig | SpaceWeatherConfig]:
        """Return the sources by name; those that both providers need have one name."""
        of_provider = self._of_space_track() if self.kind == SPACE_TRACK else self._of_celestrak()
        marks = self.model_dump(include={*MARKS})
        return {
            name: each.model_copy(update=marks) if isinstance(each, PullConfig) else each
            for name, each in {**of_provider, **self._facts()}.items()
        }

    def _of_space_track(self) -> dict[str, PullConfig]:
        query = f"{self.space_track.rstrip('/')}{_QUERY}"
        found = {
            f"{SPACE_TRACK}-elements": PullConfig(
                kind="pull",
                url=f"{query}/gp/decay_date/null-val/epoch/%3Enow-10/orderby/norad_cat_id/format/csv",
                format="omm-csv",
                interval_s=_THRICE_A_DAY_S,
                login="space-track",
                rank=_SPACE_TRACK_RANK,
            )
        }
        for number in (1, 2):
            found[f"{SPACE_TRACK}-messages-{number}"] = PullConfig(
                kind="pull",
                url=f"{query}/cdm_public/SAT_{number}_ID/{{fleet}}/CREATED/%3Enow-{{days}}/orderby/CREATED/format/json",
                zone="messages",
                format="cdm-json",
                interval_s=_THRICE_A_DAY_S,
                login="space-track",
            )
        return found

    def _of_celestrak(self) -> dict[str, PullConfig]:
        return {
            f"{CELESTRAK}-{group}": PullConfig(
                kind="pull",
                url=f"{self.celestrak.rstrip('/')}/NORAD/elements/gp.php?GROUP={group}&FORMAT=csv",
                format="omm-csv",
                interval_s=_THRICE_A_DAY_S,
                rank=_CELESTRAK_RANK,
            )
            for group in _GROUPS
        }

    def _facts(self) -> dict[str, PullConfig | SpaceWeatherConfig]:
        """The whole catalogue once a week, new launches and space weather once a day."""
        root = self.celestrak.rstrip("/")
        return {
            f"{CELESTRAK}-satellites": PullConfig(
                kind="pull", url=f"{root}/pub/satcat.csv", zone="satellites", format="satcat-csv", interval_s=7 * DAY_S
            ),
            f"{CELESTRAK}-launches": PullConfig(
                kind="pull",
                url=f"{root}/satcat/records.php?GROUP=last-30-days&FORMAT=csv",
                zone="satellites",
                format="satcat-csv",
                interval_s=DAY_S,
            ),
            f"{CELESTRAK}-space-weather": SpaceWeatherConfig(
                kind="space-weather", url=f"{root}/SpaceData/SW-Last5Years.csv"
            ),
        }
