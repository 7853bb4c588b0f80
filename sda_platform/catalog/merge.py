"""The merge of element sets from Arrow tables, in process: what the engine's merge is verified with."""

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.orbits.columnar_merge import best_rows
from sda_platform.orbits.element_order import TIES, Tie

RANK_COLUMNS: Final = tuple(tie.column for tie in TIES)
MERGE_COLUMNS: Final = ("norad_id", "epoch_time_ns", *RANK_COLUMNS)


def best_sets(sets: pa.Table, as_of_ns: int) -> npt.NDArray[np.int64]:
    """Positions in ``sets``, which has MERGE_COLUMNS, of the set in force of each object, objects ascending.

    Of equal sets the first counts. Text is read only where all numbers are equal.
    """
    ties = [partial(_values, sets, tie) for tie in TIES]
    return best_rows(sets["norad_id"].to_numpy(), sets["epoch_time_ns"].to_numpy(), ties, as_of_ns)


def _values(sets: pa.Table, tie: Tie, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.generic]:
    column = sets[tie.column].take(pa.array(positions))
    values: npt.NDArray[np.generic] = pc.fill_null(column, tie.absent).to_numpy()
    return values
