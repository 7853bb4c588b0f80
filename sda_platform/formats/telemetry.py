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
no padding (F5.1, F5.17).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
    """One frame per row of the (n,) arrays; ``byte_count`` follows from the payload.

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
