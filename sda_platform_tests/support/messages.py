"""Messages of the standards and of Orekit's tests, and how to compare what was read of them."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sda_platform.formats.conversion import converted
from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.registry import FORMATS, known_format

DATA = Path(__file__).parents[1] / "data" / "messages"
MESSAGES = {path.name: path.read_bytes() for path in sorted(DATA.glob("*/*"))}
READERS = tuple(known for known in FORMATS if isinstance(known, RecordFormat) and known.write)


def record_format(name: str) -> RecordFormat:
    """The format of this name, which is read record by record."""
    known = known_format(name)
    assert isinstance(known, RecordFormat)
    return known


def format_of(data: bytes) -> RecordFormat:
    """The format that a message is recognised as."""
    return next(known for known in READERS if known.begins and known.begins.search(data))


def write(known: RecordFormat, values: Sequence[Any]) -> bytes:
    """A file of these values."""
    assert known.write is not None
    return known.write(values)


def siblings(known: RecordFormat) -> list[RecordFormat]:
    """The formats that hold the same message: KVN and XML."""
    kind = known.name.partition("-")[0]
    return [record_format(f"{kind}-kvn"), record_format(f"{kind}-xml")]


def values_and_errors(data: bytes, known: RecordFormat) -> tuple[list[Any], list[str]]:
    """What the records hold that can be read, and the errors of the others."""
    records = list(known.framing.split(data))
    values, errors = read_records(records, known.name, known.zone)
    good = [value for row, value in enumerate(values) if row not in errors]
    return good, [str(error_text(records[row], error)) for row, error in sorted(errors.items())]


def refusals(data: bytes, known: RecordFormat) -> list[RecordError]:
    """The errors of the records that cannot be read."""
    return list(read_records(list(known.framing.split(data)), known.name, known.zone)[1].values())


def convert(data: bytes, source: str, target: str) -> bytes:
    """A file whose records can all be read, in another format."""
    done = converted(data, source, target)
    assert done.refused == ()
    return done.data


def comparable(value: Any) -> Any:
    """A value without the places at which it was read, in types that can be compared."""
    if isinstance(value, KeywordEntry):
        return value.keyword, value.value, value.unit
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: comparable(getattr(value, field.name)) for field in fields(value) if field.compare}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [comparable(each) for each in value]
    return value
