"""Segments of sensor readings as one Arrow table: a row for every record, good or bad.

What was measured is kept: nothing is converted to a position. Limits are physical impossibilities only
(DP5-I20). The observation id is a UUIDv5 over source kind, source id, native id, sensor time and payload hash
(erratum E1), so a reading that is delivered twice has one id.
"""

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from sda_platform.formats.decoded import Decoded
from sda_platform.formats.errors import RecordError
from sda_platform.formats.isl import decode_isl_frames
from sda_platform.formats.limits import OBSERVATION_LIMITS, note_impossible_times, note_violations
from sda_platform.formats.optical import decode_optical_records
from sda_platform.formats.radar import decode_radar_frames
from sda_platform.formats.records import FEED_FORMATS, RawRecord, split_records

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
"""Units end the names; x..vz are TEME of date, right ascension, declination topocentric in TEME of date."""

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
    ]
)

_OBSERVATION_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:observation:1").bytes

_DECODERS: Final[Mapping[str, tuple[str, Callable[[Sequence[bytes]], Decoded]]]] = {
    "radar-frames": ("radar", decode_radar_frames),
    "isl-frames": ("isl", decode_isl_frames),
    "optical-jsonl": ("optical", decode_optical_records),
}


def decode_observations(data: bytes, *, feed: str, segment_format: str, sealed_time_ns: int) -> pa.Table:
    """Every record of the segment as a row of OBSERVATION_SCHEMA; never raises for any bytes.

    A row either has `error_kind` and `error`, or a full envelope. `received_time_ns` falls back to
    `sealed_time_ns`. A feed that does not carry this format gives every record the kind `unknown_format`.
    """
    decoder = _DECODERS.get(segment_format)
    records = list(split_records(data, segment_format if decoder else ""))
    received = [sealed_time_ns if r.received_time_ns is None else r.received_time_ns for r in records]
    if decoder is None or segment_format not in FEED_FORMATS.get(feed, ()):
        text = f"feed {feed!r} does not carry {segment_format!r} readings"
        return _table(records, [RecordError("unknown_format", text)] * len(records), received, {})
    source_kind, decode = decoder
    decoded = decode([b"" if r.error_kind else r.payload for r in records])
    errors = [
        RecordError(r.error_kind, r.error or "") if r.error_kind else error
        for r, error in zip(records, decoded.errors, strict=True)
    ]
    if decoded.received_time_ns is not None:
        stamped = zip(decoded.received_time_ns, received, strict=True)
        received = [theirs if theirs is not None else ours for theirs, ours in stamped]
    note_violations(errors, decoded.values | decoded.checks, OBSERVATION_LIMITS)
    note_impossible_times(errors, decoded.sensor_time_ns, np.array(received, dtype=np.int64))
    return _table(records, errors, received, _envelope(source_kind, decoded, records, errors))


def _envelope(
    source_kind: str, decoded: Decoded, records: Sequence[RawRecord], errors: Sequence[RecordError | None]
) -> dict[str, pa.Array]:
    bad = np.fromiter((error is not None for error in errors), bool, len(errors))
    sensor_time = decoded.sensor_time_ns.astype(np.int64)
    identity = decoded.identity or [record.payload for record in records]
    ids = [
        None if is_bad else observation_id(source_kind, source, native, time, payload)
        for is_bad, source, native, time, payload in zip(
            bad.tolist(),
            decoded.source_id,
            decoded.native_track_id,
            sensor_time.tolist(),
            identity,
            strict=True,
        )
    ]
    columns: dict[str, pa.Array] = {
        "observation_id": pa.array(ids, pa.string()),
        "source_kind": pa.array([source_kind] * len(errors), pa.string()),
        "sensor_time_ns": pa.array(sensor_time, pa.int64(), mask=bad),
    }
    for name in ("source_id", "native_track_id", "clock_quality"):
        columns[name] = pa.array(np.array(getattr(decoded, name), dtype=object), pa.string(), mask=bad)
    for name, values in decoded.values.items():
        columns[name] = pa.array(values, pa.float64(), mask=bad)
    return columns


def observation_id(source_kind: str, source_id: str, native_id: str, sensor_time_ns: int, payload: bytes) -> str:
    """The UUIDv5 (as `uuid.uuid5` would give) of a reading's identity; equal readings have equal ids."""
    digest = hashlib.sha256(payload).hexdigest()
    name = f"{source_kind}|{source_id}|{native_id}|{sensor_time_ns}|{digest}".encode()
    value = bytearray(hashlib.sha1(_OBSERVATION_NAMESPACE + name, usedforsecurity=False).digest()[:16])
    value[6] = value[6] & 0x0F | 0x50
    value[8] = value[8] & 0x3F | 0x80
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _table(
    records: Sequence[RawRecord],
    errors: Sequence[RecordError | None],
    received_time_ns: Sequence[int],
    envelope: Mapping[str, pa.Array],
) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "record_number": pa.array([r.number for r in records], pa.int64()),
        "payload": pa.array([r.payload for r in records], pa.binary()),
        "error_kind": pa.array([error and error.kind for error in errors], pa.string()),
        "error": pa.array([error and error.text for error in errors], pa.string()),
        "received_time_ns": pa.array(received_time_ns, pa.int64()),
        **envelope,
    }
    arrays = [columns[f.name] if f.name in columns else pa.nulls(len(records), f.type) for f in OBSERVATION_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=OBSERVATION_SCHEMA)
