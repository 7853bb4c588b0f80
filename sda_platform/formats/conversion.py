"""Conversion of a file from one format to another of the same content."""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from sda_platform.formats.cutting import split_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.registry import FORMATS, known_format

Writer = Callable[[Sequence[Any]], bytes]


class ConversionError(ValueError):
    """A file that cannot be converted; the text has the format or record, and the reason."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A file in its new format: its bytes, how many records it holds, and why others could not be read."""

    data: bytes
    records: int
    refused: tuple[str, ...]


def converted(data: bytes, source: str, target: str) -> Conversion:
    """Return the records of ``data``, in the format ``source``, that can be read, written in the format ``target``.

    A record that does not fit into the target is refused like one that cannot be read. Raises UnknownFormat, and
    ConversionError where the contents of the formats differ, or no record can be written.
    """
    read_as, written_as = _record_format(source), _record_format(target)
    if read_as.content != written_as.content or written_as.write is None:
        raise ConversionError(
            f"{source} holds {read_as.content} records, {target} {written_as.content} records"
            f"{'' if written_as.write else ' and is only read'}; {source} can become {', '.join(targets_of(source))}"
        )
    records = list(split_records(data, source))
    values, errors = read_records(records, source, read_as.zone)
    _note_unwritable(errors, values, written_as.write, target)
    refused = tuple(f"record {records[row].number}, {error_text(records[row], errors[row])}" for row in sorted(errors))
    sound = [value for row, value in enumerate(values) if row not in errors]
    if not sound:
        raise ConversionError(refused[0] if refused else "there is no record in it")
    return Conversion(written_as.write(sound), len(sound), refused)


def _note_unwritable(
    errors: MutableMapping[int, RecordError], values: Sequence[Any], write: Writer, target: str
) -> None:
    """Add the records that do not fit into the target; they are looked for only where not all of them fit together."""
    sound = [row for row in range(len(values)) if row not in errors]
    reason = _unwritable([values[row] for row in sound], write)
    for row in sound if reason else ():
        if reason := _unwritable([values[row]], write):
            errors[row] = RecordError("out_of_range", f"cannot be written as {target}: {reason}")


def _unwritable(values: Sequence[Any], write: Writer) -> str | None:
    try:
        write(values)
    except ValueError as error:
        return str(error)
    return None


def targets_of(source: str) -> list[str]:
    """Return the formats that a file of the format ``source`` can be converted to. Raises UnknownFormat."""
    if not isinstance(known_format(source), RecordFormat):
        return []
    content = known_format(source).content
    alike = (known for known in FORMATS if isinstance(known, RecordFormat) and known.content == content)
    return [known.name for known in alike if known.write]


def target_named(name: str, source: str) -> str:
    """Return the format that ``name`` means for a file of the format ``source``: ``xml`` for an OEM in KVN is
    ``oem-xml``.
    """
    short = [target for target in targets_of(source) if target == name or target.endswith(f"-{name}")]
    return short[0] if len(short) == 1 else known_format(name).name


def _record_format(name: str) -> RecordFormat:
    known = known_format(name)
    if not isinstance(known, RecordFormat):
        raise ConversionError(f"{name} is the format of one kind of sensor; there is nothing to convert it to")
    return known
