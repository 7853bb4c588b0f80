"""Reading a whole table in bounded memory, about in the order of a column; no engine, no files of its own."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from sda_platform.lake.read_errors import reading
from sda_platform.lake.table_rows import VERIFIED, TableRows, stored_in

_BATCH_ROWS: Final = 65_536


def in_order(
    log: TableRows,
    by: str,
    columns: Sequence[str],
    where: ds.Expression,
    *,
    step: int,
    rows: int,
) -> Iterator[pa.Table]:
    """Yield the rows for which ``where`` is true, in tables of ``rows`` to four times as many (the last may be short).

    Files are read by their least value of the integer column ``by``, which is among ``columns``. Where their values
    follow each other, each table holds whole steps of it (multiples of ``step``), and they ascend. Where files overlap
    so much that a step does not fit, its rows come in several tables.
    """
    delta = log.open()
    if delta is None:
        return
    dataset = log.dataset(delta)
    files = _ordered(delta, list(dataset.get_fragments(where)), by)
    stored = stored_in(dataset, columns)
    waiting: list[pa.RecordBatch] = []
    with reading(log.table.name):
        for number, (_, file) in enumerate(files):
            batches = file.scanner(
                dataset.schema, columns=stored, filter=where, batch_size=_BATCH_ROWS, batch_readahead=2,
                fragment_scan_options=VERIFIED,
            ).to_batches()  # fmt: skip
            for batch in batches:
                waiting.append(batch)
                if _count(waiting) >= 4 * rows:
                    yield log.filled(_taken(waiting), columns)
            if _count(waiting) >= rows and number + 1 < len(files):
                end = files[number + 1][0] // step * step
                if sum(pc.sum(pc.less(each[by], end)).as_py() or 0 for each in waiting) >= rows:
                    yield log.filled(_taken(waiting, pc.field(by) < end), columns)
        if _count(waiting):
            yield log.filled(_taken(waiting), columns)


def _taken(waiting: list[pa.RecordBatch], chosen: ds.Expression | None = None) -> pa.Table:
    """Remove the ``chosen`` rows, or all, from ``waiting``, and return them: they are in memory once."""
    found, rest = [], []
    while waiting:
        batch = waiting.pop()
        found.append(batch if chosen is None else batch.filter(chosen))
        rest += [] if chosen is None else [batch.filter(~chosen)]
    waiting.extend(rest[::-1])
    return pa.Table.from_batches(found[::-1])


def _ordered(delta: DeltaTable, files: list[ds.Fragment], by: str) -> list[tuple[int, ds.Fragment]]:
    """Return ``files`` with the least value of a column in each, ascending; 0 for a single file."""
    if len(files) < 2:
        return [(0, file) for file in files]
    bounds = pa.table(delta.get_add_actions(flatten=True))
    known = bounds[f"min.{by}"].to_pylist() if f"min.{by}" in bounds.column_names else [None] * bounds.num_rows
    least = {path: value for path, value in zip(bounds["path"].to_pylist(), known, strict=True) if value is not None}
    # A file without bounds may hold any value, and comes first.
    first = min(least.values(), default=0)
    return sorted(((least.get(file.path, first), file) for file in files), key=lambda at: at[0])


def _count(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)
