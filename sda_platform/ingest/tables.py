"""Tables of package ingest: the records that landed, the valid observations among them, and telemetry frames.

Angles are topocentric, as the sensor reported them; what they refer to is in columns of their own. States that
satellites report are TEME.
"""

import math

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.ingest.feeds import LANDING_FEEDS, TELEMETRY_FEED
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import LandingColumns, MarkedRows, Provenance, Table

EARLIEST_EVENT_NS = -631_152_000_000_000_000  # 1950-01-01: nothing was in orbit before


class Envelope(Provenance):
    """One observation: who measured what, when, and how well. Columns of other kinds of sensor are null."""

    observation_id: T.StringType = pa.Field(
        nullable=True, description="UUIDv5 of source, native id, sensor time and payload; equal for re-deliveries."
    )
    source_kind: T.StringType = pa.Field(nullable=True, isin=["radar", "optical", "isl"], description="Kind of sensor.")
    source_id: T.StringType = pa.Field(nullable=True, description="The sensor: radar-7, optical-maui, isl-44713.")
    native_track_id: T.StringType = pa.Field(
        nullable=True, description="The source's own id of what it tracked; not a catalogue id."
    )
    sensor_time_ns: T.LongType = quantity(
        "ns",
        "Event time by the sensor's clock, Unix time UTC; never replaced by arrival time.",
        nullable=True,
        ge=EARLIEST_EVENT_NS,
    )
    range_m: T.DoubleType = quantity("m", "Slant range.", nullable=True, gt=0, lt=1e9)
    range_sigma_m: T.DoubleType = quantity("m", "1-sigma of range.", nullable=True, gt=0)
    range_rate_m_s: T.DoubleType = quantity("m/s", "Range rate, positive receding.", nullable=True, gt=-3e8, lt=3e8)
    range_rate_sigma_m_s: T.DoubleType = quantity("m/s", "1-sigma of range rate.", nullable=True, gt=0)
    azimuth_rad: T.DoubleType = quantity("rad", "Azimuth, clockwise from north.", nullable=True)
    elevation_rad: T.DoubleType = quantity(
        "rad", "Elevation above the horizon.", nullable=True, ge=-math.pi / 2, le=math.pi / 2
    )
    right_ascension_rad: T.DoubleType = quantity("rad", "Topocentric right ascension.", nullable=True)
    declination_rad: T.DoubleType = quantity(
        "rad", "Topocentric declination.", nullable=True, ge=-math.pi / 2, le=math.pi / 2
    )
    angle_sigma_rad: T.DoubleType = quantity("rad", "1-sigma of either angle.", nullable=True, gt=0)
    x_m: T.DoubleType = quantity("m", "Position x, TEME.", nullable=True)
    y_m: T.DoubleType = quantity("m", "Position y, TEME.", nullable=True)
    z_m: T.DoubleType = quantity("m", "Position z, TEME.", nullable=True)
    vx_m_s: T.DoubleType = quantity("m/s", "Velocity x, TEME.", nullable=True)
    vy_m_s: T.DoubleType = quantity("m/s", "Velocity y, TEME.", nullable=True)
    vz_m_s: T.DoubleType = quantity("m/s", "Velocity z, TEME.", nullable=True)
    position_sigma_m: T.DoubleType = quantity("m", "1-sigma of each position component.", nullable=True, gt=0)
    velocity_sigma_m_s: T.DoubleType = quantity("m/s", "1-sigma of each velocity component.", nullable=True, gt=0)
    clock_quality: T.StringType = pa.Field(nullable=True, description="What the sensor's clock is synchronised to.")
    clock_age_s: T.DoubleType = quantity("s", "Time since the clock's last synchronisation.", nullable=True, ge=0)
    angle_frame: T.StringType = pa.Field(
        nullable=True,
        isin=list(ANGLE_REFERENCES["angle_frame"]),
        description="Axes of right ascension and declination; null: as the sensor list states, else TEME.",
    )
    angle_aberration: T.StringType = pa.Field(
        nullable=True,
        isin=list(ANGLE_REFERENCES["angle_aberration"]),
        description="Aberration still to be corrected; null: as the sensor list states.",
    )
    angle_refraction: T.StringType = pa.Field(
        nullable=True,
        isin=list(ANGLE_REFERENCES["angle_refraction"]),
        description="Whether refraction is included; null: as the sensor list states.",
    )


class LandedRecord(Envelope, LandingColumns):
    """Bronze: one row per landed record, for ever; a record that cannot be decoded is a row with an error."""


class Observation(Envelope, MarkedRows):
    """Silver: each valid observation once."""

    reprocess_count: T.LongType = pa.Field(
        nullable=True,
        ge=1,
        description="Number of times it was reprocessed from dead letters before it was valid; null: none.",
    )


class TelemetryFrame(Provenance, LandingColumns):
    """Bronze: one row per landed telemetry frame, for ever; a frame that cannot be used is a row with an error."""

    satellite_id: T.LongType = pa.Field(nullable=True, ge=0, description="The satellite's number in its frames.")
    frame_sequence: T.LongType = pa.Field(nullable=True, ge=0, description="Number of the frame, by the satellite.")
    station_id: T.LongType = pa.Field(nullable=True, ge=0, le=255, description="The station that received the frame.")
    frame_time_ns: T.LongType = quantity("ns", "Time of the frame by the satellite's clock, UTC.", nullable=True)
    is_emergency: T.BooleanType = pa.Field(nullable=True, description="Whether the frame is emergency traffic.")
    is_conflict: T.BooleanType = pa.Field(
        nullable=True,
        description="Whether it repeats the sequence of another frame with other content; null: not recorded.",
    )


_ENVELOPE = [name for name in Observation.to_schema().columns if name != "commit_sequence"]

RAW_RECORDS = Table(
    "raw_records",
    "ingest",
    LandedRecord,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=tuple(feed.name for feed in LANDING_FEEDS),
)
OBSERVATIONS = Table(
    "observations",
    "ingest",
    Observation,
    ("observation_id",),
    "sensor_time_ns",
    lineage={name: [("raw_records", name)] for name in _ENVELOPE},
    consumes=(RAW_RECORDS,),
    refuses_rows=True,
)

TELEMETRY_FRAMES = Table(
    "telemetry_frames",
    "telemetry",
    TelemetryFrame,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(TELEMETRY_FEED,),
)

TABLES = (RAW_RECORDS, OBSERVATIONS, TELEMETRY_FRAMES)
