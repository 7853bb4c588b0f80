"""Element sets that stand for a given path in a search: SGP4 through its states, each set in force for minutes.

A search for approaches reads element sets only. A path of an operator, with its manoeuvres, becomes sets that are at
most ``WITHIN_KM`` off it. The search is widened by that, and each approach is then found on the path itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.ephemerides import Ephemeris, states_at
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import HOUR_NS, MINUTE_NS

WITHIN_KM = 1.0
"""How far a set may be off the path in its term."""
SEARCH_MARGIN_KM = 3.0
"""How much farther such a path is searched: the error at the end of a term, with that of the next set's begin."""
_LONGEST_NS = HOUR_NS
_SHORTEST_NS = MINUTE_NS
_LOOKED_AT = np.array([0.0, 0.25, 0.75, 1.0])


@dataclass(frozen=True, eq=False)
class PathSets:
    """Sets (n,) by time, each in force from ``from_ns`` to ``until_ns`` (n,), and the largest distance to the path."""

    elements: ElementSets
    from_ns: IntArray
    until_ns: IntArray
    deviation_km: float

    @property
    def margin_km(self) -> float:
        """Return how far beyond a threshold these sets must be searched to find every approach of the path, km."""
        return SEARCH_MARGIN_KM * max(1.0, self.deviation_km / WITHIN_KM)


def sets_through(ephemeris: Ephemeris, begin_ns: int, end_ns: int) -> PathSets | None:
    """Sets that stand for the ephemeris in [begin, end), a part of its usable span; None where SGP4 cannot follow.

    Terms begin with an hour. They are halved, down to a minute, where the sets are farther than ``WITHIN_KM`` off the
    path, as after a manoeuvre. SGP4 itself may be off: near the equator in deep space by up to 30 km.
    """
    count = max(1, -(-(end_ns - begin_ns) // _LONGEST_NS))
    edges = begin_ns + (end_ns - begin_ns) * np.arange(count + 1) // count
    while True:
        elements, off_km = _through(ephemeris, edges)
        if not np.isfinite(off_km).all():
            return None
        too_far = (off_km > WITHIN_KM) & (np.diff(edges) >= 2 * _SHORTEST_NS)
        if not too_far.any():
            return PathSets(elements, edges[:-1], edges[1:], float(off_km.max()))
        middles = (edges[:-1] + edges[1:]) // 2
        edges = np.sort(np.append(edges, middles[too_far]))


def _through(ephemeris: Ephemeris, edges: IntArray) -> tuple[ElementSets, FloatArray]:
    """Return the sets through the middles of the terms, and how far, km, each is off the path in its term; NaN:
    refused.
    """
    middles = (edges[:-1] + edges[1:]) // 2
    states = states_at(ephemeris.state_time_ns, ephemeris.state, middles)
    elements = mean_elements(states[:, :3], states[:, 3:], middles)
    times = edges[:-1, None] + np.rint(np.diff(edges)[:, None] * _LOOKED_AT).astype(np.int64)
    times = np.clip(times, ephemeris.state_time_ns[0], ephemeris.state_time_ns[-1]).ravel()
    rows = np.repeat(np.arange(len(middles)), len(_LOOKED_AT))
    path = states_at(ephemeris.state_time_ns, ephemeris.state, times)[:, :3]
    error, r, _ = Propagator(elements).at(rows, times)
    off_km = np.where(error == 0, np.linalg.norm(r - path, axis=1), np.nan)
    return elements, off_km.reshape(-1, len(_LOOKED_AT)).max(axis=1)
