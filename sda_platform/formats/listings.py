"""Short lists that a person writes as CSV (sensors, a fleet, screening volumes); an error names its line."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ListingError(ValueError):
    """A list that cannot be used; the text names the file, the line and what is wrong."""


def read_listing(
    path: Path,
    columns: Sequence[str],
    parse: Callable[[Sequence[str]], tuple[Key, Value]],
    optional: Sequence[str] = (),
    *,
    may_be_empty: bool = False,
) -> dict[Key, Value]:
    """Return the entries of the CSV at ``path`` in file order; its header is ``columns``, blank lines are left out.

    The header may go on with some of the ``optional`` columns. ``parse`` gets the fields of all columns, absent ones
    empty. It makes a key, which occurs once, and a value; its ValueError has the reason.

    Raises:
        ListingError: the file cannot be read, breaks that form, or lists nothing and may not be empty.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets begin UTF-8 with a mark
            reader = csv.reader(file, strict=True)
            lines = [(f"{path} line {reader.line_num}", row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ListingError(f"{path}: cannot be read: {error}") from error
    header = lines[0][1] if lines else []
    more = header[len(columns) :]
    if header[: len(columns)] != list(columns) or len(set(more)) < len(more) or not set(more) <= set(optional):
        expected = f"{','.join(columns)!r}" + (f", and any of {','.join(optional)}" if optional else "")
        raise ListingError(f"{path}: header is {','.join(header)!r}, expected {expected}")
    entries: dict[Key, Value] = {}
    for where, row in lines[1:]:
        if len(row) != len(header):
            raise ListingError(f"{where}: {len(row)} fields, expected {len(header)} ({','.join(header)})")
        fields = dict(zip(header, (field.strip() for field in row), strict=True))
        try:
            key, value = parse([fields.get(name, "") for name in (*columns, *optional)])
        except ValueError as error:
            raise ListingError(f"{where}: {error}") from None
        if key in entries:
            raise ListingError(f"{where}: {columns[0]} {key} occurs twice")
        entries[key] = value
    if not entries and not may_be_empty:
        raise ListingError(f"{path}: lists nothing below its header")
    return entries
