"""Gaps in the sequences of satellites: how many frames are missing, counted when the next one comes."""

import secrets
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from sda_platform.edge.frames import Frames, load_u32, load_u64

EPOCH_MS: Final = 10_000
"""Frames of one sequence whose times are further apart are of two epochs of the counter: the satellite restarted."""
_SATELLITES: Final = 2**12
_LONGEST: Final = 1_000_000


class SequenceGaps:
    """The last sequence of each satellite; of more than 4,096 satellites the later ones are not followed."""

    def __init__(self) -> None:
        self._last = np.zeros((2 * _SATELLITES, 3), np.uint64)
        # Secret: a sender could compute satellites that all take one place.
        self._factors = np.frombuffer(secrets.token_bytes(16), np.uint64)
        self._count = 0

    def count(self, frames: Frames, rows: NDArray[np.int64]) -> tuple[int, int]:
        """Return how many frames are missing before these new ones, and how many of these were missing until now.

        ``rows`` are in order of time. A counter that restarted has no gap; one gap counts a million at most.
        """
        missing, late, self._count = _count(frames.buffer, frames.starts[rows], self._last, self._count, self._factors)
        return missing, late


@numba.njit(cache=True, nogil=True)
def mixed(total: Any) -> Any:
    """32 bits of a sum with secret factors: those of an arithmetic progression are one, and are apart after this."""
    return ((total ^ (total >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(32)


@numba.njit(cache=True, nogil=True)
def _count(buffer: Any, starts: Any, last: Any, count: int, factors: Any) -> Any:
    """Each row of ``last`` has the satellite + 1 (0: free), the last sequence and its time, ms."""
    missing, late, mask = np.int64(0), np.int64(0), np.uint64(len(last) - 1)
    for at in starts:
        time_ms, sequence = load_u64(buffer, at), load_u64(buffer, at + 8)
        satellite = np.uint64(load_u32(buffer, at + 16)) + np.uint64(1)
        slot = mixed(factors[0] + factors[1] * satellite) & mask
        while last[slot, 0] != 0 and last[slot, 0] != satellite:
            slot = (slot + np.uint64(1)) & mask
        is_first = last[slot, 0] == 0
        if is_first and count >= _SATELLITES:
            continue
        is_later = time_ms > last[slot, 2] + np.uint64(EPOCH_MS)
        is_earlier = time_ms + np.uint64(EPOCH_MS) < last[slot, 2]
        if is_first:
            count += 1
        elif sequence <= last[slot, 1] and not is_later:
            late += sequence < last[slot, 1]
            continue
        elif sequence > last[slot, 1]:
            if is_earlier:  # of the epoch before, forwarded late
                continue
            missing += np.int64(min(sequence - last[slot, 1] - np.uint64(1), np.uint64(_LONGEST)))
        last[slot, 0], last[slot, 1], last[slot, 2] = satellite, sequence, time_ms
    return missing, late, count
