"""Assets of package ingest: landing zones → raw_records → observations and dead_letters."""

from typing import Any

import dagster as dg

from sda_platform.ingest import decoding, telemetry
from sda_platform.ingest.checks import MAX_OBSERVATION_LAG_S, observations_balance
from sda_platform.ingest.collectors import KINDS, source_key
from sda_platform.ingest.feeds import LANDING_FEEDS, TELEMETRY_FEED
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.ingest.transforms import RECORD_COLUMNS, new_observations
from sda_platform.lake.executors import Stored, apply
from sda_platform.lake.lake import Lake
from sda_platform.lake.selections import Near
from sda_platform.landing.decoding import one_by_one
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.freshness import newest, newest_if_any
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS, TELEMETRY_TO_FRAMES
from sda_platform.orchestration.landing_table import Decoding, landing_asset
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.zone_asset import ZoneContents
from sda_platform.units import DAY_S, SECOND_NS


@landing_asset(
    TELEMETRY_FRAMES,
    jobs=[TELEMETRY_TO_FRAMES],
    zones={
        TELEMETRY_FEED: ZoneContents(
            "Telemetry frames of satellites, as stations sent them by TCP.",
            replayable="no",
            ordering="per satellite",
            sources=(source_key("telemetry"), source_key("station")),
        )
    },
    freshness=DataFreshness("telemetry still arrives, once any came", DAY_S, newest_if_any("received_time_ns")),
)
def telemetry_frames(_store: Lake) -> Decoding:
    """Every telemetry frame as received, one row each, with the values of its header, kept without limit.

    A frame that the station flagged, or of another length than its header states, is a row with its error.
    """
    return Decoding(one_by_one(telemetry.decode))


@landing_asset(
    RAW_RECORDS,
    jobs=[OBSERVATIONS_TO_ALERTS],
    zones={
        feed.name: ZoneContents(
            feed.description,
            replayable=feed.replayable,
            ordering=feed.ordering,
            delivery=feed.delivery,
            max_lateness_s=feed.max_lateness_ns / SECOND_NS,
            sources=(source_key(feed.name),) if feed.name in KINDS else (),
        )
        for feed in LANDING_FEEDS
    },
    freshness=DataFreshness("records arrived recently", MAX_OBSERVATION_LAG_S, newest("received_time_ns")),
)
def raw_records(_store: Lake) -> Decoding:
    """Every record from radars, telescopes and inter-satellite links, one row each, kept without limit.

    A record that cannot be decoded is a row with its error. A truncated or altered segment is one row with its error.
    """
    return Decoding(decoding.decode)


@table_asset(
    OBSERVATIONS,
    jobs=[OBSERVATIONS_TO_ALERTS],
    balance=[observations_balance],
    freshness=DataFreshness("the newest observation is recent", MAX_OBSERVATION_LAG_S, newest("sensor_time_ns")),
)
def observations(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Valid observations, each exactly once however often it was delivered: measured values, time and noise."""
    store = lake.open()
    plan = store.plan(OBSERVATIONS)
    if plan.is_empty:
        return nothing_new(store, plan)
    times = store.new_rows(plan, RAW_RECORDS, ["sensor_time_ns"]).column("sensor_time_ns")
    key = "observation_id"
    raw = Stored(RAW_RECORDS, key, RECORD_COLUMNS, is_new=True)
    known = Stored(OBSERVATIONS, key, [key], Near("sensor_time_ns", times))
    rows = apply(store, plan, new_observations, raw, known, work=len(times))
    receipt = store.append(plan, rows)
    valid = len(times) - times.null_count
    return materialized(store, receipt, valid=valid, duplicates=valid - receipt.rows_written)
