"""What brings our own element sets to the catalogue, and when they and the sensors' clocks are determined."""

import time
from collections.abc import Sequence
from typing import Any

import dagster as dg

from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.fusion.clock_tables import CLOCK_OFFSETS
from sda_platform.fusion.offering import offer
from sda_platform.fusion.own_element_tables import PROVISIONAL_ELEMENTS, REFINED_ELEMENTS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.lake.failures.attempts import unfinished_run
from sda_platform.lake.lake import Lake
from sda_platform.lake.landing.backlog import backlog_of
from sda_platform.lake.resource import LakeResource, LandingResource
from sda_platform.lake.spark.session import LANE_TAG

LANE = "catalog"
OWN_ELEMENTS = (REFINED_ELEMENTS, PROVISIONAL_ELEMENTS)
_INTERVAL_S = 10
_READ_BY_THE_CLOCK = ((REFINED_ELEMENTS, TRACKS), (PROVISIONAL_ELEMENTS, FUSED_TRACKS), (CLOCK_OFFSETS, FUSED_TRACKS))


def build_sensors(interval_s: int = _INTERVAL_S) -> list[dg.SensorDefinition]:
    """The sensor that offers what was committed."""

    @dg.sensor(
        name="own_elements",
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Seals the platform's own element sets into the landing zone of elements, each commit once.",
    )
    def own_elements(
        context: dg.SensorEvaluationContext, lake: LakeResource, landing: LandingResource
    ) -> dg.SkipReason:
        store = lake.open()
        # A hint that spares making every segment again at every tick; offering once more changes nothing.
        newest = " ".join(store.readable(table).head.checkpoint_sha256 for table in OWN_ELEMENTS)
        offered = [] if context.cursor == newest else _offer_all(store, landing)
        context.update_cursor(newest)
        return dg.SkipReason(f"offered {', '.join(offered)}" if offered else "nothing new to offer")

    return [own_elements]


def build_schedules(
    own_elements_job: Any, *, running: bool, assets: Sequence[dg.AssetKey]
) -> list[dg.ScheduleDefinition]:
    """Every two minutes ``assets`` of the job, but for those that a red table stops, unless the lane has work."""

    @dg.schedule(
        name="own_elements_refresh",
        job=own_elements_job,
        cron_schedule="*/2 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED,
        description="Tells clocks, refines tracked objects, numbers unknown ones; a run without work commits nothing.",
    )
    def own_elements_refresh(
        context: dg.ScheduleEvaluationContext, lake: LakeResource, landing: LandingResource
    ) -> dg.RunRequest | dg.SkipReason:
        # A run that waits here would go before the catalogue's, which what the one before it found is waiting for.
        _offer_all(lake.open(), landing)
        zone = landing.zone(ELEMENTS_FEED)
        waiting = zone.pending_names()
        # What nobody takes (its check is red by then) holds up neither clocks nor what else there is to find.
        if waiting and (backlog_of(zone, time.time()).oldest_s or 0.0) <= landing.backlog_max_age_s:
            return dg.SkipReason(f"the catalogue takes what waits for it first: {', '.join(sorted(waiting)[:3])}")
        running = unfinished_run(context.instance, [LANE])
        if running is not None:
            return dg.SkipReason(f"run {running[:8]} of the lane has not ended")
        refused = refused_assets(lake.open())
        chosen = [key for key in assets if key not in refused]
        if not chosen:
            return dg.SkipReason("; ".join(refused.values()))
        return dg.RunRequest(tags={LANE_TAG: LANE}, asset_selection=chosen)

    return [own_elements_refresh]


def refused_assets(store: Lake) -> dict[dg.AssetKey, str]:
    """The assets of the job that would find nothing but commits behind a red one, each with the reason."""
    refused = {}
    for table, source in _READ_BY_THE_CLOCK:
        commit = store.log(table).head().commit
        upstream = store.readable(source, commit.checkpoint if commit else None)
        window = commit.checkpoint.window(source.name) if commit else None
        if upstream.withheld and upstream.head.sequence <= (window.upto_sequence if window else 0):
            refused[dg.AssetKey(table.name)] = upstream.withheld
    return refused


def _offer_all(store: Lake, landing: LandingResource) -> list[str]:
    """Offer every commit of own elements; the names of the segments that were not there yet."""
    zone = landing.zone(ELEMENTS_FEED)
    return [name for table in OWN_ELEMENTS for name in offer(store, table, zone)]
