"""The packet processor: telemetry frames validated, de-duplicated and put in order by what they hold alone.

A batch stays in the buffer in which it was received. The result is row numbers: nothing is copied, and what is
allocated depends on the batch, never on a frame. Duplicates are recognised across batches, as a station that
reconnects sends again. The memory of keys is two generations of a table of fixed size. When the younger is half full
the older is cleared, so that a key is kept for at least ``remembered`` later frames.

Places and marks of frames are hashed with secret factors of the process. Else a sender could compute frames that all
take one place, which costs seconds a batch, or one that passes for a duplicate of another. Two frames have one mark by
chance, in one of 2^31 pairs, whatever they hold (multilinear hashing: Lemire and Kaser, doi:10.1093/comjnl/bxt070).

A satellite that restarts counts from the beginning. Frames of one sequence whose times are more than `EPOCH_MS` apart
are therefore of two epochs of the counter, and both are new. No computer restarts in less, and no two receivers of one
frame state times so far apart.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sda_platform.edge.frames import Frames, load_u32, load_u64
from sda_platform.edge.gaps import EPOCH_MS, SequenceGaps, mixed
from sda_platform.formats.telemetry import EMERGENCY_FLAG, INVALID_FLAG, TELEMETRY_HEADER_BYTES

MAX_BATCH: Final = 10_000
_STRETCH_BITS: Final = 20  # of 2^20 ms: a frame in fifty is close to an edge
_PLACE_FACTORS: Final = 6
# Of the number of bytes, of each four bytes of the longest payload, and of bytes that are left.
_FACTORS: Final = _PLACE_FACTORS + 2 + 2**16 // 4 + 8
_EMERGENCY, _ROUTINE, _DUPLICATE, _CONFLICT, _INVALID, _URGENT_CONFLICT = range(6)


class BatchTooLarge(ValueError):
    """A batch has more frames than the processor takes; the caller splits it."""


@dataclass(frozen=True, slots=True)
class Processed:
    """Row numbers of a batch: each frame is in exactly one of the six.

    ``emergency`` and ``routine`` ascend in `timestamp_ms`, then satellite, then sequence. ``duplicates`` repeat a frame
    whole, but for the station that received it. ``conflicts`` repeat its key with other content. ``invalid``: flagged,
    or of another length than the header states. ``urgent_conflicts``: conflicts that are emergency traffic, which must
    not wait and is usable, but marked.
    """

    emergency: NDArray[np.int64]
    routine: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    conflicts: NDArray[np.int64]
    invalid: NDArray[np.int64]
    urgent_conflicts: NDArray[np.int64]


class PacketProcessor:
    """De-duplicates on (satellite, epoch of its counter, sequence); the first in order of arrival survives.

    ``missing`` and ``late`` count the gaps of the last batch (`SequenceGaps.count`).
    """

    def __init__(self, remembered: int = 2**20) -> None:
        slots = 1 << max(remembered * 2 - 1, 1).bit_length()
        self._young, self._old = _Generation(slots), _Generation(slots)
        self.remembered = remembered
        self._factors = np.frombuffer(secrets.token_bytes(8 * _FACTORS), np.uint64)
        self._gaps = SequenceGaps()
        self.missing = self.late = 0
        self._verdicts = np.empty(MAX_BATCH, np.uint8)
        self._times_ms, self._satellites = np.empty(MAX_BATCH, np.uint64), np.empty(MAX_BATCH, np.uint64)
        self._sequences = np.empty(MAX_BATCH, np.uint64)

    def process(self, frames: Frames) -> Processed:
        """Judge a batch of at most `MAX_BATCH` frames. Raises BatchTooLarge."""
        count = len(frames)
        if count > MAX_BATCH:
            raise BatchTooLarge(f"a batch has {count} frames, at most {MAX_BATCH} are taken at once")
        if self._young.count + count > self.remembered:
            self._young, self._old = self._old, self._young
            self._young.forget()
        verdicts = self._verdicts[:count]
        self._young.count += _judge(
            frames.buffer, frames.starts, frames.lengths, verdicts, self._times_ms, self._satellites, self._sequences,
            self._young.keys, self._old.keys, self._factors,
        )  # fmt: skip
        new = np.flatnonzero(verdicts <= _ROUTINE)
        new = new[np.lexsort((self._sequences[new], self._satellites[new], self._times_ms[new]))]
        is_emergency = verdicts[new] == _EMERGENCY
        others = (np.flatnonzero(verdicts == each) for each in (_DUPLICATE, _CONFLICT, _INVALID, _URGENT_CONFLICT))
        self.missing, self.late = self._gaps.count(frames, new)
        return Processed(new[is_emergency], new[~is_emergency], *others)

    def forget(self, frames: Frames) -> None:
        """Judge these frames as new when they come again, because they were not kept."""
        for generation in (self._young, self._old):
            _forget(frames.buffer, frames.starts, frames.lengths, generation.keys, self._factors)


class _Generation:
    """A hash table of keys, (slots, 3) uint64: the sequence; the satellite and a mark of the content; the time, ms.

    The second is 0 where the slot is free; the mark is odd unless the key was removed.
    """

    def __init__(self, slots: int) -> None:
        self.keys = np.zeros((slots, 3), np.uint64)
        self.count = 0

    def forget(self) -> None:
        self.keys.fill(0)
        self.count = 0


@numba.njit(cache=True, nogil=True)
def _judge(
    buffer: Any, starts: Any, lengths: Any, verdicts: Any, times_ms: Any, satellites: Any, sequences: Any,
    young: Any, old: Any, factors: Any,
) -> Any:  # fmt: skip
    """Fill the (n,) columns; returns how many keys are new."""
    new, mask = 0, np.uint64(len(young) - 1)
    for row in range(len(starts)):
        at, length = starts[row], lengths[row]
        verdicts[row] = _INVALID
        if length < TELEMETRY_HEADER_BYTES:
            continue
        byte_count = np.int64(buffer[at + 20]) | (np.int64(buffer[at + 21]) << 8)
        flags = buffer[at + 23]
        if (flags & INVALID_FLAG) != 0 or byte_count + TELEMETRY_HEADER_BYTES != length:
            continue
        time_ms, sequence = load_u64(buffer, at), load_u64(buffer, at + 8)
        satellite = np.uint64(load_u32(buffer, at + 16))
        times_ms[row], sequences[row], satellites[row] = time_ms, sequence, satellite
        mark = _mark(buffer, at, length, factors)
        found = _find(satellite, sequence, time_ms, old, mask, factors)
        known, known_ms = old[found, 1], old[found, 2]
        if not known & np.uint64(1):
            slot = _find(satellite, sequence, time_ms, young, mask, factors)
            known, known_ms = young[slot, 1], young[slot, 2]
        is_known = (known & np.uint64(1)) != 0
        if is_known and known_ms == time_ms and (known & np.uint64(0xFFFFFFFF)) == mark:
            verdicts[row] = _DUPLICATE
            continue
        if (flags & EMERGENCY_FLAG) != 0:
            verdicts[row] = _URGENT_CONFLICT if is_known else _EMERGENCY
        else:
            verdicts[row] = _CONFLICT if is_known else _ROUTINE
        if not is_known:
            young[slot, 0], young[slot, 2] = sequence, time_ms
            young[slot, 1] = (satellite << np.uint64(32)) | mark
            new += 1
    return new


@numba.njit(cache=True, nogil=True)
def _forget(buffer: Any, starts: Any, lengths: Any, keys: Any, factors: Any) -> None:
    """Make the marks of these frames even: their slots stay in use, so that no later key is cut off."""
    mask = np.uint64(len(keys) - 1)
    for row in range(len(starts)):
        at, length = starts[row], lengths[row]
        if length >= TELEMETRY_HEADER_BYTES:
            time_ms, sequence = load_u64(buffer, at), load_u64(buffer, at + 8)
            satellite = np.uint64(load_u32(buffer, at + 16))
            slot = _find(satellite, sequence, time_ms, keys, mask, factors)
            if (keys[slot, 1] & np.uint64(0xFFFFFFFF)) == _mark(buffer, at, length, factors):
                keys[slot, 1] &= np.uint64(0xFFFFFFFFFFFFFFFE)


@numba.njit(cache=True, nogil=True)
def _mark(buffer: Any, at: Any, length: Any, factors: Any) -> Any:
    """31 bits and an odd one of the payload and the emergency flag; the receiving station makes no other frame."""
    flag = np.uint64(buffer[at + 23] & EMERGENCY_FLAG) << np.uint64(24)
    factor = np.uint64(_PLACE_FACTORS + 2)
    total = factors[_PLACE_FACTORS] + factors[_PLACE_FACTORS + 1] * (np.uint64(length) | flag)
    place, end = np.uint64(at + TELEMETRY_HEADER_BYTES), np.uint64(at + length)
    while place + np.uint64(8) <= end:
        total += _weighed(_load(buffer, place), factors, factor)
        place, factor = place + np.uint64(8), factor + np.uint64(2)
    while place < end:
        total += factors[factor] * np.uint64(buffer[place])
        place, factor = place + np.uint64(1), factor + np.uint64(1)
    return (total >> np.uint64(32)) | np.uint64(1)


@numba.njit(cache=True, nogil=True)
def _weighed(value: Any, factors: Any, first: Any) -> Any:
    """Both halves of 64 bits, each times its factor."""
    low, high = value & np.uint64(0xFFFFFFFF), value >> np.uint64(32)
    return factors[first] * low + factors[first + np.uint64(1)] * high


@numba.njit(cache=True, nogil=True)
def _load(buffer: Any, at: Any) -> Any:
    """`load_u64` at an unsigned place, which is one instruction."""
    value = np.uint64(0)
    for byte in range(8):
        value |= np.uint64(buffer[at + np.uint64(byte)]) << np.uint64(8 * byte)
    return value


@numba.njit(cache=True, nogil=True)
def _find(satellite: Any, sequence: Any, time_ms: Any, keys: Any, mask: Any, factors: Any) -> Any:
    """The slot of the key, or the free one that it would take; the table is never more than half full.

    A place follows from the time too, so that a counter that restarts for ever fills no part of the table. A key whose
    time is near lies in the same stretch of time, or close to its edge in the neighbouring one.
    """
    stretch, offset = time_ms >> np.uint64(_STRETCH_BITS), time_ms & np.uint64((1 << _STRETCH_BITS) - 1)
    if offset < np.uint64(EPOCH_MS) or offset >= np.uint64((1 << _STRETCH_BITS) - EPOCH_MS):
        near = stretch - np.uint64(1) if offset < np.uint64(EPOCH_MS) else stretch + np.uint64(1)
        slot = _probe(satellite, sequence, time_ms, near, keys, mask, factors)
        if keys[slot, 1] != 0:
            return slot
    return _probe(satellite, sequence, time_ms, stretch, keys, mask, factors)


@numba.njit(cache=True, nogil=True)
def _probe(satellite: Any, sequence: Any, time_ms: Any, stretch: Any, keys: Any, mask: Any, factors: Any) -> Any:
    slot = _home(satellite, sequence, stretch, mask, factors)
    while keys[slot, 1] != 0 and not (
        keys[slot, 0] == sequence
        and (keys[slot, 1] >> np.uint64(32)) == satellite
        and max(keys[slot, 2], time_ms) - min(keys[slot, 2], time_ms) <= np.uint64(EPOCH_MS)
    ):
        slot = (slot + np.uint64(1)) & mask
    return slot


@numba.njit(cache=True, nogil=True)
def _home(satellite: Any, sequence: Any, stretch: Any, mask: Any, factors: Any) -> Any:
    total = factors[0] + _weighed(sequence, factors, np.uint64(1)) + _weighed(stretch, factors, np.uint64(3))
    return mixed(total + factors[5] * satellite) & mask
