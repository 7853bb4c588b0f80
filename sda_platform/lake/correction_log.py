"""Correction logs: tables whose rows are corrected by appended entries.

A row is inserted with revision 0 (column ``sequence``). A correction retracts revision N and inserts N + 1. A row that
is no longer current is retracted, and may return with the next revision. The last entry of each key is the current one.
"""

import numpy as np
import pandera.pyspark as pandera
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sda_platform.arrays import BoolArray
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import Table, TableModel

INSERT, RETRACT = "insert", "retract"


class CorrectionLogModel(TableModel):
    """Columns of every correction log."""

    sequence: T.LongType = pandera.Field(
        ge=0, description="Number of the entry within its key, rising with each correction."
    )
    op: T.StringType = pandera.Field(
        isin=[INSERT, RETRACT], description="insert: holds from now on; retract: no longer holds."
    )
    as_of_ns: T.LongType = quantity("ns", "Mission time at which the platform concluded this.")


def content(table: Table) -> list[str]:
    """Return the content columns of a correction log: all but the key and the columns of every correction log."""
    return [c.name for c in table.columns if c.name not in {*CorrectionLogModel.to_schema().columns, table.key[0]}]


def fact_names(table: Table) -> list[str]:
    """Names of the key and the content of a correction log, in the order of its columns."""
    chosen = {table.key[0], *content(table)}
    return [column.name for column in table.columns if column.name in chosen]


def fact_schema(table: Table) -> pa.Schema:
    """Key and content of a correction log as an Arrow schema."""
    return pa.schema([table.arrow_schema.field(name) for name in fact_names(table)])


def fact_types(table: Table) -> str:
    """Key and content of a correction log as a DDL schema: what a kernel that makes its rows must return."""
    chosen = fact_names(table)
    return ", ".join(f"{c.name} {c.data_type.simpleString()}" for c in table.columns if c.name in chosen)


def last_rows(entries: pa.Table, key: str) -> pa.Table:
    """Return the last entry of each key, in the order of keys; of two with one sequence the retract is the later."""
    ordered = entries.sort_by([(key, "ascending"), ("sequence", "ascending"), ("op", "ascending")])
    keys = ordered.column(key).to_numpy()
    return ordered.filter(np.append(keys[1:] != keys[:-1], True)[: len(keys)])


def current_rows(entries: pa.Table, key: str) -> pa.Table:
    """Return the entries that are current: the last of each key, unless it is a retract."""
    last = last_rows(entries, key)
    return last.filter(pc.equal(last.column("op"), INSERT))


def corrected(table: Table, entries: pa.Table, fresh: pa.Table, *, as_of_ns: int) -> pa.Table:
    """Return the entries, in the content columns of ``table``, that change its current rows to ``fresh``, one row a
    key.

    ``entries`` has all entries of the keys under review and no others: a current row that ``fresh`` lacks is
    retracted. The result is sorted by key, a retract before its insert. Rows are equal as in SQL: null equals null, and
    NaN equals NaN.
    """
    key, names = table.key[0], fact_names(table)
    last = last_rows(entries, key)
    place = pc.index_in(last[key], value_set=fresh[key].combine_chunks())
    old, new = last.select(names), fresh.select(names).take(place)
    is_current, is_found = pc.equal(last["op"], INSERT), pc.is_valid(place)
    kept = np.asarray(pc.and_(is_current, is_found)) & ~differing(old, new)
    ends, follows = pa.array(np.asarray(is_current) & ~kept), pa.array(np.asarray(is_found) & ~kept)
    unknown = pc.invert(pc.is_in(fresh[key], value_set=last[key].combine_chunks()))
    first = fresh.select(names).filter(unknown)
    parts = [
        _entries(table, old.filter(ends), last["sequence"].filter(ends), RETRACT, as_of_ns),
        _entries(table, new.filter(follows), pc.add(last["sequence"].filter(follows), 1), INSERT, as_of_ns),
        _entries(table, first, pa.array(np.zeros(first.num_rows, np.int64)), INSERT, as_of_ns),
    ]
    return pa.concat_tables(parts).sort_by([(key, "ascending"), ("sequence", "ascending")])


def differing(old: pa.Table, new: pa.Table) -> BoolArray:
    """Return whether each row of ``old`` differs from the row of ``new`` in its place; both have the same columns."""
    columns = zip(old.columns, (new[name] for name in old.column_names), strict=True)
    found = np.zeros(old.num_rows, np.bool_)
    for one, other in columns:
        found |= _differ(one.combine_chunks(), other.combine_chunks())
    return found


def _differ(old: pa.Array, new: pa.Array) -> BoolArray:
    if pa.types.is_list(old.type):
        found = _differ(pc.list_value_length(old), pc.list_value_length(new))
        rows = np.flatnonzero(~found)
        one, other = old.take(rows), new.take(rows)
        values = _differ(pc.list_flatten(one), pc.list_flatten(other))
        found[rows[np.asarray(pc.list_parent_indices(one))[values]]] = True
        return found
    equal = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(pc.is_null(old), pc.is_null(new)))
    if pa.types.is_floating(old.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False))
    return ~np.asarray(equal)


def _entries(table: Table, facts: pa.Table, sequences: pa.Array, op: str, as_of_ns: int) -> pa.Table:
    same = {"op": pa.repeat(op, facts.num_rows), "as_of_ns": pa.repeat(as_of_ns, facts.num_rows)}
    columns = {"sequence": sequences, **same, **dict(zip(facts.column_names, facts.columns, strict=True))}
    schema = table.content_schema
    return pa.table([columns[name] for name in schema.names], schema.names).cast(schema)
