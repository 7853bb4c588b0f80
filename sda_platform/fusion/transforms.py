"""Transforms of package fusion: DataFrames in, a DataFrame out."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.correction_log import content, corrections, fact_types
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases


def fused(
    observations: DataFrame,
    propagator: Propagator,
    *,
    window_ns: int,
    biases: Mapping[int, TimeTagBiases] | None = None,
    sensors: SensorNetwork | None = None,
) -> DataFrame:
    """One fit per object and window of ``observations``, which must contain whole windows.

    ``biases``: time-tag corrections by the start of the term (`time_bias.corrections`). ``sensors``: the network that
    made the observations; the shipped one if not given. Returns the columns of `fuse.TRACK_SCHEMA`.
    """
    windowed = observations.withColumn("window_start_ns", _window_start(window_ns))
    return windowed.groupBy("window_start_ns").applyInArrow(
        window_fuser(propagator, window_ns, biases, sensors), fact_types(FUSED_TRACKS)
    )


def track_corrections(
    observations: DataFrame,
    correction_log: DataFrame,
    propagator: Propagator,
    *,
    starts_ns: Sequence[int],
    window_ns: int,
    as_of_ns: int,
    biases: Mapping[int, TimeTagBiases] | None = None,
    sensors: SensorNetwork | None = None,
) -> DataFrame:
    """The fits of the touched windows, as retracts and inserts against the correction log."""
    touched = observations.where(
        F.col("sensor_time_ns").between(min(starts_ns), max(starts_ns) + window_ns - 1)
        & _window_start(window_ns).isin(list(starts_ns))
    )
    known = correction_log.where(F.col("window_start_ns").isin(list(starts_ns)))
    fresh = fused(touched, propagator, window_ns=window_ns, biases=biases, sensors=sensors)
    return corrections(known, fresh, key="fit_id", content=content(FUSED_TRACKS), as_of_ns=as_of_ns)


def _window_start(window_ns: int) -> Column:
    return F.col("sensor_time_ns") - F.pmod(F.col("sensor_time_ns"), F.lit(window_ns))
