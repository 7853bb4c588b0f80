"""The maintenance lane: small files into large ones, and what no version needs any more off the disk.

Neither changes a row, and neither is a commit of the platform: they may come between any two steps of one. A file is
removed a week after a version last needed it, so that replays and readers at work find what they pinned; Delta itself
refuses less.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from sda_platform.lake.lake import Lake
from sda_platform.lake.resource import LakeResource
from sda_platform.lake.spark.session import LANE_TAG
from sda_platform.lake.table import Table

_LANE = "maintenance"
# Delta refuses a compaction of files that an overwrite has replaced meanwhile; the next attempt starts from those.
_ATTEMPTS = dg.RetryPolicy(max_retries=3, delay=5.0)


class MaintenanceConfig(dg.Config):
    """What one run of the maintenance does."""

    retention_h: int = Field(7 * 24, description="Age from which files that no version needs are removed, hours.")


def maintenance_job(tables: Sequence[Table]) -> dg.JobDefinition:
    """The job that compacts ``tables`` and removes their obsolete files, one after the other."""

    @dg.op(pool=_LANE, retry_policy=_ATTEMPTS, description="OPTIMIZE and VACUUM every table.")
    def compact_and_vacuum(context: dg.OpExecutionContext, config: MaintenanceConfig, lake: LakeResource) -> None:
        store = lake.open()
        for table in tables:
            if store.log(table).version() >= 0:
                context.log.info(f"{table.name}: {maintain(store, table, config.retention_h)}")

    @dg.job(
        name="maintenance",
        tags={LANE_TAG: _LANE},
        executor_def=dg.in_process_executor,
        description="Small files into large ones, obsolete files off the disk; no row changes.",
    )
    def maintenance() -> None:
        compact_and_vacuum()

    return maintenance


def maintain(lake: Lake, table: Table, retention_h: int) -> dict[str, Any]:
    """Compact one table and remove its obsolete files; tells how many files went.

    The compaction is on disk before anything is removed that it made obsolete.
    """
    uri = lake.log(table).uri
    metrics = lake.session.sql(f"OPTIMIZE delta.`{uri}`").collect()[0]["metrics"]
    lake.head(table)
    lake.session.sql(f"VACUUM delta.`{uri}` RETAIN {retention_h} HOURS").collect()
    lake.head(table)
    return {"files_added": metrics["numFilesAdded"], "files_replaced": metrics["numFilesRemoved"]}


def nightly(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """The maintenance every night, when nobody waits for the disk."""
    return dg.ScheduleDefinition(
        name="nightly_maintenance",
        job=job,
        cron_schedule="0 3 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
