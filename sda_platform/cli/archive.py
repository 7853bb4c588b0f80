"""The past as people and programs read it: rows, differences and explanations as text and as JSON."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

from sda_platform.archive.errors import QueryRefused
from sda_platform.archive.explanation import Explanation, Known, as_of_dict
from sda_platform.archive.footers import TableLayout
from sda_platform.archive.stores import Store
from sda_platform.archive.table_diff import RowChange
from sda_platform.archive.version_vector import VersionVector
from sda_platform.clock import iso
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.table import Table

_CELL_CHARACTERS = 40
_SIGNS = {"inserted": "+", "changed": "~", "deleted": "-"}
_SHOWN = {
    "alert": ("risk", "collision_probability", "miss_distance_km", "tca_time_ns", "sequence"),
    "assessment": ("collision_probability", "probability_method", "miss_distance_km", "tca_time_ns", "state_source_1",
                   "state_source_2"),
    "candidate": ("miss_distance_km", "elements_epoch_1_ns", "elements_epoch_2_ns"),
    "element set": ("epoch_time_ns", "originator", "segment_name"),
    "track": ("state", "epoch_time_ns", "position_sigma_m", "manoeuvre_time_ns"),
}  # fmt: skip


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it: bytes as hexadecimal text, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class PinnedRows(Protocol):
    """What runs SQL over one version vector: `PinnedView` in this process, or `PinnedSession` on Spark."""

    vector: VersionVector

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The result, at least one batch."""
        ...


def rows_as_json(view: PinnedRows, sql: str) -> Iterator[str]:
    """The result as one JSON document, in parts: the state, the columns, and the rows as objects."""
    batches = view.batches(sql)
    names = json.dumps(next(batches).schema.names)
    yield f'{{"as_of": {json.dumps(plain(as_of_dict(view.vector)))},\n "columns": {names},\n "rows": ['
    separator = "\n  "
    for batch in batches:
        for row in batch.to_pylist():
            yield separator + json.dumps(plain(row))
            separator = ",\n  "
    yield "]}\n"


def print_rows(console: Console, view: PinnedRows, sql: str, limit: int) -> None:
    """The first ``limit`` rows as a table, under the moment that they belong to."""
    batches = view.batches(sql)
    grid = Grid(*next(batches).schema.names, box=None)
    rows = (row for batch in batches for row in batch.to_pylist())
    shown = 0
    for row in islice(rows, limit):
        shown += 1
        grid.add_row(*(_cell(name, value) for name, value in row.items()))
    more = "; there are more: --limit shows them" if next(rows, None) is not None else ""
    console.print(grid)
    console.print(f"{shown:,} rows, as of {view.vector.moment}{more}")


def snapshot_in(vector: VersionVector, table: Table) -> TableSnapshot:
    """The snapshot of ``table`` in a vector. Raises QueryRefused where the vector does not have it."""
    if table.name not in vector.snapshots:
        raise QueryRefused(f"{table.name} is not part of {vector.moment}")
    return vector.snapshots[table.name]


def changes_as_json(table: Table, snapshots: Sequence[TableSnapshot], changes: Iterable[RowChange]) -> dict[str, Any]:
    """A difference as JSON has it."""
    rows = [
        {"change": c.change, "key": c.key, "columns": c.columns, "before": c.before, "after": c.after} for c in changes
    ]
    before, after = (snapshot.version for snapshot in snapshots)
    return {"table": table.name, "from_version": before, "to_version": after, "changes": plain(rows)}


def print_changes(
    console: Console, table: Table, snapshots: Sequence[TableSnapshot], changes: Iterator[RowChange], limit: int
) -> None:
    """The first ``limit`` changes, one a line, and how many there are of each kind."""
    counts = dict.fromkeys(_SIGNS, 0)
    for number, change in enumerate(changes):
        counts[change.change] += 1
        if number < limit:
            console.print(_change_line(change))
    totals = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    before, after = (_version(snapshot) for snapshot in snapshots)
    console.print(f"{table.name}, {before} to {after}: {totals}")


def explanation_lines(found: Explanation) -> Iterator[str]:
    """What was known then and now, fact by fact, and the versions that were read."""
    yield f"alert {found.alert_id}: then is {found.then.moment}"
    for fact in found.facts:
        yield f"{fact.what}"
        yield from (f"  {line}" for line in _fact_lines(fact))
    yield f"versions read then: {found.then}"


def layout_line(found: TableLayout) -> str:
    """A table's files in one line."""
    return (
        f"{found.table}: {found.files:,} files, {found.size_bytes / 1e6:,.1f} MB, {found.rows:,} rows; "
        f"{found.small:,} below 64 MB, {found.large:,} above 512 MB"
    )


def layout_grid(found: TableLayout) -> Grid:
    """The columns of the files whose footers were read, largest first."""
    grid = Grid("column", "KB", "ratio", "codec", "encodings", box=None)
    for column in grid.columns[1:3]:
        column.justify = "right"
    for each in found.columns:
        encodings, codecs = " ".join(sorted(each.encodings)), " ".join(sorted(each.codecs))
        grid.add_row(each.name, f"{each.stored_bytes / 1e3:,.1f}", f"{each.ratio:.1f}", codecs, encodings)
    grid.caption = f"{found.row_groups:,} row groups in the {found.read:,} largest files"
    grid.caption_justify = "left"
    return grid


def store_grid(stores: Sequence[Store]) -> Grid:
    """Every store in one table."""
    grid = Grid("store", "kept", "removed by", "files", "MB", "MB a year", "oldest", box=None)
    for column in grid.columns[3:]:
        column.justify = "right"
    for each in stores:
        size = "" if each.size_bytes is None else f"{each.size_bytes / 1e6:,.1f}"
        files = "" if each.files is None else f"{each.files:,}"
        age = "" if each.oldest_days is None else f"{each.oldest_days:,.1f} days{', LATE' if each.is_late else ''}"
        growth = "" if each.yearly_bytes is None else f"{each.yearly_bytes / 1e6:,.1f}"
        grid.add_row(each.name, each.kept, each.removed_by, files, size, growth, age)
    return grid


def _fact_lines(fact: Known) -> Iterator[str]:
    if fact.then is None and fact.now is None:
        yield "none, then and now"
        return
    shown = next(names for what, names in _SHOWN.items() if fact.what.startswith(what))
    for when, row in (("then", fact.then), ("now ", fact.now)):
        if when == "now " and row is not None and fact.then is not None and not fact.changed:
            yield "now   the same"
        else:
            values = ", ".join(f"{n.removesuffix('_ns')} {_cell(n, row.get(n))}" for n in shown) if row else "none"
            yield f"{when}  {values}"


def _change_line(change: RowChange) -> str:
    key = " ".join(f"{name}={_cell(name, value)}" for name, value in change.key.items())
    if change.before is None or change.after is None:
        return f"{_SIGNS[change.change]} {key}"
    before, after = change.before, change.after
    cells = (f"{name} {_cell(name, before[name])} → {_cell(name, after[name])}" for name in change.columns)
    return f"{_SIGNS[change.change]} {key}: {', '.join(cells)}"


def _version(snapshot: TableSnapshot) -> str:
    return f"version {snapshot.version}" if snapshot.version >= 0 else "no table"


def _cell(name: str, value: Any) -> str:
    if isinstance(value, int) and name.endswith("_ns") and abs(value) > 10**15:
        return iso(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "" if value is None else str(plain(value))
    return text if len(text) <= _CELL_CHARACTERS else f"{text[: _CELL_CHARACTERS - 1]}…"
