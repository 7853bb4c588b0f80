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
    path: Path, columns: Sequence[str], parse: Callable[[Sequence[str]], tuple[Key, Value]]
) -> dict[Key, Value]:
    """The entries of the CSV at ``path`` in file order; its header is ``columns``, blank lines are left out.

    ``parse`` makes a key, which occurs once, and a value of a line's fields; its ValueError has the reason.

    Raises:
        ListingError: the file cannot be read, breaks that form, or lists nothing.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            lines = [(f"{path} line {reader.line_num}", row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ListingError(f"{path}: cannot be read: {error}") from error
    header = lines[0][1] if lines else []
    if header != list(columns):
        raise ListingError(f"{path}: header is {','.join(header)!r}, expected {','.join(columns)!r}")
    entries: dict[Key, Value] = {}
    for where, row in lines[1:]:
        if len(row) != len(columns):
            raise ListingError(f"{where}: {len(row)} fields, expected {len(columns)} ({','.join(columns)})")
        try:
            key, value = parse([field.strip() for field in row])
        except ValueError as error:
            raise ListingError(f"{where}: {error}") from None
        if key in entries:
            raise ListingError(f"{where}: {columns[0]} {key} occurs twice")
        entries[key] = value
    if not entries:
        raise ListingError(f"{path}: lists nothing below its header")
    return entries
