"""The maintenance pool: compacts small files, removes whatever `lake.retention` does not keep any longer.

None of this changes a row or is a commit of the platform: it may come between any two steps of one. Where a lease holds
a version, its files, and the segments of its table, are kept longer. Each step can be killed and repeated.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from sda_platform.history.alert_states import AlertStates
from sda_platform.history.compaction import StoppedForAlerts, compact
from sda_platform.history.dagster_history import purge_runs
from sda_platform.history.expiry import expire_files
from sda_platform.history.lifecycle import POLICY, LifecyclePolicy, chosen_tables, select, small_files, wait_for_alerts
from sda_platform.history.log_cleanup import clean_log
from sda_platform.history.process_logs import bound_logs
from sda_platform.history.tags import Tags
from sda_platform.lake.lake import Lake
from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.landing.consumed_marks import mark_pruned
from sda_platform.landing.expiry import expire_segments
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG
from sda_platform.units import DAY_MS, DAY_S

# Delta refuses a compaction of files that an overwrite has replaced meanwhile; the next attempt starts from those.
_ATTEMPTS = dg.RetryPolicy(max_retries=3, delay=5.0)
DRILL_DAY = 1
"""Day of the month on which every copy of every tag is read."""
_UNFINISHED = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
Report = Callable[[str], object]
ZonesOf = Callable[[Table], Sequence[LandingZone]]


class MaintenanceConfig(dg.Config):
    """What a person may choose for a run by hand."""

    tables: list[str] = Field(
        default=[], description="Only these tables, at any hour. Empty: all, at the hours of the policy."
    )


def maintenance_job(tables: Sequence[Table], retention: Retention = RETENTION) -> dg.JobDefinition:
    """Return the job that maintains ``tables``, one after the other, and obeys ``retention``."""

    @dg.op(
        pool=Pool.MAINTENANCE,
        retry_policy=_ATTEMPTS,
        description="Compact tables with many small files; remove what has expired: data files, log files, consumed "
        "segments, leases, tags, old runs and process logs.",
    )
    def compact_and_expire(
        context: dg.OpExecutionContext, config: MaintenanceConfig, lake: LakeResource, landing: LandingResource
    ) -> None:
        store, now_ms = lake.open(), time.time_ns() // 1_000_000
        for table in tables:
            for gone in mark_pruned(landing.zones(table.zones), store.log(table)):
                context.log.warning(gone)
        purged = purge_runs(context.instance, now_ms=now_ms, retention=retention)
        context.log.info(f"{purged} old runs removed from Dagster's history")
        begun = bound_logs(Path(lake.home) / "logs", retention.process_log_bytes)
        context.log.info(f"{begun} logs of processes begun anew")
        done = maintain_all(
            store,
            chosen_tables(tables, config.tables),
            now_ms=now_ms,
            others=tables,
            retention=retention,
            is_manual=bool(config.tables),
            alerts_wait=lambda: alerts_wait(context.instance, context.run_id),
            zones_of=lambda table: landing.zones(table.zones),
            report=context.log.info,
        )
        context.add_output_metadata(done)

    @dg.job(
        name="maintenance",
        tags={POOL_TAG: Pool.MAINTENANCE},
        executor_def=dg.in_process_executor,
        description="Compacts tables and removes obsolete files and log entries; no row changes.",
    )
    def maintenance() -> None:
        compact_and_expire()

    return maintenance


def alerts_wait(instance: dg.DagsterInstance, own_run_id: str = "") -> bool:
    """Return whether another run that leads to alerts waits for its turn, or is under way."""
    unfinished = dg.RunsFilter(statuses=_UNFINISHED, tags={POOL_TAG: Pool.ALERTS})
    return bool({*instance.get_run_ids(unfinished, limit=2)} - {own_run_id})


def maintain_all(
    lake: Lake,
    tables: Sequence[Table],
    *,
    now_ms: int,
    others: Sequence[Table] | None = None,
    retention: Retention = RETENTION,
    policy: LifecyclePolicy = POLICY,
    is_manual: bool = False,
    alerts_wait: Callable[[], bool] | None = None,
    zones_of: ZonesOf = lambda _table: (),
    report: Report = lambda _line: None,
) -> dict[str, Any]:
    """Do what is due for ``tables`` at ``now_ms`` (Unix time), and ``report`` it; returns figures for the UI.

    ``others`` are all tables of the lake, by default the same; ``zones_of`` returns the landing zones of a table.
    Compaction stops while ``alerts_wait`` returns True. A manual run ignores the hours, and keeps to the budget. Raises
    InvariantError where a lease is damaged, and, after all else, where a tag is. The copies of tags are read on one day
    of the month.
    """
    figures = dict.fromkeys(("compacted_tables", "compacted_files", "compacted_bytes", "expired_files"), 0)
    figures |= dict.fromkeys(("deleted_files", "freed_bytes", "removed_versions", "removed_segments"), 0)
    figures |= dict.fromkeys(("removed_records", "postponed_tables", "stops_for_alerts"), 0)
    if policy.may_compact(now_ms) or is_manual:
        chosen = select((small_files(lake, table, policy) for table in tables), policy)
        for number, each in enumerate(chosen):
            replaced, stops = _compact_beside_alerts(lake, each.table, alerts_wait, policy)
            figures["stops_for_alerts"] += stops
            if replaced is None:
                figures["postponed_tables"] = len(chosen) - number
                report("alerts wait: the rest is compacted by the next run")
                break
            figures["compacted_tables"] += 1
            figures["compacted_files"] += replaced
            figures["compacted_bytes"] += each.size_bytes
            report(f"{each.table.name}: {replaced} files compacted ({each.size_bytes / 1e6:,.0f} MB)")
    if policy.may_expire(now_ms) or is_manual:
        states, by_name = AlertStates(lake.uri), {table.name: table for table in others or tables}
        batches = states.keep(lake, by_name, now_ms=now_ms, retention=retention)
        report(f"what {batches} batches of alerts had read is kept")
        figures["removed_records"] += states.expire(now_ms=now_ms, retention=retention)
        for name, count in _expire(lake, tables, others or tables, zones_of, now_ms, retention, policy, report):
            figures[name] += count
        leases, tags = VersionLeases(lake.uri), Tags(lake.uri)
        expired_tags = 0 if retention.is_held else tags.sweep(now_ms=now_ms)
        report(f"{leases.sweep()} ended leases and {expired_tags} expired tags removed")
        if datetime.fromtimestamp(now_ms / 1000, UTC).day == DRILL_DAY:
            report(f"{tags.verify_all()} tags read in full, as a restore would")
    return figures


def _compact_beside_alerts(
    lake: Lake, table: Table, alerts_wait: Callable[[], bool] | None, policy: LifecyclePolicy
) -> tuple[int | None, int]:
    """Return how many files were replaced, None where alerts waited for too long; how often alerts stopped the
    compaction.
    """
    stops = 0
    while alerts_wait is not None and stops < policy.stops_for_alerts:
        if not wait_for_alerts(alerts_wait, policy):
            return None, stops
        try:
            return compact(lake, table, alerts_wait), stops
        except StoppedForAlerts:
            stops += 1
    return compact(lake, table), stops


def _expire(
    lake: Lake,
    tables: Sequence[Table],
    others: Sequence[Table],
    zones_of: ZonesOf,
    now_ms: int,
    retention: Retention,
    policy: LifecyclePolicy,
    report: Report,
) -> Iterator[tuple[str, int]]:
    leases = VersionLeases(lake.uri)
    for table in tables:
        log, held = lake.log(table), partial(leases.versions_of, table.name)
        expired = expire_files(log, held, now_ms=now_ms, retention=retention, grace_h=policy.deletion_grace_h)
        if expired:
            mb = expired.freed_bytes / 1e6
            report(
                f"{table.name}: {len(expired.listed)} files have expired; {len(expired.deleted)} of earlier days "
                f"deleted ({mb:,.0f} MB)"
            )
        yield "expired_files", len(expired.listed)
        yield "deleted_files", len(expired.deleted)
        yield "freed_bytes", expired.freed_bytes
        consumers = [lake.log(other) for other in others if other is not table]
        verdict = lake.verdicts.read(log)
        removed = clean_log(log, consumers, verdict, now_ms=now_ms, retention=retention, held=held())
        if removed:
            report(f"{table.name}: {removed} old versions removed from its log")
        yield "removed_versions", removed
        yield "removed_records", log.kept.expire(now_ms - retention.record_days * DAY_MS)
        if held() or verdict.red:
            continue  # a reader, or a repair, may need the segments
        before_s = now_ms / 1000 - retention.evidence_days * DAY_S
        old = expire_segments(zones_of(table), log, before_s=before_s)
        if old.segments:
            report(f"{table.name}: {old.segments} old segments removed ({old.freed_bytes / 1e6:,.0f} MB)")
        yield "removed_segments", old.segments
        yield "freed_bytes", old.freed_bytes


def nightly(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Return the maintenance every night, when the disk is least busy."""
    return dg.ScheduleDefinition(
        name="nightly_maintenance",
        job=job,
        cron_schedule="0 3 * * *",
        description="Starts `maintenance`, when the disk is least busy.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
