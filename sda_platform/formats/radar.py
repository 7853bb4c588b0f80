"""The radar datagram: 60 bytes, little-endian, packed (erratum E2: the listed fields are 60 bytes, not 64).

| offset | field | type |
|---|---|---|
| 0 | array_id | u32 |
| 4 | target_track_id (the array's own numbering) | u32 |
| 8 | timestamp_ns, UTC since the Unix epoch | u64 |
| 16 | range_m | f64 |
| 24 | range_rate_m_s, positive when receding | f64 |
| 32 | azimuth_rad, from north over east | f64 |
| 40 | elevation_rad | f64 |
| 48 | sigma_range_m | f32 |
| 52 | sigma_rate_m_s | f32 |
| 56 | reserved, written as zero, not read | 4 bytes |

The frame carries no angle sigma (the sensor registry does) and no clock quality: arrays are GPS-disciplined.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sda_platform.formats.decoded import Decoded, prefixed
from sda_platform.formats.errors import RecordError

RADAR_FRAME: Final = np.dtype(
    [
        ("array_id", "<u4"),
        ("target_track_id", "<u4"),
        ("timestamp_ns", "<u8"),
        ("range_m", "<f8"),
        ("range_rate_m_s", "<f8"),
        ("azimuth_rad", "<f8"),
        ("elevation_rad", "<f8"),
        ("sigma_range_m", "<f4"),
        ("sigma_rate_m_s", "<f4"),
        ("reserved", "V4"),
    ]
)
RADAR_FRAME_BYTES: Final = RADAR_FRAME.itemsize


def encode_radar_frames(
    *,
    array_id: NDArray[np.integer],
    target_track_id: NDArray[np.integer],
    timestamp_ns: NDArray[np.integer],
    range_m: NDArray[np.float64],
    range_rate_m_s: NDArray[np.float64],
    azimuth_rad: NDArray[np.float64],
    elevation_rad: NDArray[np.float64],
    sigma_range_m: NDArray[np.floating],
    sigma_rate_m_s: NDArray[np.floating],
) -> list[bytes]:
    """Encode one 60-byte payload per row of the (n,) arrays."""
    frames = np.zeros(len(timestamp_ns), RADAR_FRAME)
    frames["array_id"] = array_id
    frames["target_track_id"] = target_track_id
    frames["timestamp_ns"] = timestamp_ns
    frames["range_m"] = range_m
    frames["range_rate_m_s"] = range_rate_m_s
    frames["azimuth_rad"] = azimuth_rad
    frames["elevation_rad"] = elevation_rad
    frames["sigma_range_m"] = sigma_range_m
    frames["sigma_rate_m_s"] = sigma_rate_m_s
    data = frames.tobytes()
    return [data[start : start + RADAR_FRAME_BYTES] for start in range(0, len(data), RADAR_FRAME_BYTES)]


def decode_radar_frames(payloads: Sequence[bytes]) -> Decoded:
    """Columns of every payload; a payload of another length is a `bad_length` row."""
    errors = {row: _bad_length(payload) for row, payload in enumerate(payloads) if len(payload) != RADAR_FRAME_BYTES}
    blank = bytes(RADAR_FRAME_BYTES)
    whole = payloads if not errors else [blank if row in errors else p for row, p in enumerate(payloads)]
    frames = np.frombuffer(b"".join(whole), RADAR_FRAME)
    return Decoded(
        errors=errors,
        source_id=prefixed("radar-", frames["array_id"]),
        native_track_id=prefixed("", frames["target_track_id"]),
        sensor_time_ns=frames["timestamp_ns"].astype(np.uint64),
        values={
            "range_m": frames["range_m"].astype(np.float64),
            "range_sigma_m": frames["sigma_range_m"].astype(np.float64),
            "range_rate_m_s": frames["range_rate_m_s"].astype(np.float64),
            "range_rate_sigma_m_s": frames["sigma_rate_m_s"].astype(np.float64),
            "azimuth_rad": frames["azimuth_rad"].astype(np.float64),
            "elevation_rad": frames["elevation_rad"].astype(np.float64),
        },
        clock_quality=pa.repeat("gps_locked", len(payloads)),
    )


def _bad_length(payload: bytes) -> RecordError:
    return RecordError("bad_length", f"radar frame has {len(payload)} bytes, must have {RADAR_FRAME_BYTES}")
