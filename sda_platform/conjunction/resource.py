"""What is screened and how far ahead, and what becomes an alert, as Dagster resources whose settings commits record."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field
from typing_extensions import override

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.policy_in_force import levels_by_number
from sda_platform.conjunction.sizes import ObjectSizes, object_sizes
from sda_platform.conjunction.volumes import screening_volumes
from sda_platform.formats.fleet import ProtectedObject, protected_fleet
from sda_platform.formats.listings import ListingError
from sda_platform.orbits.screening.volumes import Volume, Volumes
from sda_platform.orchestration.recorded_settings import RecordedResource
from sda_platform.setting_sections import AlertSettings, ScreeningSettings
from sda_platform.units import HOUR_NS


class RecordedScreening(ScreeningSettings):
    """What commits record of a screening beside its settings."""

    keeps_markings: bool = Field(
        default=True,
        description="Whether assessments keep the marking of their data; earlier releases do not.",
    )


class ScreeningResource(RecordedScreening, RecordedResource["ScreeningResource"]):
    """Who is screened against whom, how far ahead, and how near is near."""

    _UNRECORDED = ("objects_per_task", "at_once")

    @override
    def as_recorded(self, settings: Mapping[str, Any]) -> Self:
        return super().as_recorded({"keeps_markings": False, **settings})

    @override
    def as_unrecorded(self) -> Self:
        return self.as_recorded({})

    @override
    def listed(self) -> object:
        """Return the fleet, the volumes and the sizes."""
        volumes = sorted(screening_volumes(self.volumes).items()) if self.volumes else []
        return self.fleet_norad_ids(), volumes, *self.sizes().listed()

    @override
    def lists(self) -> str:
        files = [self.fleet_file or "the shipped fleet", self.volumes, self.satellite_catalogue]
        return " and ".join(filter(None, files))

    def sizes(self) -> ObjectSizes:
        """Return the hard-body radii that files state. Raises ListingError where one cannot be used."""
        return object_sizes(self.fleet_file, self.satellite_catalogue)

    def fleet_norad_ids(self) -> list[int]:
        """Catalogue numbers of the protected fleet."""
        return [member.norad_id for member in self.members()]

    def members(self) -> Sequence[ProtectedObject]:
        """Return the protected fleet."""
        return protected_fleet(self.fleet_file)

    def screening_volumes(self) -> Volumes:
        """Return the screening volume of each regime, or one sphere for all."""
        if self.volumes:
            return screening_volumes(self.volumes)
        return Volume.sphere(self.threshold_km, self.sigmas, self.reach_km)

    @property
    def how_near(self) -> str:
        """Describe the screening volumes, for people."""
        if self.volumes:
            return f"volumes of {self.volumes}"
        farther = f", or {self.sigmas:g} sigmas within {self.reach_km:g} km" if self.sigmas else ""
        return f"a sphere of {self.threshold_km:g} km{farther}"

    @property
    def horizon_ns(self) -> int:
        """Span of a screening, ns."""
        return round(self.horizon_h * HOUR_NS)

    @property
    def refresh_ns(self) -> int:
        """Age from which a full screening is repeated, ns."""
        return round(self.refresh_h * HOUR_NS)


class AlertingResource(AlertSettings, RecordedResource["AlertingResource"]):
    """The alert policy. Commits record the members' own levels by value, so a later fleet file changes no replay."""

    _UNRECORDED = ("fleet",)

    members: dict[str, list[float]] | None = Field(
        default=None, description="Levels of Pc [yellow, red] of members by catalogue number; null: by the fleet file."
    )

    @override
    def recorded(self) -> dict[str, Any]:
        """Every threshold, the members' own included."""
        own = self.policy().members
        return {**super().recorded(), "members": {str(norad_id): list(own[norad_id]) for norad_id in sorted(own)}}

    def policy(self) -> AlertPolicy:
        """Return the policy. Raises ListingError where the fleet file cannot be used."""
        settings = AlertSettings(**{name: getattr(self, name) for name in AlertSettings.model_fields})
        if self.members is not None:
            return AlertPolicy(settings, levels_by_number(self.members))
        own = {
            member.norad_id: (member.yellow_pc or self.yellow_pc, member.red_pc or self.red_pc)
            for member in protected_fleet(self.fleet_file)
            if member.yellow_pc or member.red_pc
        }
        for norad_id, (yellow_pc, red_pc) in own.items():
            if yellow_pc > red_pc:
                raise ListingError(
                    f"{self.fleet_file or 'the shipped fleet'}: satellite {norad_id} is yellow from Pc {yellow_pc:g}, "
                    f"above its red {red_pc:g} (a level that its line leaves out is that of all alerts): exchange them"
                )
        return AlertPolicy(settings, own)
