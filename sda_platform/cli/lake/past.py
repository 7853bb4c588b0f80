"""Past states as people and programs read them: results of queries, differences, stores, and files on disk."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import click
import pyarrow as pa

from sda_platform.cli.listing import Output, cell, number, print_json, word, words
from sda_platform.cli.people import console
from sda_platform.history.errors import QueryRefused
from sda_platform.history.explanation import as_of_dict
from sda_platform.history.table_diff import RowChange
from sda_platform.history.version_vector import VersionVector
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.table import Table
from sda_platform.plain_rows import plain, write_csv
from sda_platform.retention_settings import RetentionSettings
from sda_platform.runtime.platform_home import RETENTION, running_platform
from sda_platform.settings import Settings

_SIGNS = {"inserted": "+", "changed": "~", "deleted": "-"}


class PinnedRows(Protocol):
    """What runs SQL over one version vector: `PinnedView` in this process, or `PinnedSession` on Spark."""

    vector: VersionVector

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Return the result, at least one batch."""
        ...


def show_result(output: Output, view: PinnedRows, sql: str) -> None:
    """Print the result of ``sql``; JSON and CSV are written while it is computed."""
    batches = view.batches(sql)
    names = next(batches).schema.names
    rows = (row for batch in batches for row in batch.to_pylist())
    if output.form == "json":
        for part in _as_json(view.vector, names, islice(rows, output.limit)):
            click.echo(part, nl=False)
    elif output.form == "csv":
        write_csv(islice(rows, output.limit), sys.stdout, names)
    else:
        output.show(rows, nothing="no row")
        console.print(f"as of {view.vector.moment}")


def _as_json(vector: VersionVector, names: list[str], rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One JSON document, in parts: the state, the columns, and the rows as objects."""
    yield f'{{"as_of": {json.dumps(plain(as_of_dict(vector)))},\n "columns": {json.dumps(names)},\n "rows": ['
    separator = "\n  "
    for row in rows:
        yield separator + json.dumps(plain(row))
        separator = ",\n  "
    yield "]}\n"


def snapshot_in(vector: VersionVector, table: Table) -> TableSnapshot:
    """Return the snapshot of ``table`` in a vector. Raises QueryRefused where the vector does not have it."""
    if table.name not in vector.snapshots:
        raise QueryRefused(f"{table.name} is not part of {vector.moment}")
    return vector.snapshots[table.name]


def show_changes(
    output: Output, table: Table, snapshots: Sequence[TableSnapshot], changes: Iterable[RowChange]
) -> None:
    """Print the rows that differ between two states, and for people how many there are of each kind."""
    counts = dict.fromkeys(_SIGNS, 0)
    if output.form == "json":
        before, after = (snapshot.version for snapshot in snapshots)
        found = list(islice(changes, output.limit))
        print_json({"table": table.name, "from_version": before, "to_version": after, "changes": found})
        return
    counted = _counted(changes, counts)
    output.show(counted, _CHANGE_COLUMNS, nothing="no row differs")
    if output.is_table:
        for _ in counted:  # those beyond the limit
            pass
        totals = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        states = " to ".join(f"version {each.version}" if each.version >= 0 else "no table" for each in snapshots)
        console.print(f"{table.name}, {states}: {totals}")


def _counted(changes: Iterable[RowChange], counts: dict[str, int]) -> Iterator[RowChange]:
    for change in changes:
        counts[change.change] += 1
        yield change


def _differences(change: RowChange) -> str:
    if change.before is None or change.after is None:
        return ""
    before, after = change.before, change.after
    return ", ".join(f"{name} {cell(name, before[name])} → {cell(name, after[name])}" for name in change.columns)


def retention_in_force(settings: Settings) -> tuple[RetentionSettings, str]:
    """Return how long what is stored is kept, and, for people, by whose settings: those of a platform count.

    One that is still starting has stated none.
    """
    state = running_platform(settings.home.absolute())
    if state is None or RETENTION not in state:
        return settings.retention, "by the settings of this command: no platform runs"
    # It may be of another release, with other settings.
    stated = {name: value for name, value in state[RETENTION].items() if name in RetentionSettings.model_fields}
    return RetentionSettings.model_validate(stated), "by the settings of the platform that runs"


def _age(days: float | None, is_late: bool) -> str:
    return "" if days is None else f"{days:,.1f} days{', LATE' if is_late else ''}"


def _megabytes(count: int | float | None) -> str:
    return "" if count is None else f"{count / 1e6:,.1f}"


_CHANGE_COLUMNS = (
    word("", lambda change: _SIGNS[change.change]),
    words("key", lambda change: " ".join(f"{name}={cell(name, value)}" for name, value in change.key.items())),
    words("differs in", _differences),
)
STORE_COLUMNS: Final = (
    words("store", "name"),
    words("kept", "kept"),
    words("removed by", "removed_by"),
    number("files", lambda store: "" if store.files is None else f"{store.files:,}"),
    number("MB", lambda store: _megabytes(store.size_bytes)),
    number("MB a year", lambda store: _megabytes(store.yearly_bytes)),
    number("oldest", lambda store: _age(store.oldest_days, store.is_late)),
)
LAYOUT_COLUMNS: Final = (
    word("table", "table"),
    number("files", lambda layout: f"{layout.files:,}"),
    number("MB", lambda layout: _megabytes(layout.size_bytes)),
    number("rows", lambda layout: f"{layout.rows:,}"),
    number("below 64 MB", lambda layout: f"{layout.small:,}"),
    number("above 512 MB", lambda layout: f"{layout.large:,}"),
)
FILE_COLUMNS: Final = (
    words("column", "name"),
    number("KB", lambda column: f"{column.stored_bytes / 1e3:,.1f}"),
    number("ratio", lambda column: f"{column.ratio:.1f}"),
    words("codec", lambda column: " ".join(sorted(column.codecs))),
    words("encodings", lambda column: " ".join(sorted(column.encodings))),
)
