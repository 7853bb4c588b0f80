"""The data files of an opened table, without those that a query's conditions pass over.

Files of this machine are named, so that DuckDB reads them itself. Those of an object store become an Arrow dataset.
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

from sda_platform.history.pruning import ROWS, Bounds, Predicate, may_match
from sda_platform.lake.log import TableLog
from sda_platform.lake.object_store import is_object_store
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
        self.schema = pa.schema(delta.schema().to_arrow())

    def is_plain(self) -> bool:
        """Return whether the table is its files: no feature changes what a file means."""
        return self._delta.protocol().min_reader_version <= _PLAIN_READER_VERSION

    def paths(self, condition: Predicate) -> list[str] | None:
        """List the paths of a plain table's files that may hold a row for which ``condition`` is true.

        None where they are in an object store, or the table is not plain.
        """
        if is_object_store(self._log.uri) or not self.is_plain():
            return None
        return [f"{self._log.uri}/{path}" for path in self._chosen(condition).column("path").to_pylist()]

    def dataset(self, condition: Predicate) -> ds.Dataset:
        """Return the rows of the files that may hold a row for which ``condition`` is true.

        Raises DeltaProtocolError for a table with features that delta-rs does not read.
        """
        if not self.is_plain():
            return self._log.dataset(self._delta)
        chosen = self._chosen(condition)
        directory = arrow_directory(self._log.uri)
        described = zip(chosen.column("path").to_pylist(), _guarantees(chosen), strict=True)
        fragments = [_FORMAT.make_fragment(path, directory, guarantee) for path, guarantee in described]
        return ds.FileSystemDataset(fragments, self.schema, _FORMAT, directory)

    def _chosen(self, condition: Predicate) -> Bounds:
        return self._bounds.filter(pa.array(may_match(self._bounds, condition)))


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
    """Return the bounds of one kind of the column whose least values are in ``name``."""
    of_kind = f"{kind}.{name.removeprefix('min.')}"
    return bounds.column(of_kind).to_pylist() if of_kind in bounds.schema.names else [None] * bounds.num_rows
