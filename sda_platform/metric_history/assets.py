"""Assets of package metric_history: landing/metrics → pipeline_metrics."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sda_platform.formats.metric_values import MetricValue
from sda_platform.lake.lake import Lake
from sda_platform.landing.decoding import one_by_one
from sda_platform.landing.record_rows import record_decoder
from sda_platform.metric_history.tables import METRICS_FEED, PIPELINE_METRICS
from sda_platform.orchestration.jobs import PLATFORM_METRICS
from sda_platform.orchestration.landing_table import Decoding, landing_asset
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.zone_asset import ZoneContents


def columns(value: MetricValue) -> Mapping[str, Any]:
    """Return the columns of one value."""
    return {**asdict(value), "labels": json.dumps(dict(value.labels), sort_keys=True)}


decode = record_decoder(PIPELINE_METRICS, METRICS_FEED, columns)


@landing_asset(
    PIPELINE_METRICS,
    jobs=[PLATFORM_METRICS],
    zones={
        METRICS_FEED: ZoneContents(
            "Values of the platform's metrics as lines of JSON, sealed by the watchdog.",
            replayable="no",
            ordering="by time of sampling",
        )
    },
    freshness=DataFreshness.unscheduled("a platform need not sample metrics"),
)
def pipeline_metrics(_store: Lake) -> Decoding:
    """What watchdog and collector export under `/metrics`, sampled every ten minutes of wall time.

    So rates, backlog, latency and service levels of past days can be queried without a Prometheus server.
    """
    return Decoding(one_by_one(decode))
