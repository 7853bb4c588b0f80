"""The schedule of orbit determination: every two minutes, unless element sets are pending or the job is under way.

A run waits for its turn in the pool: one that stood back from every screening would never come while those fail.
"""

import time
from collections.abc import Sequence

import dagster as dg

from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.backlog import backlog_of
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import ORBIT_DETERMINATION
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.spark.session import POOL_TAG


def build_schedules(*, running: bool, assets: Sequence[dg.AssetKey]) -> list[dg.ScheduleDefinition]:
    """Return the schedule of ``assets`` of the job, without those that a red table stops; active if ``running``."""

    @dg.schedule(
        name="orbit_determination_refresh",
        job_name=ORBIT_DETERMINATION.name,
        cron_schedule="*/2 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED,
        description="Estimates time-tag biases, refines tracked objects, catalogues uncorrelated ones, publishes both. "
        "A run without work commits nothing.",
    )
    def orbit_determination_refresh(
        context: dg.ScheduleEvaluationContext, lake: LakeResource, landing: LandingResource
    ) -> dg.RunRequest | dg.SkipReason:
        zone = landing.zone(ELEMENTS_FEED)
        waiting = zone.pending_names()
        # Older segments are not being consumed, which the zone's check reports: they must not delay this job for ever.
        if waiting and (backlog_of(zone, time.time()).oldest_s or 0.0) <= landing.backlog_max_age_s:
            return dg.SkipReason(
                f"segments of element sets are pending for the catalogue: {', '.join(sorted(waiting)[:3])}"
            )
        active = unfinished_run_of(context.instance, ORBIT_DETERMINATION)
        if active is not None:
            return dg.SkipReason(f"run {active[:8]} of the job has not ended")
        refused = refused_assets(lake.open())
        chosen = [key for key in assets if key not in refused]
        if not chosen:
            return dg.SkipReason("; ".join(refused.values()))
        return dg.RunRequest(tags={POOL_TAG: ORBIT_DETERMINATION.pool}, asset_selection=chosen)

    return [orbit_determination_refresh]


def refused_assets(store: Lake) -> dict[dg.AssetKey, str]:
    """Find assets of the job whose only new commits are behind a red table, each with the reason."""
    refused = {}
    for table in tables_of(ORBIT_DETERMINATION):
        commit = store.log(table).head().commit
        manifest = commit.manifest if commit else None
        sources = [(source, store.readable(source, manifest)) for source in table.consumed]
        windows = {window.table: window.upto_sequence for window in (manifest.windows if manifest else ())}
        is_idle = all(upstream.head.sequence <= windows.get(source.name, 0) for source, upstream in sources)
        withheld = [upstream.withheld for _, upstream in sources if upstream.withheld]
        if is_idle and withheld:
            refused[dg.AssetKey(table.name)] = "; ".join(withheld)
    return refused
