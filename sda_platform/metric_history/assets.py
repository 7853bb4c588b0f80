"""Assets of package metric_history: landing/metrics → pipeline_metrics."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import dagster as dg

from sda_platform.formats.metric_values import MetricValue
from sda_platform.landing.decoding import one_by_one
from sda_platform.landing.record_rows import record_decoder
from sda_platform.metric_history.tables import METRICS_FEED, PIPELINE_METRICS
from sda_platform.orchestration.jobs import PLATFORM_METRICS
from sda_platform.orchestration.landing_table import land
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_asset import table_asset
from sda_platform.orchestration.zone_asset import zone_asset

metrics_zone = zone_asset(
    METRICS_FEED,
    PIPELINE_METRICS,
    PLATFORM_METRICS,
    "Values of the platform's metrics as lines of JSON, sealed by the watchdog.",
    replayable="no",
    ordering="by time of sampling",
    delivery="at least once",
)


def columns(value: MetricValue) -> Mapping[str, Any]:
    """The columns of one value."""
    return {**asdict(value), "labels": json.dumps(dict(value.labels), sort_keys=True)}


decode = record_decoder(PIPELINE_METRICS, METRICS_FEED, columns)


@table_asset(PIPELINE_METRICS, jobs=[PLATFORM_METRICS])
def pipeline_metrics(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """What watchdog and collector export under `/metrics`, sampled every ten minutes of wall time.

    So rates, backlog, latency and service levels of past days can be queried without a Prometheus server.
    """
    return land(lake, landing, PIPELINE_METRICS, one_by_one(decode), report=context.log_event)
