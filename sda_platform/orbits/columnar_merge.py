"""The merge of element sets by columns: the order of `element_order`, in numpy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

Tie = Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]
"""The values of a column at positions; text is only read where all before it are equal."""


def best_rows(
    norad_id: npt.NDArray[np.int64],
    epoch_time_ns: npt.NDArray[np.int64],
    ties: Sequence[Tie],
    as_of_ns: int,
) -> npt.NDArray[np.int64]:
    """Return positions of the set in force of each object, objects ascending.

    Args:
        norad_id: (n,) catalogue numbers, in any order.
        epoch_time_ns: (n,) epochs.
        ties: what decides between equal epochs, the most significant first: source priority, set number, source,
            segment, record. The greater is the better. Of rows equal in all of them the first counts.
        as_of_ns: mission time; of sets that are all ahead the first is taken.
    """
    in_force = epoch_time_ns <= as_of_ns + EPOCH_TOLERANCE_NS
    # One number orders sets in force above those ahead, and each of the two by its rule.
    span = np.int64(2**62)
    order = np.where(in_force, epoch_time_ns, -epoch_time_ns - span)
    kept = np.argsort(norad_id, kind="stable")
    for key in (order.__getitem__, *ties):
        ids = norad_id[kept]
        starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.array([], np.int64)
        if len(starts) == len(kept):
            return kept
        values = key(kept)
        if values.dtype.kind not in "iuf":
            values = np.unique(values, return_inverse=True)[1]
        lengths = np.diff(np.append(starts, len(kept)))
        kept = kept[values == np.repeat(np.maximum.reduceat(values, starts), lengths)]
    ids = norad_id[kept]
    return kept[np.append(True, ids[1:] != ids[:-1])] if len(kept) else kept
