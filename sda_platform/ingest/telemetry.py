"""Segments of telemetry frames to bronze rows: the values of the headers, and the frames as they were received."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.cutting import cut_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.records import NOT_STAMPED
from sda_platform.formats.segments import SegmentMeta
from sda_platform.formats.telemetry import EMERGENCY_FLAG, TELEMETRY_FORMAT, decode_telemetry_frames


def decode(data: bytes, meta: SegmentMeta) -> pa.Table:
    """Decode a segment into columns of `telemetry_frames`, one row per frame; never raises for any bytes.

    A frame that repeats the key of another with other content is refused. Emergency traffic is not: it is marked.
    """
    records = cut_records(data, meta.format)
    decoded = decode_telemetry_frames(records.payloads)
    errors: dict[int, RecordError] = {**decoded.errors, **records.errors}
    if meta.format != TELEMETRY_FORMAT:
        error = RecordError("unknown_format", f"feed 'telemetry' does not carry {meta.format!r} records")
        errors = dict.fromkeys(range(len(records)), error)
    is_conflict = np.zeros(len(records), np.bool_)
    is_conflict[list(_conflicts(meta, len(records)))] = True
    is_emergency = (decoded.headers["flags"] & EMERGENCY_FLAG) != 0
    for row in np.flatnonzero(is_conflict & ~is_emergency).tolist():
        text = f"repeats satellite {decoded.headers['satellite_id'][row]}, sequence {decoded.headers['sequence'][row]}"
        errors.setdefault(row, RecordError("frame_conflict", f"{text} with other content"))
    is_usable = np.ones(len(records), np.bool_)
    is_usable[list(errors)] = False
    headers = decoded.headers
    values: dict[str, Any] = {
        "satellite_id": headers["satellite_id"].astype(np.int64),
        "frame_sequence": headers["sequence"].astype(np.int64),
        "station_id": headers["station_id"].astype(np.int64),
        "frame_time_ns": headers["timestamp_ms"].astype(np.int64) * 1_000_000,
        "is_emergency": is_emergency,
        "is_conflict": is_conflict,
    }
    stamped = records.received_time_ns
    columns = {
        "record_number": records.numbers,
        "received_time_ns": np.where(stamped == NOT_STAMPED, meta.sealed_time_ns, stamped),
        "payload": pa.array(records.payloads, pa.binary()),
        "error_kind": pa.array([errors[n].kind if n in errors else None for n in range(len(records))], pa.string()),
        "error": pa.array([errors[n].text if n in errors else None for n in range(len(records))], pa.string()),
        **{name: pc.if_else(pa.array(is_usable), pa.array(each), None) for name, each in values.items()},
    }
    return pa.table(columns)


def _conflicts(meta: SegmentMeta, records: int) -> Iterator[int]:
    """Yield the rows, of so many ``records``, that the collector received as conflicts."""
    row = 0
    for run in meta.origins or ():
        if run.is_conflict:
            yield from range(row, min(row + run.records, records))
        row += run.records
