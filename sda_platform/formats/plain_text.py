"""Text that controls a display is refused: a name with an escape sequence or a change of direction is no name.

Outputs make foreign text harmless (`foreign_text`). But rows are also read by other tools, which do not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.foreign_text import CONTROLS, is_plain
from sda_platform.formats.errors import RecordError

_OF_LINES: Final = frozenset({"comment", "remark"})
"""Fields in which people write several lines."""
_LAYOUT: Final = str.maketrans("", "", "\n\t")
_SHOWN: Final = 40


def require_plain(value: object) -> None:
    """Raise RecordError where a text in the record ``value`` has a character that controls a display."""
    texts = list(_texts(value, ""))
    if is_plain("".join(text for _, text in texts)):  # of nearly every record
        return
    for name, text in texts:
        problem = _problem(name, text)
        if problem:
            raise problem


def rows_with_controls(columns: Mapping[str, pa.Array]) -> dict[int, RecordError]:
    """Find rows of text columns with control characters; return the reason by row."""
    found: dict[int, RecordError] = {}
    for name, column in columns.items():
        if not pa.types.is_string(column.type):
            continue
        rows = np.flatnonzero(pc.fill_null(pc.match_substring_regex(column, CONTROLS), False))
        for row in rows.tolist():
            problem = _problem(name, column[row].as_py())
            if problem:
                found.setdefault(row, problem)
    return found


def _problem(name: str, text: str) -> RecordError | None:
    kept = text.translate(_LAYOUT) if name.lower() in _OF_LINES else text
    if is_plain(kept):
        return None
    letter = next(each for each in kept if not is_plain(each))
    what = f"the character U+{ord(letter):04X}, which controls a display"
    return RecordError("bad_field", f"{name or 'a text'} is {ascii(text)[:_SHOWN]}: it has {what}")


def _texts(value: object, name: str) -> Iterator[tuple[str, str]]:
    kind: Any = type(value)
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield "a keyword", str(key)
            yield from _texts(each, str(key))
    elif names := _field_names(kind):
        # A value is named by the keyword of its message, or by the attribute that an edit changes.
        keyword: Any = getattr(value, "keyword", getattr(value, "attribute", None))
        for field in names:
            owner = keyword if isinstance(keyword, str) and field == "value" else field
            yield from _texts(getattr(value, field), owner)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for each in value:
            yield from _texts(each, name)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass, none of another type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
