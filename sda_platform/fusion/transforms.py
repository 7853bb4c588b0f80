"""Transforms of package fusion: DataFrames in, a DataFrame out."""

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.correction_log import content, corrections, fact_types


def track_corrections(
    observations: DataFrame,
    correction_log: DataFrame,
    fuse: Callable[[pa.Table], pa.Table],
    *,
    starts_ns: Sequence[int],
    window_ns: int,
    as_of_ns: int,
) -> DataFrame:
    """The fits that ``fuse`` (`fuse.window_fuser`) makes of the touched windows, as retracts and inserts."""
    touched = observations.where(
        F.col("sensor_time_ns").between(min(starts_ns), max(starts_ns) + window_ns - 1)
        & _window_start(window_ns).isin(list(starts_ns))
    )
    windowed = touched.withColumn("window_start_ns", _window_start(window_ns))
    fresh = windowed.groupBy("window_start_ns").applyInArrow(fuse, fact_types(FUSED_TRACKS))
    known = correction_log.where(F.col("window_start_ns").isin(list(starts_ns)))
    return corrections(known, fresh, key="fit_id", content=content(FUSED_TRACKS), as_of_ns=as_of_ns)


def _window_start(window_ns: int) -> Column:
    return F.col("sensor_time_ns") - F.pmod(F.col("sensor_time_ns"), F.lit(window_ns))
