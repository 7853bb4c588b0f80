"""The maintenance pool: compacts small files, removes data files and log files that no version needs any more.

None of this changes a row or is a commit of the platform: it may come between any two steps of one. Files are kept as
long as `lake.retention` requires, so that replays and running readers find their versions.
"""

import time
from collections.abc import Callable, Sequence

import dagster as dg

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.lake.table import Table
from sda_platform.landing.consumed_marks import mark_pruned
from sda_platform.orchestration.log_cleanup import clean_log
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG

# Delta refuses a compaction of files that an overwrite has replaced meanwhile; the next attempt starts from those.
_ATTEMPTS = dg.RetryPolicy(max_retries=3, delay=5.0)
_VACUUM, _VACUUM_ENDED = "VACUUM", "VACUUM END"
_MS_PER_HOUR = 3_600_000


def maintenance_job(tables: Sequence[Table]) -> dg.JobDefinition:
    """The job that maintains ``tables``, one after the other."""

    @dg.op(
        pool=Pool.MAINTENANCE,
        retry_policy=_ATTEMPTS,
        description="OPTIMIZE and VACUUM every changed table; clean its log.",
    )
    def compact_and_vacuum(context: dg.OpExecutionContext, lake: LakeResource, landing: LandingResource) -> None:
        store = lake.open()
        maintain_all(store, tables, now_ms=time.time_ns() // 1_000_000, report=context.log.info)
        for table in tables:
            for gone in mark_pruned(landing.zones(table.zones), store.log(table)):
                context.log.warning(gone)

    @dg.job(
        name="maintenance",
        tags={POOL_TAG: Pool.MAINTENANCE},
        executor_def=dg.in_process_executor,
        description="Compacts tables and removes obsolete files and log entries; no row changes.",
    )
    def maintenance() -> None:
        compact_and_vacuum()

    return maintenance


def maintain_all(
    lake: Lake,
    tables: Sequence[Table],
    *,
    now_ms: int,
    retention: Retention = RETENTION,
    report: Callable[[str], object] = lambda _line: None,
) -> None:
    """Maintain each of ``tables`` that has something to maintain at ``now_ms`` (Unix time), and ``report`` it."""
    for table in tables:
        log = lake.log(table)
        if is_due(log, now_ms=now_ms, retention=retention):
            report(f"{table.name}: {maintain(lake, table, retention)}")
        others = [lake.log(other) for other in tables if other is not table]
        if removed := clean_log(log, others, lake.verdicts.read(log), now_ms=now_ms, retention=retention):
            report(f"{table.name}: {removed} old versions removed from its log")


def is_due(log: TableLog, *, now_ms: int, retention: Retention) -> bool:
    """Whether maintenance can change anything: the table changed since the last VACUUM, or files expired since then.

    On most file systems each VACUUM adds two versions to the log, so a table that does not change is left alone.
    """
    vacuumed_ms = None
    for operation, timestamp_ms in log.operations():
        if operation.startswith(_VACUUM):
            if operation == _VACUUM_ENDED and vacuumed_ms is None:
                vacuumed_ms = timestamp_ms
            continue
        expired_ms = timestamp_ms + retention.data_files_h * _MS_PER_HOUR
        return vacuumed_ms is None or vacuumed_ms < expired_ms <= now_ms
    return False


def maintain(lake: Lake, table: Table, retention: Retention = RETENTION) -> dict[str, int]:
    """Compact one table and remove its obsolete data files; returns how many files were added and replaced.

    The compaction is on disk before anything is removed that it made obsolete.
    """
    uri = lake.log(table).uri
    metrics = lake.session.sql(f"OPTIMIZE delta.`{uri}`").collect()[0]["metrics"]
    lake.head(table)
    lake.session.sql(f"VACUUM delta.`{uri}` RETAIN {retention.data_files_h} HOURS").collect()
    lake.head(table)
    return {"files_added": metrics["numFilesAdded"], "files_replaced": metrics["numFilesRemoved"]}


def nightly(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """The maintenance every night, when the disk is least busy."""
    return dg.ScheduleDefinition(
        name="nightly_maintenance",
        job=job,
        cron_schedule="0 3 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
