"""Dagster's own history of runs: how long it is kept. Ticks of sensors and schedules: `retention` in dagster.yaml."""

from datetime import UTC, datetime, timedelta

import dagster as dg

RUNS_KEPT_DAYS = 30
_FINISHED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_AT_ONCE = 1_000
"""Runs removed by one maintenance at most, so that it ends; the next one continues."""


def purge_runs(instance: dg.DagsterInstance, *, now_ms: int, keep_days: int = RUNS_KEPT_DAYS) -> int:
    """Remove finished runs, with their events, that are older than ``keep_days``; returns how many.

    The run of each asset's latest materialization stays: it is what the UI shows of the asset.
    """
    before = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=keep_days)
    old = instance.get_run_records(
        dg.RunsFilter(statuses=list(_FINISHED), created_before=before), limit=_AT_ONCE, ascending=True
    )
    if not old:
        return 0
    events = (instance.get_latest_materialization_event(key) for key in instance.all_asset_keys())
    latest = {event.run_id for event in events if event is not None}
    gone = [record.dagster_run.run_id for record in old if record.dagster_run.run_id not in latest]
    for run_id in gone:
        instance.delete_run(run_id)
    return len(gone)
