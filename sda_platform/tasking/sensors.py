"""The schedule of tasking: every ten minutes, unless a run of it has not ended."""

import dagster as dg

from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.jobs import SENSOR_TASKING
from sda_platform.spark.session import POOL_TAG


def build_schedules(*, running: bool) -> list[dg.ScheduleDefinition]:
    """The schedule of the job; active if ``running``."""

    @dg.schedule(
        name="sensor_tasking_refresh",
        job_name=SENSOR_TASKING.name,
        cron_schedule="*/10 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED,
        description="Weighs what should be observed, finds pass windows, schedules the sensors.",
    )
    def sensor_tasking_refresh(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        active = unfinished_run_of(context.instance, SENSOR_TASKING)
        if active is not None:
            return dg.SkipReason(f"run {active[:8]} of the job has not ended")
        return dg.RunRequest(tags={POOL_TAG: SENSOR_TASKING.pool})

    return [sensor_tasking_refresh]
