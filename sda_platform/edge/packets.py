"""The packet processor: telemetry frames validated, de-duplicated and put in order by their headers alone (F5).

A batch stays in the buffer in which it was received. The result is row numbers: nothing is copied, and what is
allocated depends on the batch, never on a frame. Duplicates are recognised across batches, as a station that
reconnects sends again. The memory of keys is two generations of a table of fixed size. When the younger is half full
the older is cleared, so that a key is kept for at least ``remembered`` later frames.
"""

from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sda_platform.edge.frames import Frames, load_u32, load_u64
from sda_platform.formats.telemetry import EMERGENCY_FLAG, INVALID_FLAG, TELEMETRY_HEADER_BYTES

MAX_BATCH: Final = 10_000
_NEW, _DUPLICATE, _CONFLICT, _INVALID = 0, 1, 2, 3


class BatchTooLarge(ValueError):
    """A batch has more frames than the processor takes; the caller splits it (F5.8)."""


@dataclass(frozen=True, slots=True)
class Processed:
    """Row numbers of a batch: each frame is in exactly one of the five (F5.31).

    ``emergency`` and ``routine`` ascend in `timestamp_ms`, then satellite, then sequence. ``duplicates`` repeat a key
    with the same time and length; ``conflicts`` repeat it with others. ``invalid``: flagged, or of another length than
    its header states.
    """

    emergency: NDArray[np.int64]
    routine: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    conflicts: NDArray[np.int64]
    invalid: NDArray[np.int64]


class PacketProcessor:
    """De-duplicates on (satellite, sequence); the first in order of arrival survives (F5.26)."""

    def __init__(self, remembered: int = 2**20) -> None:
        slots = 1 << max(remembered * 2 - 1, 1).bit_length()
        self._young, self._old = _Generation(slots), _Generation(slots)
        self._remembered = remembered
        self._verdicts = np.empty(MAX_BATCH, np.uint8)
        self._times_ms, self._satellites = np.empty(MAX_BATCH, np.uint64), np.empty(MAX_BATCH, np.uint64)
        self._sequences, self._flags = np.empty(MAX_BATCH, np.uint64), np.empty(MAX_BATCH, np.uint8)

    def process(self, frames: Frames) -> Processed:
        """Judge a batch of at most `MAX_BATCH` frames. Raises BatchTooLarge."""
        count = len(frames)
        if count > MAX_BATCH:
            raise BatchTooLarge(f"a batch has {count} frames, at most {MAX_BATCH} are taken at once")
        if self._young.count + count > self._remembered:
            self._young, self._old = self._old, self._young
            self._young.forget()
        verdicts, flags = self._verdicts[:count], self._flags[:count]
        young, old = self._young, self._old
        young.count += _judge(
            frames.buffer, frames.starts, frames.lengths, verdicts, self._times_ms, self._satellites, self._sequences,
            flags, young.keys, old.keys,
        )  # fmt: skip
        new = np.flatnonzero(verdicts == _NEW)
        order = np.lexsort((self._sequences[new], self._satellites[new], self._times_ms[new]))
        new = new[order]
        is_emergency = (flags[new] & EMERGENCY_FLAG) != 0
        others = (np.flatnonzero(verdicts == verdict) for verdict in (_DUPLICATE, _CONFLICT, _INVALID))
        return Processed(new[is_emergency], new[~is_emergency], *others)

    def forget(self, frames: Frames) -> None:
        """Judge these frames as new when they come again, because they were not kept."""
        for generation in (self._young, self._old):
            _forget(frames.buffer, frames.starts, frames.lengths, generation.keys)


class _Generation:
    """A hash table of keys, (slots, 2) uint64: the sequence; the satellite and a mark of the header's other fields.

    The second is 0 where the slot is free; the mark is odd unless the key was removed.
    """

    def __init__(self, slots: int) -> None:
        self.keys = np.zeros((slots, 2), np.uint64)
        self.count = 0

    def forget(self) -> None:
        self.keys.fill(0)
        self.count = 0


@numba.njit(cache=True, nogil=True)
def _judge(
    buffer: Any, starts: Any, lengths: Any, verdicts: Any, times_ms: Any, satellites: Any, sequences: Any, flags: Any,
    young: Any, old: Any,
) -> Any:  # fmt: skip
    """Fill the (n,) columns; returns how many keys are new."""
    new, mask = 0, np.uint64(len(young) - 1)
    for row in range(len(starts)):
        at, length = starts[row], lengths[row]
        verdicts[row] = 3
        if length < TELEMETRY_HEADER_BYTES:
            continue
        byte_count = np.int64(buffer[at + 20]) | (np.int64(buffer[at + 21]) << 8)
        flags[row] = buffer[at + 23]
        if (flags[row] & INVALID_FLAG) != 0 or byte_count + TELEMETRY_HEADER_BYTES != length:
            continue
        times_ms[row], sequences[row] = load_u64(buffer, at), load_u64(buffer, at + 8)
        satellites[row] = load_u32(buffer, at + 16)
        mark = _mark(times_ms[row], byte_count)
        home = _home(satellites[row], sequences[row], mask)
        known = old[_find(home, satellites[row], sequences[row], old, mask), 1]
        if not known & np.uint64(1):
            slot = _find(home, satellites[row], sequences[row], young, mask)
            known = young[slot, 1]
        if known & np.uint64(1):
            verdicts[row] = 1 if (known & np.uint64(0xFFFFFFFF)) == mark else 2
            continue
        young[slot, 0], young[slot, 1] = sequences[row], (satellites[row] << np.uint64(32)) | mark
        verdicts[row] = 0
        new += 1
    return new


@numba.njit(cache=True, nogil=True)
def _forget(buffer: Any, starts: Any, lengths: Any, keys: Any) -> None:
    """Make the marks of these frames even: their slots stay in use, so that no later key is cut off."""
    mask = np.uint64(len(keys) - 1)
    for row in range(len(starts)):
        if lengths[row] >= TELEMETRY_HEADER_BYTES:
            sequence = load_u64(buffer, starts[row] + 8)
            satellite = np.uint64(load_u32(buffer, starts[row] + 16))
            slot = _find(_home(satellite, sequence, mask), satellite, sequence, keys, mask)
            keys[slot, 1] &= np.uint64(0xFFFFFFFFFFFFFFFE)


@numba.njit(cache=True, nogil=True)
def _mark(time_ms: Any, byte_count: Any) -> Any:
    mixed = (time_ms ^ (np.uint64(byte_count) << np.uint64(48))) * np.uint64(0xD6E8FEB86659FD93)
    return (mixed >> np.uint64(32)) | np.uint64(1)


@numba.njit(cache=True, nogil=True)
def _home(satellite: Any, sequence: Any, mask: Any) -> Any:
    mixed = (sequence ^ (satellite << np.uint64(40))) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(32)) & mask


@numba.njit(cache=True, nogil=True)
def _find(home: Any, satellite: Any, sequence: Any, keys: Any, mask: Any) -> Any:
    """The slot of the key, or the free one that it would take; the table is never more than half full."""
    slot = home
    while keys[slot, 1] != 0 and (keys[slot, 0] != sequence or (keys[slot, 1] >> np.uint64(32)) != satellite):
        slot = (slot + np.uint64(1)) & mask
    return slot
