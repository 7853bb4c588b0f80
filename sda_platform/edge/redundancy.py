"""Which radar frames are redundant: samples of an object beyond the first four within 30 s.

An object is a track of one array (`array_id`, `target_track_id`): the association with the catalogue comes later. Four
samples in any 30 s are of high priority, so that a sustained track keeps its rate; those between them are low. Time is
the frame's own. A frame that cannot be read is low, so that a flood of garbage is shed first.

The memory is a table of fixed size (13 MB for 2^18 tracks), larger than the active catalogue and a break-up together. A
full neighbourhood drops its oldest track, whose next sample then counts as fresh.
"""

from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sda_platform.edge.frames import Frames, load_u32, load_u64
from sda_platform.formats.radar import RADAR_FRAME_BYTES

SAMPLES: Final = 4
SPAN_NS: Final = 30_000_000_000
_SLOTS: Final = 2**18
_NEIGHBOURS: Final = 16
# Where `formats.radar` puts target_track_id and timestamp_ns; array_id is at 0.
_TRACK_AT, _TIME_AT = 4, 8


class RecentSamples:
    """The latest high-priority samples of each track."""

    def __init__(self, slots: int = _SLOTS) -> None:
        if slots < 1 or slots & (slots - 1):
            raise ValueError(f"slots is {slots}, must be a power of two")
        self._keys = np.zeros(slots, np.uint64)
        self._is_used = np.zeros(slots, np.bool_)
        self._times_ns = np.zeros((slots, SAMPLES), np.int64)
        self._counts = np.zeros(slots, np.int64)

    def are_high(self, frames: Frames) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of n radar frames: (n,) whether each is of high priority, and (n,) whether each is malformed.

        Remembers the samples that it answers "high" for.
        """
        is_high, is_bad = np.zeros(len(frames), np.bool_), np.zeros(len(frames), np.bool_)
        _classify(
            frames.buffer, frames.starts, frames.lengths, self._keys, self._is_used, self._times_ns, self._counts,
            is_high, is_bad,
        )  # fmt: skip
        return is_high, is_bad


@numba.njit(cache=True, nogil=True)
def _classify(
    buffer: Any, starts: Any, lengths: Any, keys: Any, is_used: Any, times_ns: Any, counts: Any,
    is_high: Any, is_bad: Any,
) -> None:  # fmt: skip
    """``times_ns`` (slots, 4) holds the last high samples of a track in turn; ``counts`` how many there were."""
    for row in range(len(starts)):
        if lengths[row] != RADAR_FRAME_BYTES:
            is_bad[row] = True
            continue
        at = starts[row]
        key = (np.uint64(load_u32(buffer, at)) << np.uint64(32)) | np.uint64(load_u32(buffer, at + _TRACK_AT))
        time_ns = np.int64(load_u64(buffer, at + _TIME_AT))
        slot = _slot_of(key, keys, is_used, times_ns, counts)
        if not is_used[slot] or keys[slot] != key:
            keys[slot], is_used[slot], counts[slot] = key, True, 0
        turn = counts[slot] % SAMPLES
        # A time far from the others, either way, is a clock's fault: it must not make later samples redundant.
        if counts[slot] < SAMPLES or abs(time_ns - times_ns[slot, turn]) >= SPAN_NS:
            times_ns[slot, turn] = time_ns
            counts[slot] += 1
            is_high[row] = True


@numba.njit(cache=True, nogil=True)
def _slot_of(key: Any, keys: Any, is_used: Any, times_ns: Any, counts: Any) -> Any:
    """The slot of ``key``; else a free one, or the one whose last sample is the oldest."""
    mask = len(keys) - 1
    home = np.int64(((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & np.uint64(mask))
    best, best_ns = home, np.int64(2**63 - 1)
    for step in range(min(_NEIGHBOURS, mask + 1)):
        slot = (home + step) & mask
        if not is_used[slot] or keys[slot] == key:
            return slot
        last_ns = times_ns[slot, (counts[slot] - 1) % SAMPLES]
        if last_ns < best_ns:
            best, best_ns = slot, last_ns
    return best
