"""Dagster resource of the fusion: windows, lateness and sensors; commits record its settings."""

from typing_extensions import override

from sda_platform.fusion.watermarks import Lateness
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.orbits.sensing.sensors import SensorNetwork, listed_sensors
from sda_platform.orchestration.recorded_settings import RecordedResource
from sda_platform.setting_sections import FusionSettings
from sda_platform.units import SECOND_NS


class FusionResource(FusionSettings, RecordedResource["FusionResource"]):
    """Window length and lateness, seconds of event time."""

    @override
    def listed(self) -> object:
        """Read the ground sensors of the configured list."""
        return self.network() if self.sensor_file else None

    @override
    def lists(self) -> str:
        return self.sensor_file

    def network(self) -> SensorNetwork:
        """Return the ground sensors. Raises ListingError where the file is not a list of sensors."""
        return listed_sensors(self.sensor_file)

    @property
    def window_ns(self) -> int:
        """Window length, ns."""
        return self.window_s * SECOND_NS

    @property
    def lateness(self) -> Lateness:
        """Return the lateness bounds of the watermarks."""
        return Lateness(
            {feed.name: feed.max_lateness_ns for feed in OBSERVATION_FEEDS if feed.name in self.sources},
            round(self.allowed_lateness_s * SECOND_NS),
            round(self.idle_after_s * SECOND_NS),
        )
