"""What is screened and how far ahead, as a Dagster resource whose settings commits record."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field
from typing_extensions import override

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.fleet import protected_fleet
from sda_platform.conjunction.listings import ListingError
from sda_platform.conjunction.volumes import screening_volumes
from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.settings_of_record import RecordedResource
from sda_platform.orbits.screening.volumes import Volume, Volumes

_LISTS = "lists_sha256"


class ScreeningResource(RecordedResource["ScreeningResource"]):
    """Who is screened against whom, how far ahead, and how near is near."""

    _UNRECORDED = ("objects_per_task", "at_once")

    fleet: str = Field("", description="CSV of the protected fleet; empty: the shipped one.")
    scope: Literal["fleet", "all"] = Field("fleet", description="fleet: the fleet against all; all: all against all.")
    fleet_internal: bool = Field(True, description="Whether approaches between two of the fleet are candidates.")
    volumes: str = Field("", description="Screening volumes: a CSV, or `standard`; empty: a sphere of the threshold.")
    objects_per_task: int = Field(30_000, ge=1, description="Most objects that one task screens against all.")
    at_once: int = Field(2, ge=1, description="How many tasks of a screening run at once: the engine's cores.")
    horizon_h: float = Field(168.0, description="Span of a screening from its as_of, hours.")
    refresh_h: float = Field(6.0, description="Age from which a full screening is repeated, hours.")
    threshold_km: float = Field(5.0, description="Miss distance below which an approach is a candidate, km.")

    @override
    def recorded(self) -> dict[str, Any]:
        """See `RecordedResource.recorded`; of the lists, what they say is recorded, too, by its hash."""
        return {**super().recorded(), _LISTS: self._lists_sha256()}

    @override
    def as_recorded(self, settings: Mapping[str, Any]) -> Self:
        """See `RecordedResource.as_recorded`: the lists must still say what they said."""
        lists = settings[_LISTS]
        then = super().as_recorded({name: value for name, value in settings.items() if name != _LISTS})
        try:
            is_same = then._lists_sha256() == lists
        except ListingError as error:
            raise NotReplayable(str(error)) from error
        if not is_same:
            named = " and ".join(filter(None, [then.fleet or "the shipped fleet", then.volumes]))
            raise NotReplayable(
                f"{named} lists other entries than when this was screened: put back what was there then"
            )
        return then

    def _lists_sha256(self) -> str:
        """Of the fleet and the volumes."""
        volumes = sorted(screening_volumes(self.volumes).items()) if self.volumes else []
        return hashlib.sha256(repr((self.fleet_norad_ids(), volumes)).encode()).hexdigest()

    def fleet_norad_ids(self) -> list[int]:
        """Catalogue numbers of the protected fleet."""
        return [member.norad_id for member in protected_fleet(Path(self.fleet) if self.fleet else None)]

    def screening_volumes(self) -> Volumes:
        """What counts as an approach: the volume of each regime, or one sphere for all."""
        return screening_volumes(self.volumes) if self.volumes else Volume.sphere(self.threshold_km)

    @property
    def how_near(self) -> str:
        """What counts as an approach, in words."""
        return f"volumes of {self.volumes}" if self.volumes else f"a sphere of {self.threshold_km:g} km"

    @property
    def horizon_ns(self) -> int:
        """Span of a screening, ns."""
        return round(self.horizon_h * 3600 * NANOSECONDS_PER_SECOND)

    @property
    def refresh_ns(self) -> int:
        """Age from which a full screening is repeated, ns."""
        return round(self.refresh_h * 3600 * NANOSECONDS_PER_SECOND)
