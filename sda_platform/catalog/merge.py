"""The merge of element sets from Arrow tables, in process: what the engine's merge is verified with."""

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.orbits.columnar_merge import best_rows

RANK_COLUMNS: Final = ("source_priority", "element_set_number", "originator", "segment_sha256", "record_number")
"""What decides between sets of one epoch, the most significant first; the greater is the better."""
MERGE_COLUMNS: Final = ("norad_id", "epoch_time_ns", *RANK_COLUMNS)


def best_sets(sets: pa.Table, as_of_ns: int) -> npt.NDArray[np.int64]:
    """Positions in ``sets``, which has MERGE_COLUMNS, of the set in force of each object, objects ascending.

    Of equal sets the first counts. Text is read only where all numbers are equal.
    """
    ties = [partial(_values, sets, name) for name in RANK_COLUMNS]
    return best_rows(sets["norad_id"].to_numpy(), sets["epoch_time_ns"].to_numpy(), ties, as_of_ns)


def _values(sets: pa.Table, name: str, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.generic]:
    column = sets[name].take(pa.array(positions))
    absent = "" if pa.types.is_string(column.type) else 0
    values: npt.NDArray[np.generic] = pc.fill_null(column, absent).to_numpy()
    return values
