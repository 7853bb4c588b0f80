"""What triggers the hot lane: segments in the landing zones of radars, telescopes and inter-satellite links."""

from typing import Any

import dagster as dg

from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.lake.resource import LandingResource
from sda_platform.lake.sensors import request_landing


def landing_sensor(feed: str, job: Any, lane: str, interval_s: int) -> dg.SensorDefinition:
    """The sensor of one landing zone; running from the start, because a platform that needs toggling does nothing."""

    @dg.sensor(
        name=f"{feed}_landing",
        job=job,
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Starts a run of the {lane} lane when sealed segments wait in landing/{feed}.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing: LandingResource) -> dg.SensorResult | dg.SkipReason:
        return request_landing(context, landing.zone(feed), job.name, lane)

    return sensor


def build_sensors(hot_job: Any, interval_s: int) -> list[dg.SensorDefinition]:
    """One sensor per feed of observations."""
    return [landing_sensor(feed.name, hot_job, "hot", interval_s) for feed in OBSERVATION_FEEDS]
