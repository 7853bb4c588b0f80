"""Tables of the ingest room: what landed, what was observed, what could not be read.

Angles of optical observations are topocentric in TEME of date; inter-satellite-link states are TEME.
"""

import math

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.lake.failures.dispositions import RECORD_KINDS, Disposition
from sda_platform.lake.table import Landed, Provenance, Table

EARLIEST_EVENT_NS = -631_152_000_000_000_000  # 1950-01-01: nothing was in orbit before


class Envelope(Provenance):
    """One observation: who measured what, when, and how well. Columns of other kinds of sensor are null."""

    observation_id: T.StringType = pa.Field(
        nullable=True, description="UUIDv5 of source, native id, sensor time and payload (E1); equal for re-deliveries."
    )
    source_kind: T.StringType = pa.Field(nullable=True, isin=["radar", "optical", "isl"], description="Kind of sensor.")
    source_id: T.StringType = pa.Field(nullable=True, description="The sensor: radar-7, optical-maui, isl-44713.")
    native_track_id: T.StringType = pa.Field(
        nullable=True, description="The source's own id of what it tracked; not a catalogue id (E3)."
    )
    sensor_time_ns: T.LongType = pa.Field(
        nullable=True,
        ge=EARLIEST_EVENT_NS,
        description="Event time by the sensor's clock, Unix time UTC; never replaced by arrival time.",
        metadata={"unit": "ns"},
    )
    range_m: T.DoubleType = pa.Field(nullable=True, gt=0, lt=1e9, description="Slant range.", metadata={"unit": "m"})
    range_sigma_m: T.DoubleType = pa.Field(nullable=True, gt=0, description="1-sigma of range.", metadata={"unit": "m"})
    range_rate_m_s: T.DoubleType = pa.Field(
        nullable=True, gt=-3e8, lt=3e8, description="Range rate, positive receding.", metadata={"unit": "m/s"}
    )
    range_rate_sigma_m_s: T.DoubleType = pa.Field(
        nullable=True, gt=0, description="1-sigma of range rate.", metadata={"unit": "m/s"}
    )
    azimuth_rad: T.DoubleType = pa.Field(
        nullable=True, description="Azimuth, clockwise from north.", metadata={"unit": "rad"}
    )
    elevation_rad: T.DoubleType = pa.Field(
        nullable=True,
        ge=-math.pi / 2,
        le=math.pi / 2,
        description="Elevation above the horizon.",
        metadata={"unit": "rad"},
    )
    right_ascension_rad: T.DoubleType = pa.Field(
        nullable=True, description="Topocentric right ascension, TEME of date.", metadata={"unit": "rad"}
    )
    declination_rad: T.DoubleType = pa.Field(
        nullable=True,
        ge=-math.pi / 2,
        le=math.pi / 2,
        description="Topocentric declination, TEME of date.",
        metadata={"unit": "rad"},
    )
    angle_sigma_rad: T.DoubleType = pa.Field(
        nullable=True, gt=0, description="1-sigma of either angle.", metadata={"unit": "rad"}
    )
    x_m: T.DoubleType = pa.Field(nullable=True, description="Position x, TEME.", metadata={"unit": "m"})
    y_m: T.DoubleType = pa.Field(nullable=True, description="Position y, TEME.", metadata={"unit": "m"})
    z_m: T.DoubleType = pa.Field(nullable=True, description="Position z, TEME.", metadata={"unit": "m"})
    vx_m_s: T.DoubleType = pa.Field(nullable=True, description="Velocity x, TEME.", metadata={"unit": "m/s"})
    vy_m_s: T.DoubleType = pa.Field(nullable=True, description="Velocity y, TEME.", metadata={"unit": "m/s"})
    vz_m_s: T.DoubleType = pa.Field(nullable=True, description="Velocity z, TEME.", metadata={"unit": "m/s"})
    position_sigma_m: T.DoubleType = pa.Field(
        nullable=True, gt=0, description="1-sigma of each position component.", metadata={"unit": "m"}
    )
    velocity_sigma_m_s: T.DoubleType = pa.Field(
        nullable=True, gt=0, description="1-sigma of each velocity component.", metadata={"unit": "m/s"}
    )
    clock_quality: T.StringType = pa.Field(nullable=True, description="What disciplines the sensor's clock (DP3-I4).")
    clock_age_s: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="Time since the clock's last synchronisation.", metadata={"unit": "s"}
    )


class RawRecord(Envelope, Landed):
    """Bronze: one row per landed record, for ever; a record that cannot be decoded is a row with an error."""

    feed: T.StringType = pa.Field(description="The landing zone.")
    payload: T.BinaryType = pa.Field(nullable=True, description="The record's bytes as they came.")
    error_kind: T.StringType = pa.Field(nullable=True, description="Why the record is invalid; null: it is valid.")
    error: T.StringType = pa.Field(nullable=True, description="The same for a person: file, record, reason.")


class Observation(Envelope):
    """Silver: each valid observation once."""

    reprocess_count: T.LongType = pa.Field(
        nullable=True, ge=1, description="How often it came back from dead letters before it was valid; null: never."
    )


class DeadLetter(Provenance):
    """What a stage refused, with its reason and the bytes to try again with.

    Version 2 of the layout added the columns from error_class on; in letters of version 1 they are null.
    """

    schema_version: T.IntegerType = pa.Field(ge=1, description="Version of this record's layout (DP5-Q3).")
    stage: T.StringType = pa.Field(description="The table whose stage refused it.")
    feed: T.StringType = pa.Field(description="The landing zone.")
    error_kind: T.StringType = pa.Field(isin=list(RECORD_KINDS), description="Kind of error: docs/dead-letters.md.")
    error: T.StringType = pa.Field(description="File, record and reason, for a person.")
    payload: T.BinaryType = pa.Field(nullable=True, description="The record's bytes as they came (DP5-I22).")
    error_class: T.StringType = pa.Field(
        nullable=True,
        isin=[d.value for d in Disposition],
        description="What repeating would bring: docs/dead-letters.md.",
    )
    source_id: T.StringType = pa.Field(nullable=True, description="The sensor, where the record told it.")
    segment_format: T.StringType = pa.Field(nullable=True, description="Format in which the record came.")
    rejected_time_ns: T.LongType = pa.Field(
        nullable=True, description="Mission time at which it was refused.", metadata={"unit": "ns"}
    )
    retry_count: T.LongType = pa.Field(
        nullable=True, ge=0, description="How often it had been reprocessed before it was refused this time."
    )


_ENVELOPE = [name for name in Observation.to_schema().columns if name != "commit_sequence"]
_BRONZE = ("raw_records", "element_sets", "conjunction_messages")
_LETTER = [
    "segment_sha256",
    "segment_name",
    "record_number",
    "received_time_ns",
    "feed",
    "error_kind",
    "error",
    "payload",
    "segment_format",
]

RAW_RECORDS = Table("raw_records", "ingest", RawRecord, ("segment_sha256", "record_number"), "received_time_ns")
OBSERVATIONS = Table(
    "observations",
    "ingest",
    Observation,
    ("observation_id",),
    "sensor_time_ns",
    sources={name: [("raw_records", name)] for name in _ENVELOPE},
)
DEAD_LETTERS = Table(
    "dead_letters",
    "ingest",
    DeadLetter,
    ("stage", "segment_sha256", "record_number"),
    "received_time_ns",
    sources={
        **{name: [(bronze, name) for bronze in _BRONZE] for name in _LETTER},
        "source_id": [("raw_records", "source_id")],
        "retry_count": [(bronze, "reprocess_count") for bronze in _BRONZE],
    },
)
