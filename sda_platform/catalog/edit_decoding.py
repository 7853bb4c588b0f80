"""Segments of edits to bronze rows."""

import json
from typing import Any

import pyarrow as pa

from sda_platform.catalog.tables import CATALOG_EDITS
from sda_platform.formats.cutting import cut_records
from sda_platform.formats.edits import read_edit
from sda_platform.formats.errors import RecordError
from sda_platform.formats.records import RawRecord
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.table import LandingColumns, Provenance
from sda_platform.protocols.edits import Edit

# The reader of a segment adds the columns that all its records share.
_OF_SEGMENT = {*Provenance.to_schema().columns, *LandingColumns.to_schema().columns, "feed"} - {"record_number"}
_SCHEMA = pa.schema([field for field in CATALOG_EDITS.arrow_schema if field.name not in _OF_SEGMENT])


def decode(data: bytes, meta: SegmentMeta) -> pa.Table:
    """One row per record of the segment, in columns of `catalog_edits`; never raises for any bytes."""
    records = cut_records(data, meta.format)
    rows = []
    for row, (number, payload) in enumerate(zip(records.numbers.tolist(), records.payloads, strict=True)):
        facts: dict[str, Any] = {"record_number": number, "payload": payload}
        try:
            if row in records.errors:
                raise records.errors[row]
            facts |= facts_of(read_edit(RawRecord(number, None, payload)))
        except RecordError as error:
            facts |= {"error_kind": error.kind, "error": error.text}
        rows.append(facts)
    return pa.Table.from_pylist(rows, _SCHEMA)


def facts_of(edit: Edit) -> dict[str, Any]:
    """An edit in columns of `catalog_edits`."""
    return {
        "edit_id": edit.edit_id,
        "norad_id": edit.norad_id,
        "attribute": edit.attribute,
        "value": edit.value,
        "origin": edit.origin,
        "lamport": edit.lamport,
        "vector": json.dumps(dict(sorted(edit.vector.items()))),
        "editor": edit.editor,
        "edited_time_ns": edit.edited_time_ns,
    }


def edit_of(row: dict[str, Any]) -> Edit:
    """The edit of a row of `catalog_edits`, or of a claim."""
    return Edit(
        row["norad_id"],
        row["attribute"],
        row["value"],
        row["origin"],
        row["lamport"],
        json.loads(row["vector"]),
        row["editor"] or "",
        row["edited_time_ns"] or 0,
    )
