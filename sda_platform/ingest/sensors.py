"""What triggers the hot lane: segments in the landing zones of radars, telescopes and inter-satellite links."""

from typing import Any

import dagster as dg

from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.lake.sensors import landing_sensor


def build_sensors(hot_job: Any, interval_s: int) -> list[dg.SensorDefinition]:
    """One sensor per feed of observations."""
    return [landing_sensor(feed.name, hot_job, "hot", interval_s) for feed in OBSERVATION_FEEDS]
