"""The element set of an object in force at a time: the one with the latest epoch reached.

Sets with future epochs are predictions, such as the segments of an operator's ephemeris; each applies from its epoch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import IntArray
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.units import MINUTE_NS

EPOCH_TOLERANCE_NS = MINUTE_NS
"""A set is in force from this long before its epoch: clocks and rounded epochs may differ by seconds."""


@dataclasses.dataclass(frozen=True, eq=False)
class Terms:
    """Rows of element sets and when each is in force, ordered by object, then time.

    Attributes:
        row: (n,) positions in the arrays given.
        from_ns, until_ns: (n,) the half-open term [from, until). The first of an object begins at ALWAYS_NS, the last
            ends at FOREVER_NS.
    """

    row: IntArray
    from_ns: IntArray
    until_ns: IntArray

    def take(self, chosen: npt.NDArray[Any]) -> Terms:
        """Select terms by mask or position."""
        return Terms(self.row[chosen], self.from_ns[chosen], self.until_ns[chosen])

    def clipped(self, start_ns: int, end_ns: int) -> Terms:
        """Return the parts of the terms within [start, end)."""
        return Terms(self.row, np.maximum(self.from_ns, start_ns), np.minimum(self.until_ns, end_ns))


def terms_in_force(
    norad_id: IntArray, epoch_ns: IntArray, rank: Sequence[npt.NDArray[Any]], start_ns: int, end_ns: int
) -> Terms:
    """Return the sets in force during [start, end), piecewise in time; every object has one at any time.

    A set is in force from EPOCH_TOLERANCE_NS before its epoch until the next set of its object is. Before the first
    epoch of an object its first set is in force. Of sets with one epoch the highest by ``rank`` applies: arrays (n,),
    the most significant first. If no two rows are equal in all of them, the order of the rows does not matter.
    """
    order = np.lexsort((*reversed(rank), epoch_ns, norad_id))
    ids, epochs = norad_id[order], epoch_ns[order]
    is_outranked = np.append((ids[1:] == ids[:-1]) & (epochs[1:] == epochs[:-1]), False)
    kept = order[~is_outranked[: len(order)]]
    ids, begins = norad_id[kept], epoch_ns[kept] - EPOCH_TOLERANCE_NS
    is_same_object = ids[1:] == ids[:-1]
    from_ns, until_ns = begins.copy(), np.full(len(kept), FOREVER_NS)
    from_ns[1:][~is_same_object] = ALWAYS_NS
    from_ns[:1] = ALWAYS_NS
    until_ns[:-1][is_same_object] = begins[1:][is_same_object]
    in_window = (from_ns < end_ns) & (until_ns > start_ns)
    return Terms(kept[in_window], from_ns[in_window], until_ns[in_window])
