"""What is tasked and how, as a Dagster resource whose settings commits record."""

import math
from collections import defaultdict
from collections.abc import Mapping

from pydantic import Field
from typing_extensions import override

from sda_platform.formats.closures import Closure, listed_closures
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.listings import ListingError
from sda_platform.orbits.sensing.sensors import Sensor, SensorNetwork, listed_sensors
from sda_platform.orchestration.recorded_settings import RecordedResource
from sda_platform.setting_sections import SchedulingSettings
from sda_platform.tasking.antennas import Antenna
from sda_platform.tasking.scheduling import Rules
from sda_platform.units import HOUR_NS, SECOND_NS


class TaskingResource(SchedulingSettings, RecordedResource["TaskingResource"]):
    """Sensors, horizon, and how long an antenna needs for an observation and between two."""

    _UNRECORDED = ("at_once",)

    least_window_s: float = Field(default=20.0, ge=0, description="Shorter windows are left out, seconds.")
    observation_s: float = Field(
        default=120.0, gt=0, description="Antenna time of an observation that is not for a conjunction, seconds."
    )
    wanted_sigma_m: float = Field(
        default=100.0,
        gt=0,
        description="One-sigma of a miss that the observation of a conjunction should bring; its time follows, metres.",
    )
    radar_setup_s: float = Field(default=10.0, ge=0, description="Set-up of a radar between two observations, seconds.")
    radar_slew_deg_s: float = Field(default=5.0, gt=0, description="Turning rate of a radar, degrees per second.")
    optical_setup_s: float = Field(default=20.0, ge=0, description="The same of a telescope, seconds.")
    optical_slew_deg_s: float = Field(default=3.0, gt=0, description="Turning rate of a telescope, degrees per second.")
    aging_h: float = Field(default=3.0, gt=0, description="Waiting that makes a request a class more urgent, hours.")
    freeze_s: float = Field(default=600.0, ge=0, description="What begins within so long is not moved, seconds.")
    weights: dict[str, float] = Field(default={}, description="Share of antenna time by owner; 1 where none is given.")

    @override
    def listed(self) -> object:
        """Read the configured sensors, owners and closures, if there are any."""
        read = (self.network() if self.sensor_file else None, sorted(self.owners().items()))
        return (*read, closures) if (closures := self.closures_listed()) else read

    @override
    def lists(self) -> str:
        files = [self.sensor_file, self.fleet_file or "the shipped fleet", self.closure_file]
        return " and ".join(filter(None, files))

    def network(self) -> SensorNetwork:
        """Return the ground sensors. Raises ListingError where the file is not a list of sensors."""
        return listed_sensors(self.sensor_file)

    def owners(self) -> Mapping[int, str]:
        """Operators of the protected objects, by catalogue number."""
        members = protected_fleet(self.fleet_file)
        return {member.norad_id: member.operator or "fleet" for member in members}

    def closures_listed(self) -> list[Closure]:
        """Return when sensors observe nothing, ordered.

        Raises ListingError where the file is not a list of that, or names a sensor that is not listed.
        """
        closures = listed_closures(self.closure_file)
        if closures and (unknown := sorted({each.source_id for each in closures} - set(self.network()))):
            raise ListingError(f"{self.closure_file}: {unknown[0]!r} is not in the list of sensors")
        return closures

    def antennas(self) -> dict[str, Antenna]:
        """An antenna for each sensor, by its id. Raises ListingError."""
        closed: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in self.closures_listed():
            closed[each.source_id].append((each.start_ns, each.end_ns))
        return {name: self._antenna(sensor, tuple(closed[name])) for name, sensor in self.network().items()}

    def rules(self) -> Rules:
        """Return the rules by which requests are weighed."""
        return Rules(
            aging_ns=round(self.aging_h * HOUR_NS),
            weights=self.weights,
            freeze_ns=round(self.freeze_s * SECOND_NS),
        )

    def _antenna(self, sensor: Sensor, closed_ns: tuple[tuple[int, int], ...]) -> Antenna:
        if sensor.beams > 1:  # a phased array: its beams turn at once
            return Antenna(sensor.source_id, 0.0, math.inf, sensor.beams, closed_ns)
        if sensor.kind == "optical":
            return Antenna(sensor.source_id, self.optical_setup_s, self.optical_slew_deg_s, 1, closed_ns)
        return Antenna(sensor.source_id, self.radar_setup_s, self.radar_slew_deg_s, 1, closed_ns)
