"""Windows under way: what was weighed of them is remembered, so that their end has little left to do.

A window is fused again whenever something comes for it. Slices that did not change since are not weighed again; one
that a late reading fell into is. What is remembered is remembered by this process only and may be lost at any time:
it makes nothing different, only sooner.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays, TextArray
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.slices import SLICE_NS, Slice, weigh
from sda_platform.orbits.tracking.window import Fused, Window

_UNDER_WAY = b""
"""The key of no slice."""


def fuse_window(
    observations: ObservationArrays,
    tracks: TextArray,
    identity: npt.NDArray[Any],
    stamped_ns: IntArray,
    propagator: Propagator,
    mid_time_ns: int,
) -> Fused:
    """Associate and fit all observations (m,) of a window.

    Args:
        observations: (m,) in an order that depends on nothing but themselves, by time stamps first.
        tracks: (m,) the sensors' own names, as of ``associate``.
        identity: (m,) of any type of fixed size: rows alike in it, in time and clock correction are the same reading.
        stamped_ns: (m,) the times as stamped, which are the observations' own but for clock corrections.
        propagator, mid_time_ns: the catalogue, and the time that states are fitted for.
    """
    cuts = np.flatnonzero(np.diff(stamped_ns // SLICE_NS, prepend=-1)).tolist()
    ranges = list(pairwise([*cuts, len(observations)]))
    told = (identity, observations.sensor_time_ns, observations.clock_correction_sigma_s)
    keys = [_digest([np.ascontiguousarray(column[begin:end]) for column in told]) for begin, end in ranges]
    return _progress(propagator, mid_time_ns, observations.sensors).brought_to(keys, ranges, observations, tracks)


class _Progress:
    """One window as far as this process has come with it."""

    def __init__(self, propagator: Propagator, mid_time_ns: int) -> None:
        self._window = Window(propagator, mid_time_ns)
        self._absorbed: list[bytes] = []
        self._weighed: dict[bytes, Slice] = {}

    def brought_to(
        self, keys: list[bytes], ranges: list[tuple[int, int]], observations: ObservationArrays, tracks: TextArray
    ) -> Fused:
        if keys[: len(self._absorbed)] != self._absorbed:
            self._window, self._absorbed = self._window.emptied(), []
        new = [part for part, key in enumerate(keys) if key not in self._weighed]
        if new:
            rows = np.concatenate([np.arange(*ranges[part]) for part in new])
            number = np.repeat(new, [end - begin for begin, end in (ranges[part] for part in new)])
            fresh = weigh(observations.take(rows), tracks[rows], number, self._window.reference)
            self._weighed.update(zip((keys[part] for part in new), fresh, strict=True))
        missing = keys[len(self._absorbed) :]
        # Whatever cuts this short leaves sums that nobody may build on.
        self._absorbed = [_UNDER_WAY]
        for key in missing:
            self._window.absorb(self._weighed[key])
        self._absorbed = keys
        self._weighed = {key: self._weighed[key] for key in keys}
        return self._window.fit()


# Telescopes are half a minute late: beside the newest window one or two before it are still open.
@lru_cache(maxsize=4)
def _progress(propagator: Propagator, mid_time_ns: int, sensors: SensorNetwork) -> _Progress:  # noqa: ARG001 (key)
    return _Progress(propagator, mid_time_ns)


def forget() -> None:
    """Lose what this process remembers."""
    _progress.cache_clear()


def _digest(columns: list[npt.NDArray[Any]]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for column in columns:
        digest.update(column.tobytes())
    return digest.digest()
