"""Segments of any landing zone of observations to bronze rows."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sda_platform.formats.cutting import split_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.identity import observation_ids
from sda_platform.formats.limits import note_impossible_times
from sda_platform.formats.observations import OBSERVATION_SCHEMA, decode_segments
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.segments import SegmentMeta
from sda_platform.ingest.feeds import TRACKING_FEED
from sda_platform.ingest.tracking import TrackingObservation, observation_of

_SEGMENT: Final = "segment"


def decode(segments: Sequence[tuple[bytes, SegmentMeta]]) -> pa.Table:
    """Return the rows of several segments in columns of OBSERVATION_SCHEMA; ``segment`` counts from 0.

    Never raises for any bytes.
    """
    tracking = [number for number, (_, meta) in enumerate(segments) if meta.feed == TRACKING_FEED.name]
    frames = [number for number in range(len(segments)) if number not in set(tracking)]
    rows = decode_segments([segments[number] for number in frames])
    numbers = pa.array(np.array(frames, np.int64)).take(rows[_SEGMENT])
    tables = [rows.set_column(rows.column_names.index(_SEGMENT), _SEGMENT, numbers)]
    for number in tracking:
        table = decode_tracking(*segments[number])
        tables.append(table.append_column(_SEGMENT, pa.array(np.full(table.num_rows, number))))
    return pa.concat_tables(tables)


def decode_tracking(data: bytes, meta: SegmentMeta) -> pa.Table:
    """Decode a segment of tracking data, one row per record, with an error if it is no observation. Never raises."""
    records = list(split_records(data, meta.format))
    values, errors = read_records(records, meta.format, TRACKING_FEED.name)
    found: dict[int, TrackingObservation] = {}
    for row, value in enumerate(values):
        if row not in errors:
            try:
                found[row] = observation_of(value)
            except RecordError as error:
                errors[row] = error.alone()
    times = np.array([found[row].columns["sensor_time_ns"] if row in found else 0 for row in range(len(records))])
    note_impossible_times(errors, times.astype(np.uint64), np.full(len(records), meta.sealed_time_ns, np.int64))
    ids = _ids({row: each for row, each in found.items() if row not in errors})
    rows: list[dict[str, Any]] = []
    for row, record in enumerate(records):
        facts = {"record_number": record.number, "payload": record.payload, "received_time_ns": meta.sealed_time_ns}
        if row in errors:
            source = found[row].columns["source_id"] if row in found else None
            failure = {"error_kind": errors[row].kind, "error": error_text(record, errors[row]), "source_id": source}
            rows.append(facts | failure)
        else:
            rows.append(facts | dict(found[row].columns) | {"observation_id": ids[row]})
    return pa.Table.from_pylist(rows, OBSERVATION_SCHEMA)


def _ids(found: dict[int, TrackingObservation]) -> dict[int, str]:
    """Return the id of each observation, by row: of what was measured, not of the message that brings it."""
    ids: dict[int, str] = {}
    for kind in sorted({each.columns["source_kind"] for each in found.values()}):
        rows = [row for row, each in found.items() if each.columns["source_kind"] == kind]
        source, native, time_ns = (
            pa.array([found[row].columns[name] for row in rows])
            for name in ("source_id", "native_track_id", "sensor_time_ns")
        )
        named = observation_ids(kind, source, native, time_ns, [found[row].identity for row in rows])
        ids |= dict(zip(rows, named.to_pylist(), strict=True))
    return ids
