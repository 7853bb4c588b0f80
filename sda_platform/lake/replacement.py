"""The content of a table whose rows are replaced, after some of them changed. Arrow in, Arrow out."""

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.lake.errors import InvariantError
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

_ROW = "row"


def with_changes(
    table: Table, current: pa.Table, changed: pa.Table, sequence: int, removed: pa.Table | None = None
) -> pa.Table:
    """Return the whole content of ``table`` once ``changed`` rows have taken the place of the ``current`` rows of their
    keys.

    Rows with a key of ``removed`` are gone. Changed rows get ``sequence``, all others keep theirs. Rows are in the
    order of their key, so that the result does not depend on how the inputs were stored. Raises InvariantError where
    two changed rows have one key.
    """
    columns = [name for name in table.arrow_schema.names if name != COMMIT_SEQUENCE]
    stamped = changed.select(columns).append_column(
        COMMIT_SEQUENCE, pa.repeat(pa.scalar(sequence, pa.int64()), changed.num_rows)
    )
    keys = changed.select(table.key)
    if keys.group_by(list(table.key)).aggregate([]).num_rows != keys.num_rows:
        raise InvariantError(f"{table.name}: rows that change have a key ({', '.join(table.key)}) more than once")
    gone = keys if removed is None else pa.concat_tables([keys, removed.select(table.key).cast(keys.schema)])
    parts = [_without(table, current, gone), stamped]
    whole = pa.concat_tables([part.select(table.arrow_schema.names).cast(table.arrow_schema) for part in parts])
    return whole.sort_by([(name, "ascending") for name in table.key])


def replaced_where(table: Table, changed: pa.Table, sequence: int, removed: pa.Table | None = None) -> str:
    """Return the rows that the commit ``sequence`` of these rows replaces, as SQL; it is true of the changed rows
    themselves.

    The table's key is one integer column.
    """
    (key,) = table.key
    parts = [changed[key], *([] if removed is None else [removed[key]])]
    keys = sorted({number for part in parts for number in part.to_pylist()})
    own = f"{COMMIT_SEQUENCE} = {sequence}"
    return f"{own} OR {key} IN ({', '.join(map(str, keys))})" if keys else own


def _without(table: Table, current: pa.Table, keys: pa.Table) -> pa.Table:
    """``current`` without the rows that have one of ``keys``."""
    numbered = current.select(table.key).append_column(_ROW, pa.array(range(current.num_rows), pa.int64()))
    kept = numbered.join(keys.cast(numbered.drop_columns([_ROW]).schema), list(table.key), join_type="left anti")
    return current.take(kept.column(_ROW).take(pc.sort_indices(kept.column(_ROW))))
