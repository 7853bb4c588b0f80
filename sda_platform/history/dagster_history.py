"""Dagster's own history of runs: how long it is kept. Ticks of sensors and schedules: `retention` in dagster.yaml."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.spark.session import POOL_TAG

_FINISHED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_PAGE = 1_000
_MOST = 20_000
"""Runs removed by one maintenance, so that it ends; the next one continues. A day has fewer: a run takes seconds."""


def purge_runs(instance: dg.DagsterInstance, *, now_ms: int, retention: Retention = RETENTION) -> int:
    """Remove finished runs, with their events, that are older than ``operations_days``; returns how many.

    Of runs that succeeded only the newest ``succeeded_runs`` stay: their records have 1.2 to 1.9 MB each. The run of
    each asset's latest materialization stays: it is what the UI shows of the asset. So does the last run of each pool:
    if it failed, the sensors decide by it whether the pool runs again (`orchestration.attempts`).
    """
    before = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=retention.operations_days)
    old = dg.RunsFilter(statuses=list(_FINISHED), created_before=before)
    succeeded = dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS])
    removed = _remove_oldest(instance, old, _MOST) if instance.get_run_records(old, limit=1) else 0
    surplus = instance.get_runs_count(succeeded) - retention.succeeded_runs
    return removed + (_remove_oldest(instance, succeeded, min(surplus, _MOST - removed)) if surplus > 0 else 0)


def _remove_oldest(instance: dg.DagsterInstance, chosen: dg.RunsFilter, most: int) -> int:
    """Remove at most ``most`` of the ``chosen`` runs, oldest first; returns how many."""
    kept, removed = _kept(instance), 0
    while removed < most:
        page = instance.get_run_records(chosen, limit=min(_PAGE, most - removed) + len(kept), ascending=True)
        gone = [record.dagster_run.run_id for record in page if record.dagster_run.run_id not in kept]
        if not gone:
            break
        for run_id in gone[: most - removed]:
            instance.delete_run(run_id)
            removed += 1
    return removed


def _kept(instance: dg.DagsterInstance) -> set[str]:
    events = (instance.get_latest_materialization_event(key) for key in instance.all_asset_keys())
    latest = {event.run_id for event in events if event is not None}
    for name, pools in instance.get_run_tags(tag_keys=[POOL_TAG]):
        for pool in pools:
            latest |= {run.run_id for run in instance.get_runs(dg.RunsFilter(tags={name: pool}), limit=1)}
    return latest
