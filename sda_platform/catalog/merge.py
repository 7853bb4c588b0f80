"""The merge of element sets: the best set of each object, and why others have lost. Arrow in, no Spark."""

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import IntArray
from sda_platform.orbits.columnar_merge import best_rows
from sda_platform.orbits.element_order import AHEAD, OLDER, TIES, Tie
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

RANK_COLUMNS: Final = tuple(tie.column for tie in TIES)
MERGE_COLUMNS: Final = ("norad_id", "epoch_time_ns", *RANK_COLUMNS)


def best_sets(sets: pa.Table, as_of_ns: int, ids: IntArray | None = None) -> IntArray:
    """Return positions in ``sets``, which has MERGE_COLUMNS, of the set in force of each object, objects ascending.

    Of equal sets the first counts. Text is read only where all numbers are equal. With ``ids`` (n,), numbers of groups,
    of each group instead.
    """
    ties = [partial(_values, sets, tie) for tie in TIES]
    groups = sets["norad_id"].to_numpy() if ids is None else ids
    return best_rows(groups, sets["epoch_time_ns"].to_numpy(), ties, as_of_ns)


def reasons_lost(sets: pa.Table, losers: IntArray, winners: IntArray, as_of_ns: int) -> list[str | None]:
    """Return why the set in each of the positions ``losers`` is not that in ``winners``; None: they are equal.

    It is the first part of the order in which it is below.
    """
    epoch_ns = sets["epoch_time_ns"].to_numpy()
    in_force = epoch_ns <= as_of_ns + EPOCH_TOLERANCE_NS
    parts = [(AHEAD, in_force[losers] != in_force[winners]), (OLDER, epoch_ns[losers] != epoch_ns[winners])]
    parts += [(tie.reason, _values(sets, tie, losers) != _values(sets, tie, winners)) for tie in TIES]
    reasons: list[str | None] = [None] * len(losers)
    for reason, differs in reversed(parts):
        for row in np.flatnonzero(differs).tolist():
            reasons[row] = reason
    return reasons


def _values(sets: pa.Table, tie: Tie, positions: IntArray) -> npt.NDArray[np.generic]:
    column = sets[tie.column].take(pa.array(positions))
    values: npt.NDArray[np.generic] = pc.fill_null(column, tie.absent).to_numpy()
    return values
