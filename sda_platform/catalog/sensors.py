"""What triggers the catalog lane: element sets in their landing zone, and the hour."""

from typing import Any

import dagster as dg

from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.lake.sensors import landing_sensor


def build_sensors(catalog_job: Any, interval_s: int) -> list[dg.SensorDefinition]:
    """The sensor of the element sets' landing zone."""
    return [landing_sensor(ELEMENTS_FEED, [ELEMENTS_FEED], catalog_job, "catalog", interval_s)]


def build_schedules(catalog_job: Any) -> list[dg.ScheduleDefinition]:
    """Each hour, look whether the screening horizon has moved far enough for a full screening."""
    return [
        dg.ScheduleDefinition(
            name="screening_refresh",
            job=catalog_job,
            cron_schedule="0 * * * *",
            tags={"sda/lane": "catalog"},
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description="Keeps the screened horizon ahead of mission time; a run without work commits nothing.",
        )
    ]
