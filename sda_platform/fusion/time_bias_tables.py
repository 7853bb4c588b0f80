"""The table of time-tag biases of sensors, per term."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import TableModel


class TimeTagBias(TableModel):
    """Time-tag bias of a sensor during a term of closed windows, and whether a later term is corrected by it."""

    source_id: T.StringType = pa.Field(description="The sensor.")
    term_start_ns: T.LongType = quantity("ns", "Start of the term of ten windows that the bias was estimated from.")
    holds_from_ns: T.LongType = quantity("ns", "Start of the term that the bias corrects: two terms later.")
    offset_s: T.DoubleType = quantity("s", "Time-tag bias: positive where the clock was ahead.")
    sigma_s: T.DoubleType = quantity("s", "1-sigma of the bias.", gt=0)
    correction_sigma_s: T.DoubleType = quantity(
        "s",
        "1-sigma as a correction, with the change since the term before; null: no estimate there.",
        nullable=True,
        gt=0,
    )
    is_applied: T.BooleanType = pa.Field(description="Whether the times of that term are corrected by the bias.")
    bound_s: T.DoubleType = quantity("s", "Largest time-tag error that the clock's quality allows.", ge=0)
    residual_rms: T.DoubleType = pa.Field(
        ge=0, description="Root mean square of the residuals in units of their noise, before correction."
    )
    readings: T.LongType = pa.Field(ge=1, description="Observations that the bias was estimated from.")
    anchors: T.LongType = pa.Field(ge=0, description="Satellites with good clocks among the observed objects.")
    as_of_ns: T.LongType = quantity("ns", "Mission time at which the platform concluded this.")
