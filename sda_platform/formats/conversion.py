"""Conversion of a file from one format to another of the same content."""

from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.registry import FORMATS, known_format


class ConversionError(ValueError):
    """A file that cannot be converted; the text says which format or record, and why."""


def convert(data: bytes, source: str, target: str) -> bytes:
    """The content of ``data`` in the format ``source``, written in the format ``target``.

    Raises UnknownFormat, and ConversionError where the contents of the formats differ, or for the first record that
    cannot be read or written.
    """
    read_as, written_as = _record_format(source), _record_format(target)
    if read_as.content != written_as.content:
        raise ConversionError(
            f"{source} holds {read_as.content} records, {target} holds {written_as.content} records; "
            f"{source} converts to {', '.join(targets_of(source))}"
        )
    records = list(read_as.framing.split(data))
    values, errors = read_records(records, source, read_as.zone)
    if errors:
        row, error = min(errors.items())
        more = f" ({len(errors) - 1:,} more records cannot be read)" if len(errors) > 1 else ""
        raise ConversionError(f"record {records[row].number}, {error_text(records[row], error)}{more}")
    if not values:
        raise ConversionError("there is no record in it")
    try:
        return written_as.write(values)
    except (ValueError, RecordError) as error:
        raise ConversionError(f"cannot be written as {target}: {error}") from None


def targets_of(source: str) -> list[str]:
    """The formats that a file of the format ``source`` can be converted to. Raises UnknownFormat."""
    content = known_format(source).content
    return [known.name for known in FORMATS if isinstance(known, RecordFormat) and known.content == content]


def _record_format(name: str) -> RecordFormat:
    known = known_format(name)
    if not isinstance(known, RecordFormat):
        raise ConversionError(f"{name} is a format of one kind of sensor; there is nothing to convert it to")
    return known
