"""How two versions of the same rows differ, in words: which keys are missing, surplus, or have other values."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.lake.table import Table
from sda_platform.replay.digest import canonical, digest, same_bits

_EXAMPLES = 3


def differences(table: Table, stored: pa.Table, replayed: pa.Table) -> list[str]:
    """Compare the ``stored`` rows of ``table`` with those that follow from its inputs; an empty list: equal."""
    if digest(table, stored) == digest(table, replayed):
        return []
    sides = (canonical(table, stored), canonical(table, replayed))
    keys = _occurrences(table, *sides)
    surplus = keys.filter(pc.greater(keys.column("stored"), keys.column("replayed")))
    missing = keys.filter(pc.less(keys.column("stored"), keys.column("replayed")))
    both = keys.filter(pc.and_(pc.equal(keys.column("stored"), 1), pc.equal(keys.column("replayed"), 1)))
    lines = [*_key_lines(table, missing, "missing"), *_key_lines(table, surplus, "too many or unfounded")]
    stored_again, replayed_again = sides[0].take(both.column("stored_row")), sides[1].take(both.column("replayed_row"))
    lines += _changed(table, stored_again, replayed_again)
    return lines or ["rows of one key that occurs several times differ"]


def _occurrences(table: Table, stored: pa.Table, replayed: pa.Table) -> pa.Table:
    """Each key, how often either side has it (``stored``, ``replayed``), and at which row of it."""
    sides = [_counted(stored, table, "stored", "replayed"), _counted(replayed, table, "replayed", "stored")]
    columns = ("stored", "stored_row", "replayed", "replayed_row")
    found = pa.concat_tables([side.select([*table.key, *columns]) for side in sides]).group_by(list(table.key))
    counted = found.aggregate([(name, "max" if name.endswith("_row") else "sum") for name in columns])
    return counted.rename_columns([*table.key, *columns])


def _counted(rows: pa.Table, table: Table, here: str, there: str) -> pa.Table:
    keys, count = rows.select(list(table.key)), rows.num_rows
    return (
        keys.append_column(here, pa.repeat(1, count))
        .append_column(f"{here}_row", pa.array(range(count), pa.int64()))
        .append_column(there, pa.repeat(0, count))
        .append_column(f"{there}_row", pa.nulls(count, pa.int64()))
    )


def _key_lines(table: Table, keys: pa.Table, what: str) -> list[str]:
    if not keys.num_rows:
        return []
    ordered = keys.sort_by([(name, "ascending") for name in table.key])
    shown = "; ".join(_key(table, row) for row in ordered.slice(0, _EXAMPLES).to_pylist())
    return [f"{keys.num_rows} rows are {what}, such as {shown}"]


def _changed(table: Table, stored: pa.Table, replayed: pa.Table) -> Iterator[str]:
    """A line for every column that differs in rows of equal key."""
    for name in stored.column_names:
        if same_bits(stored.column(name), replayed.column(name)):
            continue
        pairs = zip(stored.column(name).to_pylist(), replayed.column(name).to_pylist(), strict=True)
        # As text, by which a NaN equals itself and 0.0 is not -0.0.
        rows = [(n, a, b) for n, (a, b) in enumerate(pairs) if repr(a) != repr(b)]
        n, a, b = rows[0]
        key = _key(table, stored.slice(n, 1).to_pylist()[0])
        yield f"{len(rows)} rows differ in {name}, such as {key}: stored {_short(a)}, replayed {_short(b)}"


def _key(table: Table, row: dict[str, object]) -> str:
    return ", ".join(f"{name}={_short(row[name])}" for name in table.key)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
