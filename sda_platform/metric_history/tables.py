"""Table of package metric_history: what the processes of the platform exported, sampled at intervals."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import LandingColumns, Provenance, Table

METRICS_FEED = "metrics"
"""The landing zone of sampled metrics, which the watchdog seals."""


class PipelineMetricRow(Provenance, LandingColumns):
    """Bronze: one row per value of a metric; one that cannot be used has an error."""

    process: T.StringType = pa.Field(nullable=True, description="Who exported it: watchdog or collector.")
    metric: T.StringType = pa.Field(nullable=True, description="The metric of the catalogue.")
    sample: T.StringType = pa.Field(
        nullable=True, description="The metric; of a histogram with the suffix _bucket, _count or _sum."
    )
    labels: T.StringType = pa.Field(nullable=True, description="Its labels as a JSON object, sorted by name.")
    value: T.DoubleType = pa.Field(nullable=True, description="The value; counters grow from the start of the process.")
    sampled_time_ns: T.LongType = quantity("ns", "When it was read, mission time.", nullable=True)


PIPELINE_METRICS = Table(
    "pipeline_metrics",
    "observability",
    PipelineMetricRow,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(METRICS_FEED,),
)
TABLES = (PIPELINE_METRICS,)
