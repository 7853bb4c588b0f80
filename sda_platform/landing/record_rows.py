"""Segments of which each record is read by itself: one row per record, and the usable rows of pending segments."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from sda_platform.formats.cutting import split_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.markings import MARKS
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.table import LandingColumns, Provenance, Table
from sda_platform.landing.zone import LandingZone

SegmentDecoder = Callable[[bytes, SegmentMeta], pa.Table]
# The reader of a segment adds the columns that all its records share.
_OF_RECORD = {"record_number", "payload", "error_kind", "error", *MARKS}
_OF_SEGMENT = {*Provenance.to_schema().columns, *LandingColumns.to_schema().columns} - _OF_RECORD


def record_decoder(table: Table, zone: str, facts: Callable[[Any], Mapping[str, Any]]) -> SegmentDecoder:
    """A decoder of segments that the formats of ``zone`` can read, for `landing.decoding.one_by_one`.

    It gives one row per record, in columns of ``table``, and raises for no bytes. ``facts`` gives the columns of what
    a record holds. Where that must be refused it raises RecordError, which is stated with the record's line. So is
    a record of another object than it was taken for: what a designator names may have changed.
    """
    schema = pa.schema([field for field in table.arrow_schema if field.name not in _OF_SEGMENT])

    def decode(data: bytes, meta: SegmentMeta) -> pa.Table:
        records = list(split_records(data, meta.format))
        values, errors = read_records(records, meta.format, zone)
        taken_for = _taken_for(meta)
        rows = []
        for number, record in enumerate(records):
            row: dict[str, Any] = {"record_number": record.number, "payload": record.payload}
            try:
                if number in errors:
                    raise errors[number]
                found = facts(values[number])
                _require_taken(found, taken_for[number] if number < len(taken_for) else None)
                row |= found
            except RecordError as error:
                row |= {"error_kind": error.kind, "error": error_text(record, error)}
            rows.append(row)
        return pa.Table.from_pylist(rows, schema)

    return decode


def _taken_for(meta: SegmentMeta) -> list[Collection[int] | None]:
    """Return for each record the objects for which its sender was let in; None: all."""
    return [run.norad_ids for run in meta.origins or () for _ in range(run.records)]


def _require_taken(facts: Mapping[str, Any], taken_for: Collection[int] | None) -> None:
    norad_id = facts.get("norad_id")
    if taken_for is not None and norad_id not in taken_for:
        objects = ", ".join(map(str, taken_for))
        raise RecordError("out_of_range", f"it is now of object {norad_id}, and was taken for {objects}")


def pending_rows(zone: LandingZone, decode: SegmentDecoder) -> list[dict[str, Any]]:
    """Return the usable rows of the zone's sound pending segments.

    A segment may be consumed at any moment. Who also reads the table must read it after this, or misses such a segment.
    """
    rows = []
    for segment in zone.pending():
        loaded = zone.read(segment)
        if loaded.defect is None and loaded.meta is not None:
            rows += usable_rows(decode(loaded.data, loaded.meta))
    return rows


def usable_rows(decoded: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of records that were not refused."""
    return [row for row in decoded.to_pylist() if row["error_kind"] is None]
