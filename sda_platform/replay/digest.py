"""Digests of rows in canonical order: equal exactly if the rows are equal bit for bit, in any order of reading.

The order is by key, then by every other column that can be ordered, so that files, partitions and readers have no
influence. The hash covers validity and the Arrow IPC bytes of the valid values.
"""

import hashlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.lake.table import Table


def canonical(table: Table, rows: pa.Table) -> pa.Table:
    """``rows`` in the declared columns and types of ``table``, in canonical order.

    Lists do not take part in ordering: they decide nothing unless a key occurs twice with otherwise equal values.
    """
    schema = table.arrow_schema
    ordered = [*table.key, *(f.name for f in schema if f.name not in table.key and not pa.types.is_nested(f.type))]
    declared = rows.select(schema.names).cast(schema)
    return declared.sort_by([(name, "ascending") for name in ordered]).combine_chunks()


def digest(table: Table, rows: pa.Table) -> str:
    """SHA-256 of ``rows`` in canonical order, as hexadecimal text."""
    hashed = hashlib.sha256()
    for column in canonical(table, rows).itercolumns():
        for part in _plain(column):
            hashed.update(part)
    return hashed.hexdigest()


def same_bits(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    """Compare two columns bit for bit: a NaN equals itself, 0.0 is not -0.0."""
    return list(_plain(left)) == list(_plain(right))


def _plain(column: pa.ChunkedArray) -> Iterator[bytes]:
    """Yield the content of a column as bytes: validity, lengths and values, independent of the layout in memory."""
    yield _ipc(column.is_valid())
    if pa.types.is_list(column.type):
        yield _ipc(pc.list_value_length(column).drop_null())
        yield from _plain(pc.list_flatten(column))
    else:
        yield _ipc(column.drop_null())


def _ipc(column: pa.ChunkedArray) -> bytes:
    array = column.combine_chunks()
    return bytes(pa.RecordBatch.from_arrays([array], ["values"]).serialize())
