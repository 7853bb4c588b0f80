"""The closed time intervals in which some rows can have duplicates.

An instant that follows from a row's key is equal for all duplicates of the row. A search for them therefore needs only
the files that cover these instants. One range from the earliest to the latest instant is no bound: one record stamped
1970 stretches it over the whole table.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sda_platform.units import HOUR_NS

Spans = Sequence[tuple[int, int]]

BRIDGED_NS = HOUR_NS
"""Instants nearer than this share an interval: a file rarely covers less."""
MAX_SPANS = 64
"""Bound of the predicate that prunes files; beyond it the narrowest gaps are bridged as well."""


def time_spans(times: pa.ChunkedArray) -> Spans:
    """Return the intervals, ascending and disjoint, at most MAX_SPANS, that hold all of ``times`` (ns); nulls are left
    out.

    They are cut at the widest gaps between neighbouring instants, where a gap exceeds BRIDGED_NS.
    """
    instants = np.unique(times.drop_null().to_numpy())
    if not len(instants):
        return ()
    # Floating point, because the gap between the extremes of 64 bits is no 64-bit integer.
    gaps = np.diff(instants.astype(np.float64))
    widest = np.argsort(-gaps, kind="stable")[: MAX_SPANS - 1]
    cuts = np.sort(widest[gaps[widest] > BRIDGED_NS])
    firsts, lasts = instants[np.concatenate([[0], cuts + 1])], instants[np.concatenate([cuts, [-1]])]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))
