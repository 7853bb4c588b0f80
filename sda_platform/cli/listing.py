"""The one renderer of rows: a table for people, JSON or CSV for programs."""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TextIO

import click
from rich.console import JustifyMethod, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from sda_platform.cli.people import console
from sda_platform.clock import iso
from sda_platform.foreign_text import in_csv

FORMS: Final = ("table", "json", "csv")
_CELL_CHARACTERS = 40


@dataclass(frozen=True)
class ListedColumn:
    """A column of a table: its header, and the field of a row or the text that a cell shows."""

    header: str
    cell: str | Callable[[Any], str | Text]
    justify: JustifyMethod = "left"
    is_whole: bool = False
    """Whether its cells are never wrapped."""

    def shown(self, row: Any) -> str | Text:
        """Return the cell of ``row``, a mapping or an object."""
        if not isinstance(self.cell, str):
            return self.cell(row)
        return cell(self.cell, row[self.cell] if isinstance(row, Mapping) else getattr(row, self.cell))


words = ListedColumn
word = partial(ListedColumn, is_whole=True)
number = partial(ListedColumn, justify="right", is_whole=True)


@dataclass(frozen=True)
class Output:
    """How a listing is asked for: its form, and most rows of it (None: all)."""

    form: str = "table"
    limit: int | None = None

    @property
    def is_table(self) -> bool:
        """Whether a person reads it."""
        return self.form == "table"

    def show(
        self, rows: Iterable[Any], columns: Sequence[ListedColumn] = (), *, document: Any = None, nothing: str = "none"
    ) -> None:
        """Print ``rows``, mappings or dataclasses. Without ``columns`` a table has one for each field of mappings.

        ``document`` is the JSON, where it has more than the rows. ``nothing`` replaces an empty table.
        """
        waiting = iter(rows)
        shown = islice(waiting, self.limit)
        if self.form == "json":
            print_json(list(shown) if document is None else document)
        elif self.form == "csv":
            write_csv(shown, sys.stdout)
        else:
            found = list(shown)
            shown_columns = columns or [ListedColumn(name, name) for name in (found[0] if found else ())]
            console.print(grid(shown_columns, found) if found else nothing)
            if next(waiting, None) is not None:
                total = f" of {len(rows):,}" if isinstance(rows, Sized) else ""
                console.print(f"{len(found):,}{total} rows; --limit shows more")


def grid(columns: Sequence[ListedColumn], rows: Iterable[Any], caption: str = "", *, title: str | None = None) -> Grid:
    """Return the table of ``rows``, mappings or objects, for the terminal."""
    made = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, title=title, caption=caption or None)
    made.caption_justify = "left"
    for column in columns:
        made.add_column(column.header, justify=column.justify, no_wrap=column.is_whole)
    for row in rows:
        made.add_row(*(column.shown(row) for column in columns))
    return made


def print_json(value: Any) -> None:
    """Print ``value`` as JSON."""
    click.echo(json.dumps(plain(value), indent=2))


def print_facts(as_json: bool, value: Any, lines: Iterable[RenderableType]) -> None:
    """Print ``value`` as JSON, or else the ``lines`` of it for people."""
    if as_json:
        print_json(value)
    else:
        console.print_lines(lines)


def write_csv(rows: Iterable[Any], stream: TextIO, fields: Sequence[str] = ()) -> None:
    """Write ``rows``, mappings or dataclasses, with the names of their fields above; what is nested is JSON.

    Text that a spreadsheet would execute is quoted (`foreign_text.in_csv`).
    """
    writer = csv.writer(stream, lineterminator="\n")
    if fields:
        writer.writerow(fields)
    for place, row in enumerate(map(plain, rows)):
        if not (fields or place):
            writer.writerow(row)
        texts = (json.dumps(each) if isinstance(each, dict | list) else each for each in row.values())
        writer.writerow(in_csv(each) if isinstance(each, str) else each for each in texts)


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it: bytes as hexadecimal text, what is not finite as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def cell(name: str, value: Any) -> str:
    """Return the value of a field as a cell: instants in ISO 8601, six digits of a number, at most 40 characters."""
    if isinstance(value, int) and name.endswith("_ns") and abs(value) > 10**15:
        return iso(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = "" if value is None else str(plain(value))
    return shown if len(shown) <= _CELL_CHARACTERS else f"{shown[: _CELL_CHARACTERS - 1]}…"
