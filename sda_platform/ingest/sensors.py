"""What triggers the hot lane: segments in the landing zones of radars, telescopes and inter-satellite links."""

from typing import Any

import dagster as dg

from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.lake.sensors import landing_sensor


def build_sensors(hot_job: Any, interval_s: int) -> list[dg.SensorDefinition]:
    """The sensor of all feeds of observations, which one run takes together."""
    return [landing_sensor("observations", [feed.name for feed in OBSERVATION_FEEDS], hot_job, "hot", interval_s)]
