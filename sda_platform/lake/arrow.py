"""Arrow columns as numpy arrays, for kernels that work on numpy only."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def arrays(rows: pa.Table, names: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """Columns of ``rows`` as arrays; an absent value is NaN in a float column, 0 in an integer, "" in a text one."""
    chosen = rows.column_names if names is None else [n for n in names if n in rows.column_names]
    return {name: _array(rows.column(name)) for name in chosen}


def flat(lists: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Return the numbers of a column of lists of one length, one list after the other. No list is null."""
    return np.asarray(pc.list_flatten(lists).to_numpy(), dtype=np.float64)


def _array(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    if pa.types.is_integer(column.type):
        return np.asarray(column.fill_null(0).to_numpy())
    if pa.types.is_string(column.type):
        if column.null_count == len(column):
            return np.full(len(column), "", dtype=np.str_)
        return np.asarray(column.fill_null("").to_pylist(), dtype=np.str_)
    return np.asarray(column.to_numpy())
