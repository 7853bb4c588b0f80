"""The table of clocks: how far each sensor's was off, term by term."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.lake.table import TableModel


class ClockOffset(TableModel):
    """How far a sensor's clock was off during a term of closed windows, and whether that is taken out later."""

    source_id: T.StringType = pa.Field(description="The sensor.")
    term_start_ns: T.LongType = pa.Field(
        description="Start of the term, ten windows long, that it was estimated from.", metadata={"unit": "ns"}
    )
    holds_from_ns: T.LongType = pa.Field(
        description="Start of the term whose windows it is for: the next but one.", metadata={"unit": "ns"}
    )
    offset_s: T.DoubleType = pa.Field(description="How far the clock was ahead.", metadata={"unit": "s"})
    sigma_s: T.DoubleType = pa.Field(gt=0, description="1-sigma of that.", metadata={"unit": "s"})
    correction_sigma_s: T.DoubleType = pa.Field(
        nullable=True,
        gt=0,
        description="1-sigma of it as a correction, with its change since the term before; null: that tells none.",
        metadata={"unit": "s"},
    )
    is_applied: T.BooleanType = pa.Field(description="Whether it is taken out of the times of the term it is for.")
    bound_s: T.DoubleType = pa.Field(
        ge=0, description="The largest skew that the clock's quality allows.", metadata={"unit": "s"}
    )
    residual_rms: T.DoubleType = pa.Field(
        ge=0, description="Root mean square of residuals in units of their noise, the clock as it is."
    )
    readings: T.LongType = pa.Field(ge=1, description="Observations that it was estimated from.")
    anchors: T.LongType = pa.Field(ge=0, description="Satellites with good clocks among what the sensor saw.")
    as_of_ns: T.LongType = pa.Field(
        description="Mission time at which the platform concluded this.", metadata={"unit": "ns"}
    )
