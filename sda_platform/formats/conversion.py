"""Conversion of a file from one format to another of the same content."""

from dataclasses import dataclass

from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.registry import FORMATS, known_format


class ConversionError(ValueError):
    """A file that cannot be converted; the text has the format or record, and the reason."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A file in its new format: its bytes, how many records it holds, and why others could not be read."""

    data: bytes
    records: int
    refused: tuple[str, ...]


def converted(data: bytes, source: str, target: str) -> Conversion:
    """The records of ``data``, in the format ``source``, that can be read, written in the format ``target``.

    Raises UnknownFormat, and ConversionError where the contents of the formats differ, no record can be read, or a
    record does not fit into the target.
    """
    read_as, written_as = _record_format(source), _record_format(target)
    if read_as.content != written_as.content:
        raise ConversionError(
            f"{source} holds {read_as.content} records, {target} {written_as.content} records; "
            f"{source} can become {', '.join(targets_of(source))}"
        )
    records = list(read_as.framing.split(data))
    values, errors = read_records(records, source, read_as.zone)
    refused = tuple(f"record {records[row].number}, {error_text(records[row], errors[row])}" for row in sorted(errors))
    sound = [value for row, value in enumerate(values) if row not in errors]
    if not sound:
        raise ConversionError(refused[0] if refused else "there is no record in it")
    try:
        return Conversion(written_as.write(sound), len(sound), refused)
    except (ValueError, RecordError) as error:
        raise ConversionError(f"cannot be written as {target}: {error}") from None


def targets_of(source: str) -> list[str]:
    """The formats that a file of the format ``source`` can be converted to. Raises UnknownFormat."""
    if not isinstance(known_format(source), RecordFormat):
        return []
    content = known_format(source).content
    return [known.name for known in FORMATS if isinstance(known, RecordFormat) and known.content == content]


def target_named(name: str, source: str) -> str:
    """The format that ``name`` means for a file of the format ``source``: ``xml`` for OEM in KVN is ``oem-xml``."""
    sibling = f"{source.partition('-')[0]}-{name}"
    return sibling if sibling in targets_of(source) else known_format(name).name


def _record_format(name: str) -> RecordFormat:
    known = known_format(name)
    if not isinstance(known, RecordFormat):
        raise ConversionError(f"{name} is the format of one kind of sensor; there is nothing to convert it to")
    return known
