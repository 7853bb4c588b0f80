"""Settings of the lists that people write: the ground sensors, their closures, and the protected fleet."""

from pathlib import Path
from typing import Final

from pydantic import Field

from sda_platform.setting_fields import SettingsSection, setting

LISTS: Final = ("fleet", "sensors", "closures")
"""Names of the lists, each a setting."""
KEPT_LISTS: Final = "lists"
"""Directory of the home that keeps each list that a commit used, below the hash that the commit records."""


class HomeLists(SettingsSection):
    """Lists that people write. One that no variable names is ``<home>/<name>.csv``, read anew by each run.

    ``lists_kept``: a directory with copies of the lists that a commit used, which count alone.
    """

    lists_in: str = Field("", description="Home with the lists that no variable names; empty: the shipped lists.")
    lists_kept: str = Field("", description="Copies of what a commit used; empty: the lists as they are.")

    def place_of(self, name: str) -> str:
        """Return the file of the list ``name``, such as `fleet`; empty: the shipped one is used, if there is one."""
        if not self.lists_kept and (named := str(getattr(self, name))):
            return named
        own = Path(self.lists_kept or self.lists_in, f"{name}.csv")
        return str(own) if own.is_absolute() and own.exists() else ""


class SensorFile(HomeLists):
    """The list of ground sensors."""

    sensors: str = setting(
        "",
        "CSV of the ground sensors; empty: `<home>/sensors.csv`, else the shipped list.",
        "SENSORS",
        is_file=True,
    )

    @property
    def sensor_file(self) -> str:
        """The list of ground sensors in use; empty: the shipped one."""
        return self.place_of("sensors")

    def why_not_used(self, source_id: str) -> str:
        """Describe, for people, a sensor that the list lacks, and what to do."""
        place = self.sensor_file or f"{Path(self.lists_in, 'sensors.csv')}, which begins as a copy of the shipped list"
        return f"{source_id} is not in the list of sensors, so that no fit uses what it observes: add it to {place}"


class ClosureFile(HomeLists):
    """The list of times at which sensors observe nothing."""

    closures: str = setting(
        "",
        "CSV of when sensors observe nothing, such as in bad weather (source_id,start,end,reason); empty: "
        "`<home>/closures.csv`, if there is one.",
        "CLOSURES",
        is_file=True,
    )

    @property
    def closure_file(self) -> str:
        """The list of closures in use; empty: no sensor is closed."""
        return self.place_of("closures")


class FleetFile(HomeLists):
    """The list of protected objects."""

    fleet: str = setting(
        "",
        "CSV of the protected fleet (norad_id,name,operator and optional columns); empty: `<home>/fleet.csv`, else "
        "the shipped list.",
        "FLEET",
        is_file=True,
    )

    @property
    def fleet_file(self) -> str:
        """The list of the fleet in use; empty: the shipped one."""
        return self.place_of("fleet")
