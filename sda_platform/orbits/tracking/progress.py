"""Incremental windows: accumulated slices are cached, so that closing a window takes little work.

A window is fused again whenever observations arrive for it. Unchanged slices are not accumulated again; a slice with
a late observation is. The cache belongs to this process and may be lost at any time: it changes the time taken, never
the result.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import IntArray, TextArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.slices import SLICE_NS, Slice, accumulate_slices
from sda_platform.orbits.tracking.window import FitWindow, FusedWindow

_INCOMPLETE = b""
"""The key of no slice."""


def fuse_window(
    observations: ObservationArrays,
    tracks: TextArray,
    identity: npt.NDArray[Any],
    stamped_ns: IntArray,
    propagator: Propagator,
    mid_time_ns: int,
) -> FusedWindow:
    """Associate and fit all observations (m,) of a window.

    Args:
        observations: (m,) by time stamp first, in an order that depends on their content alone.
        tracks: (m,) the sensors' own track names, as in ``associate``.
        identity: (m,) of any fixed-size type: rows equal in it, in time and in bias correction are the same
            observation.
        stamped_ns: (m,) the time stamps; the observations' times differ from them by bias corrections.
        propagator, mid_time_ns: the catalogue, and the epoch of the fitted states.
    """
    cuts = np.flatnonzero(np.diff(stamped_ns // SLICE_NS, prepend=-1)).tolist()
    ranges = list(pairwise([*cuts, len(observations)]))
    identifying = (identity, observations.sensor_time_ns, observations.clock_correction_sigma_s)
    keys = [_digest([np.ascontiguousarray(column[begin:end]) for column in identifying]) for begin, end in ranges]
    return _progress(propagator, mid_time_ns, observations.sensors).updated_to(keys, ranges, observations, tracks)


class _WindowProgress:
    """The cached slices of one window in this process."""

    def __init__(self, propagator: Propagator, mid_time_ns: int) -> None:
        self._window = FitWindow(propagator, mid_time_ns)
        self._added: list[bytes] = []
        self._accumulated: dict[bytes, Slice] = {}

    def updated_to(
        self, keys: list[bytes], ranges: list[tuple[int, int]], observations: ObservationArrays, tracks: TextArray
    ) -> FusedWindow:
        if keys[: len(self._added)] != self._added:
            self._window, self._added = self._window.cleared(), []
        new = [part for part, key in enumerate(keys) if key not in self._accumulated]
        if new:
            rows = np.concatenate([np.arange(*ranges[part]) for part in new])
            number = np.repeat(new, [end - begin for begin, end in (ranges[part] for part in new)])
            fresh = accumulate_slices(observations.take(rows), tracks[rows], number, self._window.reference)
            self._accumulated.update(zip((keys[part] for part in new), fresh, strict=True))
        missing = keys[len(self._added) :]
        # An interrupted update leaves partial sums, which must not be reused.
        self._added = [_INCOMPLETE]
        for key in missing:
            self._window.add(self._accumulated[key])
        self._added = keys
        self._accumulated = {key: self._accumulated[key] for key in keys}
        return self._window.fit()


# Telescopes are half a minute late: one or two windows before the newest are still open.
@lru_cache(maxsize=4)
def _progress(propagator: Propagator, mid_time_ns: int, sensors: SensorNetwork) -> _WindowProgress:  # noqa: ARG001 (key)
    return _WindowProgress(propagator, mid_time_ns)


def forget() -> None:
    """Clear this process's cache."""
    _progress.cache_clear()


def _digest(columns: list[npt.NDArray[Any]]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for column in columns:
        digest.update(column.tobytes())
    return digest.digest()
