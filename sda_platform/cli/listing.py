"""The one renderer of rows: a table for people, JSON or CSV for programs."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text
from typing_extensions import override

from sda_platform.cli.people import console
from sda_platform.clock import iso
from sda_platform.foreign_text import printable
from sda_platform.plain_rows import plain, write_csv

FORMS: Final = ("table", "json", "csv")
_CELL_CHARACTERS = 40
_FEWEST_WORDS = 5  # of a sentence; a name has fewer
# The narrowest column in which a sentence can be read, in cells.
_READABLE = 24


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

    def note(self, lines: Iterable[str]) -> None:
        """Print ``lines`` for people: below a table, beside JSON and CSV on the standard error."""
        for line in lines:
            click.echo(printable(line), err=not self.is_table)


class _Fitted(Grid):
    """A table that neither cuts a number or a word, nor writes a sentence as a column of words.

    In too narrow a terminal it is a line for each field of each row.
    """

    @override
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = sum(map(_least_width, self.columns))
        for gap in (2, 1):
            if needed + gap * (len(self.columns) - 1) <= options.max_width:
                self.padding = (0, gap, 0, 0)
                yield from super().__rich_console__(console, options)
                return
        fields = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False, title=self.title)
        fields.add_column(no_wrap=True)
        fields.add_column(overflow="fold")
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for column, value in zip(self.columns, row, strict=True):
                fields.add_row(" ".join(str(column.header).split()), value)
            fields.add_row("", "")
        yield fields
        if self.caption:
            yield Text(str(self.caption), style="table.caption")


def _least_width(column: Column) -> int:
    """Return the narrowest width, in cells, at which ``column`` is whole and can be read: of its lines, or of its
    words; a sentence has room for a few of them.
    """
    texts = [str(each) for each in (column.header, *column.cells)]
    parts = (part for text in texts for part in (text.splitlines() if column.no_wrap else text.split()))
    whole = max(map(cell_len, parts), default=0)
    is_sentence = not column.no_wrap and any(len(text.split()) >= _FEWEST_WORDS for text in texts)
    return max(whole, _READABLE) if is_sentence else whole


def grid(columns: Sequence[ListedColumn], rows: Iterable[Any], caption: str = "", *, title: str | None = None) -> Grid:
    """Return the table of ``rows``, mappings or objects, for the terminal."""
    made = _Fitted(box=None, padding=(0, 2, 0, 0), pad_edge=False, title=title, caption=caption or None)
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


def cell(name: str, value: Any) -> str:
    """Return the value of a field as a cell: instants in ISO 8601, six digits of a number, at most 40 characters."""
    if isinstance(value, int) and name.endswith("_ns") and abs(value) > 10**15:
        return iso(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = "" if value is None else str(plain(value))
    return shown if len(shown) <= _CELL_CHARACTERS else f"{shown[: _CELL_CHARACTERS - 1]}…"
