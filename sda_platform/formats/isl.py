"""The inter-satellite-link beacon body, version 1: 80 bytes, little-endian, packed (layout ours).

| offset | field | type |
|---|---|---|
| 0 | version, 1 | u16 |
| 2 | clock kind: 0 unknown, 1 gps_locked, 2 ntp_synced, 3 onboard_drift | u8 |
| 3 | reserved, zero | u8 |
| 4 | norad_id of the satellite that reports itself | u32 |
| 8 | timestamp_ns, UTC since the Unix epoch, by that satellite's clock | u64 |
| 16 | position_m, TEME of date | 3 x f64 |
| 40 | velocity_m_s, TEME of date | 3 x f64 |
| 64 | position_sigma_m, per axis | f32 |
| 68 | velocity_sigma_m_s, per axis | f32 |
| 72 | clock_age_s since its last synchronisation | f32 |
| 76 | reserved, zero | u32 |

On the TCP wire a body follows a u32 little-endian length, as in the segment container.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sda_platform.formats.decoded import Decoded, prefixed
from sda_platform.formats.errors import RecordError

ISL_VERSION: Final = 1
CLOCK_KINDS: Final[tuple[str, ...]] = ("unknown", "gps_locked", "ntp_synced", "onboard_drift")
ISL_FRAME: Final = np.dtype(
    [
        ("version", "<u2"),
        ("clock_kind", "u1"),
        ("reserved_1", "V1"),
        ("norad_id", "<u4"),
        ("timestamp_ns", "<u8"),
        ("position_m", "<f8", (3,)),
        ("velocity_m_s", "<f8", (3,)),
        ("position_sigma_m", "<f4"),
        ("velocity_sigma_m_s", "<f4"),
        ("clock_age_s", "<f4"),
        ("reserved_2", "V4"),
    ]
)
ISL_FRAME_BYTES: Final = ISL_FRAME.itemsize


def encode_isl_frames(
    *,
    norad_id: NDArray[np.integer],
    timestamp_ns: NDArray[np.integer],
    position_m: NDArray[np.float64],
    velocity_m_s: NDArray[np.float64],
    position_sigma_m: NDArray[np.floating],
    velocity_sigma_m_s: NDArray[np.floating],
    clock_quality: Sequence[str],
    clock_age_s: NDArray[np.floating],
) -> list[bytes]:
    """Encode one 80-byte payload per row; vectors are (n, 3) TEME. ValueError: unknown clock quality."""
    frames = np.zeros(len(timestamp_ns), ISL_FRAME)
    frames["version"] = ISL_VERSION
    frames["clock_kind"] = [CLOCK_KINDS.index(kind) for kind in clock_quality]
    frames["norad_id"] = norad_id
    frames["timestamp_ns"] = timestamp_ns
    frames["position_m"] = position_m
    frames["velocity_m_s"] = velocity_m_s
    frames["position_sigma_m"] = position_sigma_m
    frames["velocity_sigma_m_s"] = velocity_sigma_m_s
    frames["clock_age_s"] = clock_age_s
    data = frames.tobytes()
    return [data[start : start + ISL_FRAME_BYTES] for start in range(0, len(data), ISL_FRAME_BYTES)]


def decode_isl_frames(payloads: Sequence[bytes]) -> Decoded:
    """Columns of every payload; wrong length, version or clock kind make an error row."""
    errors = {row: error for row, payload in enumerate(payloads) if (error := _frame_error(payload))}
    blank = bytes(ISL_FRAME_BYTES)
    whole = payloads if not errors else [blank if row in errors else p for row, p in enumerate(payloads)]
    frames = np.frombuffer(b"".join(whole), ISL_FRAME)
    position, velocity = frames["position_m"].astype(np.float64), frames["velocity_m_s"].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        checks = {
            "geocentric_distance_m": np.sqrt(np.sum(position**2, axis=1)),
            "speed_m_s": np.sqrt(np.sum(velocity**2, axis=1)),
        }
    vectors = {name: position[:, axis] for axis, name in enumerate(("x_m", "y_m", "z_m"))}
    vectors |= {name: velocity[:, axis] for axis, name in enumerate(("vx_m_s", "vy_m_s", "vz_m_s"))}
    return Decoded(
        errors=errors,
        source_id=prefixed("isl-", frames["norad_id"]),
        native_track_id=prefixed("", frames["norad_id"]),
        sensor_time_ns=frames["timestamp_ns"].astype(np.uint64),
        values=vectors
        | {
            "position_sigma_m": frames["position_sigma_m"].astype(np.float64),
            "velocity_sigma_m_s": frames["velocity_sigma_m_s"].astype(np.float64),
            "clock_age_s": frames["clock_age_s"].astype(np.float64),
        },
        clock_quality=pa.array(CLOCK_KINDS).take(pa.array(frames["clock_kind"])),
        checks=checks,
    )


def _frame_error(payload: bytes) -> RecordError | None:
    if len(payload) != ISL_FRAME_BYTES:
        return RecordError("bad_length", f"ISL frame has {len(payload)} bytes, must have {ISL_FRAME_BYTES}")
    version = int.from_bytes(payload[:2], "little")
    if version != ISL_VERSION:
        return RecordError("unknown_format", f"ISL frame version is {version}, only {ISL_VERSION} is known")
    if payload[2] >= len(CLOCK_KINDS):
        return RecordError("out_of_range", f"clock kind is {payload[2]}, must be at most {len(CLOCK_KINDS) - 1}")
    return None
