"""When tasking runs: every ten minutes, and soon after a scheduled observation has failed."""

import hashlib

import dagster as dg

from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.jobs import SENSOR_TASKING
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import POOL_TAG
from sda_platform.tasking.planning import BOOKING_COLUMNS
from sda_platform.tasking.stored_outcomes import booked_still, failed_tasks
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform.tasking.task_outcomes import Task

LOOKS_EVERY_S = 20


def build_schedules(*, running: bool) -> list[dg.ScheduleDefinition]:
    """Return the schedule of the job; active if ``running``."""

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


def build_sensors(*, running: bool) -> list[dg.SensorDefinition]:
    """Return the sensor of failed observations; active if ``running``."""

    @dg.sensor(
        name="failed_observations",
        job_name=SENSOR_TASKING.name,
        minimum_interval_seconds=LOOKS_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description="Starts a run of sensor_tasking when an observation failed that is still wanted: a commanded one, "
        "or one for a red conjunction.",
    )
    def failed_observations(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.RunRequest | dg.SkipReason:
        return request_another(context, lake.open())

    return [failed_observations]


def request_another(context: dg.SensorEvaluationContext, store: Lake) -> dg.RunRequest | dg.SkipReason:
    """Request a run for the failed observations that the schedule still has, unless a run has not ended."""
    lost = lost_tasks(store)
    if not lost:
        return dg.SkipReason("no observation failed that is still wanted, of commanded ones and class 0")
    shown = ", ".join(f"{task.norad_id} by {task.source_id}" for task in lost[:3])
    active = unfinished_run_of(context.instance, SENSOR_TASKING)
    if active is not None:
        return dg.SkipReason(f"{len(lost)} observations failed ({shown}); run {active[:8]} will plan others")
    # A run that fails is not requested again by its key: the refresh of ten minutes plans then.
    batch = hashlib.sha256("\n".join(sorted(task.task_id for task in lost)).encode()).hexdigest()[:16]
    return dg.RunRequest(run_key=f"failed-{batch}", tags={POOL_TAG: SENSOR_TASKING.pool})


def lost_tasks(store: Lake) -> list[Task]:
    """Return the failed tasks that the schedule still has, by the tables as far as they are verified."""
    if store.head(PASS_SCHEDULE).version < 0:
        return []  # nothing is scheduled here: one look instead of eight
    tables = (PASS_SCHEDULE, *PASS_SCHEDULE.inputs)
    heads = {table.name: store.readable(table).head for table in tables}
    pinned = {name: TableSnapshot(name, head.version, head.sequence) for name, head in heads.items()}
    stored = StoredRows(store, pinned)
    failed = failed_tasks(stored, store.clock.now_ns())
    return booked_still(failed, stored.current(PASS_SCHEDULE, BOOKING_COLUMNS).to_pylist()) if failed else []
