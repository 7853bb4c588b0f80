"""Rows as plain values, which JSON can hold, and as CSV."""

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, TextIO

from sda_platform.foreign_text import in_csv


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
