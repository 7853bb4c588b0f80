"""Frames in one buffer, as starts and lengths: cut, chosen and packed without an object per frame.

The kernels are compiled. They read and write (n,) arrays that the caller provides, so that a batch of any size
allocates nothing per frame.
"""

from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sda_platform.formats.framing.container import MAX_PAYLOAD_BYTES, RECORD_HEADER

LENGTH_BYTES: Final = 4
_CUT, _TOO_LONG = 0, 1


@dataclass(frozen=True, slots=True)
class Frames:
    """n frames in ``buffer`` (uint8): row k is ``buffer[starts[k] : starts[k] + lengths[k]]``; both arrays int64."""

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def where(self, chosen: NDArray[Any]) -> "Frames":
        """Return the rows that ``chosen`` selects: a mask (n,) or row numbers, in that order; no payload is moved."""
        return Frames(self.buffer, self.starts[chosen], self.lengths[chosen])

    def payload(self, row: int) -> bytes:
        """One frame's bytes."""
        return bytes(self.buffer[self.starts[row] : self.starts[row] + self.lengths[row]])

    def packed(self, received_time_ns: int) -> bytes:
        """All frames as a container of records (`formats.records`), stamped with the time of reception."""
        out = np.empty(int(self.lengths.sum()) + RECORD_HEADER.size * len(self), np.uint8)
        _pack(self.buffer, self.starts, self.lengths, np.uint64(received_time_ns), out)
        return out.tobytes()


@dataclass(frozen=True, slots=True)
class Cut:
    """What was cut from a stretch of a stream: frames, where the rest begins, and whether that violates the framing."""

    frames: Frames
    rest: int
    is_violated: bool


def frames_of(payloads: list[bytes]) -> Frames:
    """Separate payloads as frames of one buffer."""
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]]) if payloads else lengths
    return Frames(np.frombuffer(b"".join(payloads), np.uint8), starts, lengths)


def cut_stream(buffer: NDArray[np.uint8], *, is_big_endian: bool, max_bytes: int = MAX_PAYLOAD_BYTES) -> Cut:
    """Cut a stretch of a length-prefixed stream that begins at a frame.

    A length above ``max_bytes`` ends the cut there, as a violation, before anything of that size is allocated.
    """
    most = len(buffer) // LENGTH_BYTES
    starts, lengths = np.empty(most, np.int64), np.empty(most, np.int64)
    count, rest, ended = _cut(buffer, is_big_endian, max_bytes, starts, lengths)
    return Cut(Frames(buffer, starts[:count], lengths[:count]), rest, ended == _TOO_LONG)


@numba.njit(cache=True, nogil=True)
def load_u32(buffer: Any, at: int) -> Any:
    """The little-endian u32 at ``at``."""
    return (
        np.uint32(buffer[at])
        | (np.uint32(buffer[at + 1]) << np.uint32(8))
        | (np.uint32(buffer[at + 2]) << np.uint32(16))
        | (np.uint32(buffer[at + 3]) << np.uint32(24))
    )


@numba.njit(cache=True, nogil=True)
def load_u64(buffer: Any, at: int) -> Any:
    """The little-endian u64 at ``at``."""
    return np.uint64(load_u32(buffer, at)) | (np.uint64(load_u32(buffer, at + 4)) << np.uint64(32))


@numba.njit(cache=True, nogil=True)
def _cut(buffer: Any, is_big_endian: bool, max_bytes: int, starts: Any, lengths: Any) -> Any:
    count, at, size = 0, 0, len(buffer)
    while at + 4 <= size:
        length: Any = np.int64(load_u32(buffer, at))
        if is_big_endian:
            length = (
                ((length & 0xFF) << 24) | ((length & 0xFF00) << 8) | ((length >> 8) & 0xFF00) | ((length >> 24) & 0xFF)
            )
        if length > max_bytes:
            return count, at, 1
        if at + 4 + length > size:
            break
        starts[count], lengths[count] = at + 4, length
        count += 1
        at += 4 + length
    return count, at, 0


@numba.njit(cache=True, nogil=True)
def _pack(buffer: Any, starts: Any, lengths: Any, received_time_ns: Any, out: Any) -> None:
    at = 0
    for row in range(len(starts)):
        length = lengths[row]
        for byte in range(4):
            out[at + byte] = np.uint8((length >> (8 * byte)) & 0xFF)
        for byte in range(8):
            out[at + 4 + byte] = np.uint8((received_time_ns >> np.uint64(8 * byte)) & np.uint64(0xFF))
        at += 12
        for byte in range(length):
            out[at + byte] = buffer[starts[row] + byte]
        at += length
