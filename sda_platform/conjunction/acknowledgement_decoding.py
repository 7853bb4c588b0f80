"""Segments of acknowledgements as rows of `alert_acknowledgements`."""

from typing import Any

import pyarrow as pa

from sda_platform.conjunction.tables import ALERT_ACKNOWLEDGEMENTS
from sda_platform.formats.acknowledgements import read_acknowledgement
from sda_platform.formats.cutting import cut_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.records import RawRecord
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.table import LandingColumns, Provenance

# What all records of a segment share is added by whoever reads the segment.
_OF_SEGMENT = {*Provenance.to_schema().columns, *LandingColumns.to_schema().columns, "feed"} - {"record_number"}
_SCHEMA = pa.schema([field for field in ALERT_ACKNOWLEDGEMENTS.arrow_schema if field.name not in _OF_SEGMENT])


def decode(data: bytes, meta: SegmentMeta) -> pa.Table:
    """One row per record of the segment, in columns of `alert_acknowledgements`; never raises for any bytes."""
    records = cut_records(data, meta.format)
    rows = []
    for row, (number, payload) in enumerate(zip(records.numbers.tolist(), records.payloads, strict=True)):
        facts: dict[str, Any] = {"record_number": number, "payload": payload}
        try:
            if row in records.errors:
                raise records.errors[row]
            facts |= vars(read_acknowledgement(RawRecord(number, None, payload)))
        except RecordError as error:
            facts |= {"error_kind": error.kind, "error": error.text}
        rows.append(facts)
    return pa.Table.from_pylist(rows, _SCHEMA)
