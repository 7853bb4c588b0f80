"""What starts the job from the catalogue to alerts each hour."""

import dagster as dg

from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.spark.session import POOL_TAG

screening_refresh = dg.ScheduleDefinition(
    name="screening_refresh",
    job_name=CATALOG_TO_ALERTS.name,
    cron_schedule="0 * * * *",
    tags={POOL_TAG: CATALOG_TO_ALERTS.pool},
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Repeats the screening before its horizon ends. A run without work commits nothing.",
)
