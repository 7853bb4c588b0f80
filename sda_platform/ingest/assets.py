"""Assets of package ingest: landing zones → raw_records → observations and dead_letters."""

from typing import Any

import dagster as dg

from sda_platform.ingest import decoding, telemetry, transforms
from sda_platform.ingest.collectors import KINDS, source_key
from sda_platform.ingest.feeds import LANDING_FEEDS, TELEMETRY_FEED
from sda_platform.ingest.small_windows import MOST_RECORDS, new_observations
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.lake.time_spans import time_spans, within
from sda_platform.landing.decoding import one_by_one
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS, TELEMETRY_TO_FRAMES
from sda_platform.orchestration.landing_table import land
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_asset import materialized, nothing_new, table_asset
from sda_platform.orchestration.zone_asset import zone_asset

landing_zones = [
    zone_asset(
        feed.name,
        RAW_RECORDS,
        OBSERVATIONS_TO_ALERTS,
        feed.description,
        deps=[source_key(feed.name)] if feed.name in KINDS else [],
        max_lateness_s=feed.max_lateness_ns / 1e9,
        replayable=feed.replayable,
        ordering=feed.ordering,
        delivery=feed.delivery,
    )
    for feed in LANDING_FEEDS
]


telemetry_zone = zone_asset(
    TELEMETRY_FEED,
    TELEMETRY_FRAMES,
    TELEMETRY_TO_FRAMES,
    "Telemetry frames of satellites, as stations sent them by TCP.",
    deps=[source_key("telemetry"), source_key("station")],
    replayable="no",
    ordering="per satellite",
    delivery="at least once",
)


@table_asset(TELEMETRY_FRAMES, jobs=[TELEMETRY_TO_FRAMES])
def telemetry_frames(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """Every telemetry frame as received, one row each, with the values of its header, kept without limit.

    A frame that the station flagged, or of another length than its header states, is a row with its error.
    """
    return land(lake, landing, TELEMETRY_FRAMES, one_by_one(telemetry.decode), report=context.log_event)


@table_asset(RAW_RECORDS, jobs=[OBSERVATIONS_TO_ALERTS])
def raw_records(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """Every record from radars, telescopes and inter-satellite links, one row each, kept without limit.

    A record that cannot be decoded is a row with its error. A truncated or altered segment is one row with its error.
    """
    return land(lake, landing, RAW_RECORDS, decoding.decode, report=context.log_event)


@table_asset(OBSERVATIONS, jobs=[OBSERVATIONS_TO_ALERTS])
def observations(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Valid observations, each exactly once however often it was delivered: measured values, time and noise."""
    store = lake.open()
    plan = store.plan(OBSERVATIONS)
    if plan.is_empty:
        return nothing_new(store, plan)
    times = store.new_rows(plan, RAW_RECORDS, ["sensor_time_ns"]).column("sensor_time_ns")
    if len(times) <= MOST_RECORDS:
        rows = new_observations(store, plan)
    else:
        known = store.snapshot(plan, OBSERVATIONS).where(within("sensor_time_ns", time_spans(times)))
        rows = transforms.new_observations(store.window(plan, RAW_RECORDS), known)
    receipt = store.append(plan, rows)
    valid = len(times) - times.null_count
    return materialized(store, receipt, valid=valid, duplicates=valid - receipt.rows_written)
