"""Dagster's own history of runs: how long it is kept. Ticks of sensors and schedules: `retention` in dagster.yaml."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from sda_platform.lake.retention import RETENTION
from sda_platform.spark.session import POOL_TAG

_FINISHED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_PAGE = 1_000
_MOST = 20_000
"""Runs removed by one maintenance, so that it ends; the next one continues. A day has fewer: a run takes seconds."""


def purge_runs(instance: dg.DagsterInstance, *, now_ms: int, keep_days: int = RETENTION.runs_days) -> int:
    """Remove finished runs, with their events, that are older than ``keep_days``; returns how many.

    The run of each asset's latest materialization stays: it is what the UI shows of the asset. So does the last run of
    each pool: if it failed, the sensors decide by it whether the pool runs again (`orchestration.attempts`).
    """
    before = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=keep_days)
    old = dg.RunsFilter(statuses=list(_FINISHED), created_before=before)
    if not instance.get_run_records(old, limit=1):
        return 0
    kept, removed = _kept(instance), 0
    while removed < _MOST:
        page = instance.get_run_records(old, limit=_PAGE + len(kept), ascending=True)
        gone = [record.dagster_run.run_id for record in page if record.dagster_run.run_id not in kept]
        if not gone:
            break
        for run_id in gone:
            instance.delete_run(run_id)
        removed += len(gone)
    return removed


def _kept(instance: dg.DagsterInstance) -> set[str]:
    events = (instance.get_latest_materialization_event(key) for key in instance.all_asset_keys())
    latest = {event.run_id for event in events if event is not None}
    for name, pools in instance.get_run_tags(tag_keys=[POOL_TAG]):
        for pool in pools:
            latest |= {run.run_id for run in instance.get_runs(dg.RunsFilter(tags={name: pool}), limit=1)}
    return latest
