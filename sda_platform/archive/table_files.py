"""The data files of an opened table as an Arrow dataset, without those that a query's conditions pass over.

delta-rs describes every file to Arrow by an expression of its bounds, and evaluates conditions with a query engine of
its own. Here `pruning` evaluates them on the bounds, and only the files that it keeps are described. For one of a
thousand files that takes a tenth of the time, and for all of them a third.
"""

from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from sda_platform.archive.pruning import ROWS, Bounds, Predicate, may_match
from sda_platform.lake.log import TableLog
from sda_platform.lake.storage import arrow_directory

_FORMAT = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
_PLAIN_READER_VERSION = 1
"""Tables of a later version can have features (deletion vectors, mapped columns) that change what a file means."""


class TableFiles:
    """The files of ``delta``, which is the table of ``log`` at some version; their bounds are read once."""

    def __init__(self, log: TableLog, delta: DeltaTable) -> None:
        self._log = log
        self._delta = delta
        self._bounds: Bounds = pa.table(delta.get_add_actions(flatten=True))
        self._schema = pa.schema(delta.schema().to_arrow())

    def dataset(self, condition: Predicate | None = None) -> ds.Dataset:
        """The rows of all files, or of at least those that may hold a row for which ``condition`` is true.

        Raises DeltaProtocolError for a table with features that delta-rs does not read.
        """
        if self._delta.protocol().min_reader_version > _PLAIN_READER_VERSION:
            return self._log.dataset(self._delta)
        chosen = self._bounds
        if condition is not None:
            chosen = chosen.filter(pa.array(may_match(chosen, condition)))
        directory = arrow_directory(self._log.uri)
        described = zip(chosen.column("path").to_pylist(), _guarantees(chosen), strict=True)
        fragments = [_FORMAT.make_fragment(path, directory, guarantee) for path, guarantee in described]
        return ds.FileSystemDataset(fragments, self._schema, _FORMAT, directory)


def _guarantees(bounds: Bounds) -> Iterator[ds.Expression]:
    """Of each file an expression that is true of all of its rows, by which Arrow passes over it.

    Only whole numbers count: the bounds of floating-point columns leave NaN out.
    """
    limits = [
        (ds.field(name.removeprefix("min.")), *(_values(bounds, name, kind) for kind in ("min", "max", "null_count")))
        for name in bounds.schema.names
        if name.startswith("min.") and pa.types.is_integer(bounds.schema.field(name).type)
    ]
    for unit, rows in enumerate(bounds.column(ROWS).to_pylist()):
        parts = []
        for column, least, greatest, nulls in limits:
            if nulls[unit] is not None and nulls[unit] == rows:
                parts.append(column.is_null())
                continue
            if least[unit] is None or greatest[unit] is None:
                continue
            within = [column >= least[unit], column <= greatest[unit]]
            parts += within if nulls[unit] == 0 else [each | column.is_null() for each in within]
        yield reduce(ds.Expression.__and__, parts) if parts else pc.scalar(True)


def _values(bounds: Bounds, name: str, kind: str) -> list[int | None]:
    """The bounds of one kind of the column whose least values are in ``name``."""
    of_kind = f"{kind}.{name.removeprefix('min.')}"
    return bounds.column(of_kind).to_pylist() if of_kind in bounds.schema.names else [None] * bounds.num_rows
