"""Assets of the ingest room: landing zones → raw_records → observations and dead_letters."""

from functools import reduce
from typing import Any

import dagster as dg
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest import letters, transforms
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.lateness import late_observations, raw_records_of
from sda_platform.ingest.tables import DEAD_LETTERS, OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.assets import materialized, nothing_new, table_asset
from sda_platform.lake.landing.bronze import land
from sda_platform.lake.landing.zone_asset import zone_asset
from sda_platform.lake.resource import LakeResource, LandingResource
from sda_platform.lake.time_spans import time_spans, within

landing_zones = [
    zone_asset(
        feed.name,
        RAW_RECORDS,
        "observations_landing",
        feed.description,
        max_lateness_s=feed.max_lateness_ns / 1e9,
        replayable=feed.replayable,
        ordering=feed.ordering,
        delivery=feed.delivery,
    )
    for feed in OBSERVATION_FEEDS
]


@table_asset(RAW_RECORDS, deps=landing_zones, pool="hot")
def raw_records(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """Every record that radars, telescopes and inter-satellite links sent, one row each, kept for ever.

    A record that cannot be decoded is a row with an error; a segment that is torn or altered is one row that says so.
    """
    return land(
        lake, landing, RAW_RECORDS, [feed.name for feed in OBSERVATION_FEEDS], decode_segments, tell=context.log_event
    )


@table_asset(OBSERVATIONS, deps=[raw_records], pool="hot")
def observations(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Valid observations, each exactly once however often it was delivered: what was measured, when, and how well."""
    store = lake.open()
    plan = store.plan(OBSERVATIONS, consume=[RAW_RECORDS])
    if plan.is_empty:
        return nothing_new(store, plan)
    times = store.new_rows(plan, RAW_RECORDS, ["sensor_time_ns"]).column("sensor_time_ns")
    known = store.snapshot(plan, OBSERVATIONS).where(within("sensor_time_ns", time_spans(times)))
    receipt = store.append(plan, transforms.new_observations(store.window(plan, RAW_RECORDS), known))
    valid = len(times) - times.null_count
    return materialized(store, receipt, valid=valid, duplicates=valid - receipt.rows_written)


@table_asset(DEAD_LETTERS, deps=[*(table.name for table in letters.BRONZE), FUSED_TRACKS.name], priority=-10)
def dead_letters(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """What could not be used, with file, record, reason and the bytes, so that nothing is lost silently.

    Records and messages that cannot be read, element sets that SGP4 refuses, and observations that came after their
    window had closed. `docs/dead-letters.md` says for each kind what to do; `sda reprocess` brings letters back.
    """
    store = lake.open()
    plan = store.plan(DEAD_LETTERS, consume=[*letters.BRONZE, FUSED_TRACKS])
    if plan.is_empty:
        return nothing_new(store, plan)
    landed = ((store.window(plan, table), table.name) for table in letters.BRONZE)
    rows = reduce(DataFrame.unionByName, (letters.rejected_records(*each, plan.as_of_ns) for each in landed))
    late = late_observations(store, plan.window(FUSED_TRACKS))
    if late.num_rows:
        told = letters.late_letters(late, raw_records_of(store, late), FUSED_TRACKS.name, plan.as_of_ns)
        rows = rows.unionByName(store.frame(DEAD_LETTERS, told))
    receipt = store.append(plan, rows)
    kinds = pc.value_counts(store.written_rows(receipt, ["error_kind"]).column("error_kind")).to_pylist()
    return materialized(store, receipt, by_kind={str(k["values"]): k["counts"] for k in kinds})
