"""The telemetry frame of a satellite: a header of 24 bytes, little-endian, and the payload, whose length it states.

| offset | field | type |
|---|---|---|
| 0 | timestamp_ms, UTC since the Unix epoch, by the satellite's clock | u64 |
| 8 | sequence, counted by the satellite | u64 |
| 16 | satellite_id | u32 |
| 20 | byte_count of the payload | u16 |
| 22 | station_id of the station that received it | u8 |
| 23 | flags: 0x80 the station found the frame invalid, 0x40 emergency traffic | u8 |

On the TCP wire a frame follows a u32 big-endian length. Fields are ordered by falling alignment, so that the header has
no padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sda_platform.formats.errors import RecordError
from sda_platform.formats.limits import LAST_TIME_NS

TELEMETRY_FORMAT: Final = "telemetry-frames"
TELEMETRY_HEADER: Final = np.dtype(
    [
        ("timestamp_ms", "<u8"),
        ("sequence", "<u8"),
        ("satellite_id", "<u4"),
        ("byte_count", "<u2"),
        ("station_id", "u1"),
        ("flags", "u1"),
    ],
    align=True,
)
TELEMETRY_HEADER_BYTES: Final = TELEMETRY_HEADER.itemsize
INVALID_FLAG: Final = 0x80
EMERGENCY_FLAG: Final = 0x40
assert TELEMETRY_HEADER_BYTES == 24  # F5.1


def encode_telemetry_frames(
    *,
    timestamp_ms: NDArray[np.integer],
    sequence: NDArray[np.integer],
    satellite_id: NDArray[np.integer],
    station_id: NDArray[np.integer],
    flags: NDArray[np.integer],
    payloads: Sequence[bytes],
) -> list[bytes]:
    """Encode one frame per row of the (n,) arrays; ``byte_count`` follows from the payload.

    Raises ValueError for a payload of more than 65,535 bytes, which the header cannot express.
    """
    if any(len(payload) > np.iinfo(np.uint16).max for payload in payloads):
        raise ValueError("a telemetry payload has at most 65,535 bytes")
    headers = np.zeros(len(payloads), TELEMETRY_HEADER)
    headers["timestamp_ms"] = timestamp_ms
    headers["sequence"] = sequence
    headers["satellite_id"] = satellite_id
    headers["byte_count"] = [len(payload) for payload in payloads]
    headers["station_id"] = station_id
    headers["flags"] = flags
    data, size = headers.tobytes(), TELEMETRY_HEADER_BYTES
    return [data[row * size : (row + 1) * size] + payload for row, payload in enumerate(payloads)]


@dataclass(frozen=True, slots=True)
class DecodedTelemetry:
    """The headers (n,) of n frames, and why some cannot be used, by row; their headers mean nothing."""

    headers: NDArray[np.void]
    errors: dict[int, RecordError]


def decode_telemetry_frames(payloads: Sequence[bytes]) -> DecodedTelemetry:
    """Headers of every frame; one that the station flagged, or of another length than stated, is an error."""
    blank, size = bytes(TELEMETRY_HEADER_BYTES), TELEMETRY_HEADER_BYTES
    headers = np.frombuffer(
        b"".join(payload[:size] if len(payload) >= size else blank for payload in payloads), TELEMETRY_HEADER
    )
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    errors: dict[int, RecordError] = {}
    for row in np.flatnonzero(lengths != headers["byte_count"].astype(np.int64) + size).tolist():
        expected = f"{size} and {headers['byte_count'][row]} of payload" if lengths[row] >= size else f"at least {size}"
        errors[row] = RecordError("bad_length", f"telemetry frame has {lengths[row]} bytes, must have {expected}")
    for row in np.flatnonzero((headers["flags"] & INVALID_FLAG) != 0).tolist():
        errors.setdefault(row, RecordError("bad_field", "flags has 0x80: the station found the frame invalid"))
    for row in np.flatnonzero(headers["sequence"] > np.iinfo(np.int64).max).tolist():
        errors.setdefault(row, RecordError("out_of_range", f"sequence is {headers['sequence'][row]}, at most 2^63 - 1"))
    latest_ms = LAST_TIME_NS // 1_000_000
    for row in np.flatnonzero(headers["timestamp_ms"] > latest_ms).tolist():
        text = f"timestamp_ms is {headers['timestamp_ms'][row]}, must be before 2100"
        errors.setdefault(row, RecordError("out_of_range", text))
    return DecodedTelemetry(headers, errors)
