"""What starts the job from the catalogue to alerts: element sets in their landing zone, and the hour."""

import dagster as dg

from sda_platform.catalog.tables import EDITS_FEED, ELEMENTS_FEED, EPHEMERIDES_FEED
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.orchestration.sensors import landing_sensor
from sda_platform.spark.session import POOL_TAG


def build_sensors(interval_s: int) -> list[dg.SensorDefinition]:
    """The sensors of the landing zones of element sets with edits, and of ephemerides."""
    return [
        landing_sensor(ELEMENTS_FEED, [ELEMENTS_FEED, EDITS_FEED], CATALOG_TO_ALERTS, interval_s),
        landing_sensor(EPHEMERIDES_FEED, [EPHEMERIDES_FEED], CATALOG_TO_ALERTS, interval_s),
    ]


screening_refresh = dg.ScheduleDefinition(
    name="screening_refresh",
    job_name=CATALOG_TO_ALERTS.name,
    cron_schedule="0 * * * *",
    tags={POOL_TAG: CATALOG_TO_ALERTS.pool},
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Repeats the screening before its horizon ends. A run without work commits nothing.",
)
