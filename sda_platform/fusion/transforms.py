"""Transforms of the fusion room: DataFrames in, a DataFrame out."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.journal import JournalModel, corrections
from sda_platform.orbits.propagation import Propagator

CONTENT = [c.name for c in FUSED_TRACKS.columns if c.name not in {*JournalModel.to_schema().columns, "track_id"}]
_TRACK_TYPES = ", ".join(
    f"{c.name} {c.data_type.simpleString()}" for c in FUSED_TRACKS.columns if c.name in {*CONTENT, "track_id"}
)


def fused(observations: DataFrame, propagator: Propagator, *, window_ns: int) -> DataFrame:
    """One fit per object and window of ``observations``, which must hold whole windows."""
    start = F.col("sensor_time_ns") - F.pmod(F.col("sensor_time_ns"), F.lit(window_ns))
    windowed = observations.withColumn("window_start_ns", start)
    return windowed.groupBy("window_start_ns").applyInArrow(window_fuser(propagator, window_ns), _TRACK_TYPES)


def track_corrections(
    observations: DataFrame,
    journal: DataFrame,
    propagator: Propagator,
    *,
    starts_ns: Sequence[int],
    window_ns: int,
    as_of_ns: int,
) -> DataFrame:
    """What the touched windows now say, as retracts and inserts against the journal."""
    start = F.col("sensor_time_ns") - F.pmod(F.col("sensor_time_ns"), F.lit(window_ns))
    touched = observations.where(
        F.col("sensor_time_ns").between(min(starts_ns), max(starts_ns) + window_ns - 1) & start.isin(list(starts_ns))
    )
    known = journal.where(F.col("window_start_ns").isin(list(starts_ns)))
    fresh = fused(touched, propagator, window_ns=window_ns)
    return corrections(known, fresh, key="track_id", content=CONTENT, as_of_ns=as_of_ns)
