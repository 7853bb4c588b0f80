"""Reading the records of a segment one by one: what each holds, or why it cannot be read."""

from collections.abc import Sequence
from typing import Any

from sda_platform.formats.cutting import split_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.plain_text import require_plain
from sda_platform.formats.records import RawRecord
from sda_platform.formats.registry import format_named


def read_records(
    records: Sequence[RawRecord], segment_format: str, zone: str
) -> tuple[list[Any], dict[int, RecordError]]:
    """Read each record (None where it cannot be read) and collect errors by row. Never raises for any bytes.

    Records of a format that ``zone`` does not carry are errors.
    """
    known = format_named(segment_format)
    values: list[Any] = [None] * len(records)
    errors: dict[int, RecordError] = {}
    for row, record in enumerate(records):
        try:
            if record.error_kind:
                raise RecordError(record.error_kind, record.error or "")
            if not isinstance(known, RecordFormat) or known.zone != zone:
                raise RecordError("unknown_format", f"feed {zone!r} does not carry {segment_format!r} records")
            value = known.read(record)
            require_plain(value)
            values[row] = value
        except RecordError as error:
            errors[row] = error.alone()
    return values, errors


def require_readable(data: bytes, segment_format: str, zone: str) -> None:
    """Raise RecordError for the first record of a segment that a reader of ``zone`` will refuse: for its writer."""
    errors = read_records(list(split_records(data, segment_format)), segment_format, zone)[1]
    if errors:
        raise errors[min(errors)]


def error_text(record: RawRecord, error: RecordError | None) -> str | None:
    """Return the error with the line of the segment: its own where it names one, else that on which the record
    begins.
    """
    if error is None:
        return None
    if not record.line or error.text.startswith("line "):
        return error.text
    return f"line {record.line}: {error.text}"
