"""Table of package dead_letters: every record that could not be used, with its reason and its bytes."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.catalog.tables import CATALOG_EDITS, ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG, SATELLITE_RECORDS
from sda_platform.conjunction.tables import (
    ALERT_ACKNOWLEDGEMENTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ground.tables import GAME_DAYS, GROUND_EVENTS, MEMBERSHIP_OBSERVATIONS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import Provenance, Table
from sda_platform.metric_history.tables import PIPELINE_METRICS
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS, REFINED_ELEMENTS, REFINED_EPHEMERIDES
from sda_platform.orchestration.dispositions import RECORD_KINDS, Disposition

BRONZE = (
    RAW_RECORDS,
    ELEMENT_SETS,
    EPHEMERIDES,
    CATALOG_EDITS,
    SATELLITE_RECORDS,
    GROUND_EVENTS,
    RECEIVED_CDMS,
    ALERT_ACKNOWLEDGEMENTS,
    TELEMETRY_FRAMES,
    PIPELINE_METRICS,
    MEMBERSHIP_OBSERVATIONS,
    GAME_DAYS,
)
"""The tables that hold every record as it landed; a record with an error becomes a dead letter."""

REFUSING = (
    OBSERVATIONS,
    FUSED_TRACKS,
    TRACKS,
    ORBITAL_CATALOG,
    CONJUNCTION_CANDIDATES,
    CONJUNCTION_ASSESSMENTS,
    REFINED_ELEMENTS,
    REFINED_EPHEMERIDES,
    PROVISIONAL_ELEMENTS,
)
"""The tables that leave rows out which break their contract; each such row becomes a dead letter."""


class DeadLetter(Provenance):
    """What a stage refused, with its reason and the bytes to try again with.

    Version 2 of the layout added the columns from error_class on; in letters of version 1 they are null.
    """

    schema_version: T.IntegerType = pa.Field(ge=1, description="Version of this record's layout.")
    stage: T.StringType = pa.Field(description="Table that rejected the record.")
    feed: T.StringType = pa.Field(description="The landing zone; of a refused row its table.")
    error_kind: T.StringType = pa.Field(
        isin=list(RECORD_KINDS), description="Kind of error; docs/how-to/dead-letters.md describes each."
    )
    error: T.StringType = pa.Field(description="File, record and reason, as text.")
    payload: T.BinaryType = pa.Field(nullable=True, description="Original bytes of the record; a refused row as JSON.")
    error_class: T.StringType = pa.Field(
        nullable=True,
        isin=[d.value for d in Disposition],
        description="transient: a repetition may succeed; permanent: it fails until input or code changes.",
    )
    source_id: T.StringType = pa.Field(nullable=True, description="Sensor, if the record names it.")
    segment_format: T.StringType = pa.Field(nullable=True, description="Format of the record.")
    source_name: T.StringType = pa.Field(nullable=True, description="Who brought it to us; null: not recorded.")
    peer: T.StringType = pa.Field(nullable=True, description="Address it came from; null: not known.")
    rejected_time_ns: T.LongType = quantity("ns", "Mission time of the rejection.", nullable=True)
    retry_count: T.LongType = pa.Field(
        nullable=True, ge=0, description="Number of times it was reprocessed before this rejection."
    )


_COPIED = [
    "segment_sha256",
    "segment_name",
    "record_number",
    "received_time_ns",
    "feed",
    "error_kind",
    "error",
    "payload",
    "segment_format",
    "source_name",
    "peer",
]

DEAD_LETTERS = Table(
    "dead_letters",
    "dead_letters",
    DeadLetter,
    ("stage", "segment_sha256", "record_number"),
    "received_time_ns",
    lineage={
        **{name: [(bronze.name, name) for bronze in BRONZE] for name in _COPIED},
        "source_id": [("raw_records", "source_id")],
        "retry_count": [(bronze.name, "reprocess_count") for bronze in BRONZE],
    },
    consumes=(*BRONZE, *REFUSING),
)

TABLES = (DEAD_LETTERS,)
