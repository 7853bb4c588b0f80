"""Segments of sensor readings as one Arrow table: a row for every record, good or bad.

What was measured is kept: nothing is converted to a position. Limits are physical impossibilities only. A reading that
is delivered twice has one observation id (`identity`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.cutting import cut_records, join_cuts
from sda_platform.formats.decoded import Decoded
from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import ObservationFormat
from sda_platform.formats.identity import observation_ids
from sda_platform.formats.limits import OBSERVATION_LIMITS, note_impossible_times, note_violations
from sda_platform.formats.plain_text import rows_with_controls
from sda_platform.formats.records import NOT_STAMPED, CutRecords
from sda_platform.formats.registry import format_named
from sda_platform.formats.segments import SegmentMeta

MEASUREMENT_COLUMNS: Final[tuple[str, ...]] = (
    "range_m",
    "range_sigma_m",
    "range_rate_m_s",
    "range_rate_sigma_m_s",
    "azimuth_rad",
    "elevation_rad",
    "right_ascension_rad",
    "declination_rad",
    "angle_sigma_rad",
    "x_m",
    "y_m",
    "z_m",
    "vx_m_s",
    "vy_m_s",
    "vz_m_s",
    "position_sigma_m",
    "velocity_sigma_m_s",
)
"""Units end the names; x..vz are TEME of date. Right ascension and declination are topocentric, as reported."""

OBSERVATION_SCHEMA: Final = pa.schema(
    [
        pa.field("record_number", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("error_kind", pa.string()),
        pa.field("error", pa.string()),
        pa.field("observation_id", pa.string()),
        pa.field("source_kind", pa.string()),
        pa.field("source_id", pa.string()),
        pa.field("native_track_id", pa.string()),
        pa.field("sensor_time_ns", pa.int64()),
        pa.field("received_time_ns", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64()) for name in MEASUREMENT_COLUMNS),
        pa.field("clock_quality", pa.string()),
        pa.field("clock_age_s", pa.float64()),
        *(pa.field(name, pa.string()) for name in ANGLE_REFERENCES),
    ]
)


def decode_segments(segments: Sequence[tuple[bytes, SegmentMeta]]) -> pa.Table:
    """Decode several segments of one feed and format together; column ``segment`` counts from 0."""
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (_, meta) in enumerate(segments):
        alike[meta.feed, meta.format].append(number)
    tables = [OBSERVATION_SCHEMA.append(pa.field("segment", pa.int64())).empty_table()]
    for (feed, segment_format), numbers in alike.items():
        cuts = [cut_observations(segments[number][0], segment_format) for number in numbers]
        lengths = [len(cut) for cut in cuts]
        sealed = np.repeat(np.array([segments[n][1].sealed_time_ns for n in numbers], np.int64), lengths)
        rows = decode_cut_observations(join_cuts(cuts), feed=feed, segment_format=segment_format, sealed_time_ns=sealed)
        tables.append(rows.append_column("segment", pa.array(np.repeat(numbers, lengths))))
    return pa.concat_tables(tables)


def cut_observations(data: bytes, segment_format: str) -> CutRecords:
    """Return the segment's records, not yet decoded; where the format is none of readings, one faulty record."""
    return cut_records(data, segment_format if isinstance(format_named(segment_format), ObservationFormat) else "")


def decode_cut_observations(
    records: CutRecords, *, feed: str, segment_format: str, sealed_time_ns: NDArray[np.int64]
) -> pa.Table:
    """Decode cut records of several segments of one feed and format; ``sealed_time_ns`` is (n,)."""
    received = pa.array(np.where(records.received_time_ns == NOT_STAMPED, sealed_time_ns, records.received_time_ns))
    known = format_named(segment_format)
    if not isinstance(known, ObservationFormat) or known.zone != feed:
        error = RecordError("unknown_format", f"feed {feed!r} does not carry {segment_format!r} readings")
        return _table(records, dict.fromkeys(range(len(records)), error), received, {})
    cut = [b"" if row in records.errors else p for row, p in enumerate(records.payloads)] if records.errors else None
    decoded = known.decode(records.payloads if cut is None else cut)
    errors = {**(_controls(decoded) if known.framing.is_text else {}), **decoded.errors, **records.errors}
    unread = tuple(errors)
    if decoded.received_time_ns is not None:
        received = pc.coalesce(decoded.received_time_ns, received)
    note_violations(errors, decoded.values | decoded.checks, OBSERVATION_LIMITS)
    note_impossible_times(errors, decoded.sensor_time_ns, received.to_numpy())
    return _table(records, errors, received, _envelope(known.source_kind, decoded, records, errors, unread))


def _controls(decoded: Decoded) -> dict[int, RecordError]:
    texts = {name: getattr(decoded, name) for name in ("source_id", "native_track_id", "clock_quality")}
    return rows_with_controls({**texts, **decoded.angle_references})


def _envelope(
    source_kind: str,
    decoded: Decoded,
    records: CutRecords,
    errors: Mapping[int, RecordError],
    unread: Sequence[int],
) -> dict[str, pa.Array]:
    """Return the columns of what was read; of a row in ``errors`` only the source, of one of ``unread`` not
    even that.
    """
    sensor_time = pa.array(decoded.sensor_time_ns.astype(np.int64))
    identity = records.payloads if decoded.identity is None else decoded.identity
    columns: dict[str, pa.Array] = {
        "observation_id": observation_ids(
            source_kind, decoded.source_id, decoded.native_track_id, sensor_time, identity
        ),
        "source_id": decoded.source_id,
        "native_track_id": decoded.native_track_id,
        "sensor_time_ns": sensor_time,
        "clock_quality": decoded.clock_quality,
        **decoded.angle_references,
        **{name: pa.array(values, pa.float64(), from_pandas=True) for name, values in decoded.values.items()},
    }
    if errors:
        good = pa.array(~_rows_of(errors, len(records)))
        columns = {name: pc.if_else(good, column, None) for name, column in columns.items()}
        columns["source_id"] = pc.if_else(pa.array(~_rows_of(unread, len(records))), decoded.source_id, None)
    return {**columns, "source_kind": pa.repeat(source_kind, len(records))}


def _rows_of(errors: Iterable[int], count: int) -> NDArray[np.bool_]:
    has_error = np.zeros(count, np.bool_)
    has_error[list(errors)] = True
    return has_error


def _table(
    records: CutRecords, errors: Mapping[int, RecordError], received_time_ns: pa.Array, envelope: Mapping[str, pa.Array]
) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "record_number": pa.array(records.numbers),
        "payload": pa.array(records.payloads, pa.binary()),
        "received_time_ns": received_time_ns,
        **envelope,
    }
    if errors:
        row_errors = [errors.get(row) for row in range(len(records))]
        columns["error_kind"] = pa.array([error and error.kind for error in row_errors], pa.string())
        columns["error"] = pa.array([error and error.text for error in row_errors], pa.string())
    arrays = [columns[f.name] if f.name in columns else pa.nulls(len(records), f.type) for f in OBSERVATION_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=OBSERVATION_SCHEMA)
