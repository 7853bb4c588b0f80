"""A sensor's own CSV, read by a mapping of its columns: each line as the tracking data that it states.

The mapping lands with the file, as its first line. So the bytes of a segment alone determine its records: a mapping
that is edited later concerns files that land later, and a replay of earlier ones gives what they gave.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError

from sda_platform.formats.column_mapping import (
    OF_AN_OBSERVER,
    UNITS,
    WHITESPACE,
    Column,
    ColumnMapping,
    ColumnSource,
    Quantity,
)
from sda_platform.formats.column_times import time_ns_of
from sda_platform.formats.column_values import number_in
from sda_platform.formats.errors import RecordError, located
from sda_platform.formats.framing.mapped_lines import PREFIX, head_of, lines_before
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.limits import SPEED_OF_LIGHT_M_S
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.formats.optical import STATE_OF_OBSERVER
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tracking_data import TrackingData, TrackingParts, assembled, stated_comment
from sda_platform.refused_values import refusal_text

_KEYWORDS: Final[Mapping[Quantity, str]] = {
    "range": "RANGE",
    "range_rate": "DOPPLER_INSTANTANEOUS",
    "azimuth": "ANGLE_1",
    "elevation": "ANGLE_2",
    "right_ascension": "ANGLE_1",
    "declination": "ANGLE_2",
}
_STATED: Final[Mapping[Quantity, str]] = {
    "range_sigma": "range_sigma_m",
    "range_rate_sigma": "range_rate_sigma_m_s",
    "angle_sigma": "angle_sigma_rad",
    "clock_age": "clock_age_s",
    **dict(zip(OF_AN_OBSERVER, STATE_OF_OBSERVER, strict=True)),
}
"""What a tracking data message has no keyword for, by its column of observations."""
_LONGEST_LIGHT_S: Final = 60.0
# One that a person writes has a few thousand: more would be parsed for nothing.
_LONGEST_MAPPING_BYTES: Final = 2**16
_OPTIONAL: Final = frozenset({"range_rate", *_STATED}) - frozenset(OF_AN_OBSERVER)


def mapping_line(mapping: ColumnMapping) -> bytes:
    """Return the first line of a file that lands with this mapping; every option is written, so that defaults may
    change.
    """
    text = mapping.model_dump_json()
    escaped = "".join(each if each.isascii() else json.dumps(each)[1:-1] for each in text)
    return PREFIX + escaped.encode() + b"\n"


def misfit(mapping: ColumnMapping, name: str, beginning: bytes) -> str | None:
    """State why a file of this ``name`` and beginning does not fit this mapping; None: it fits."""
    if not fnmatchcase(name, mapping.files):
        return f"it is for files named {mapping.files}"
    if not mapping.header:
        return None
    before = lines_before(beginning, mapping.skip_lines, mapping.comment, has_header=True)
    names = _cells(before.last.decode("utf-8", "replace").lstrip("#"), mapping)
    absent = [each for each in mapping.columns() if (each not in names if isinstance(each, str) else each > len(names))]
    return f"column {absent[0]!r} is not in the header" if absent else None


def read_mapped_csv(record: RawRecord) -> TrackingData:
    """Return the tracking data of one line. Raises RecordError with the mapping, the column and the reason."""
    found = _head(record.header)
    if isinstance(found, RecordError):
        raise found.alone()
    mapping, names = found
    with located(f"mapping {mapping.mapping}"):
        line = _Line(mapping, names, _cells(_text(record.payload), mapping))
        return _tracking_data(mapping, line)


@lru_cache(maxsize=64)
def _head(header: bytes) -> tuple[ColumnMapping, Sequence[str]] | RecordError:
    """Return the mapping and the names of columns; the error, so that it is found once and not for each record."""
    try:
        head = head_of(header)
        mapping = mapping_in(head.mapping)
        return mapping, _cells(_text(head.columns).lstrip("#"), mapping) if mapping.header else ()
    except RecordError as error:
        return error.alone()


def mapping_in(line: bytes) -> ColumnMapping:
    """Return the mapping in the first line of a segment. Raises RecordError."""
    if len(line) > _LONGEST_MAPPING_BYTES:
        raise RecordError("bad_length", f"the mapping of the columns has {len(line):,} bytes, too many")
    try:
        return ColumnMapping.model_validate_json(line)
    except ValidationError as error:
        reason = refusal_text(error)[:200]
        raise RecordError("bad_field", f"the mapping of the columns cannot be used: {reason}") from None


class _Line:
    """The cells of one line, by the columns that sources name."""

    def __init__(self, mapping: ColumnMapping, names: Sequence[str], cells: list[str]) -> None:
        while names and len(cells) > len(names) and not cells[-1]:
            cells.pop()
        if names and len(cells) != len(names):
            raise RecordError("bad_length", f"the line has {len(cells)} values, the header {len(names)} columns")
        self._mapping, self._names, self._cells = mapping, names, cells

    def cell(self, column: Column) -> str:
        """Return what the line has there; empty where it states that it has none."""
        if isinstance(column, str):
            if column not in self._names:
                raise RecordError("missing_field", f"column {column!r} is not in the header")
            column = self._names.index(column) + 1
        if column > len(self._cells):
            raise RecordError("missing_field", f"column {column} is missing, the line has {len(self._cells)}")
        text = self._cells[column - 1]
        return "" if text in self._mapping.missing else text

    def text(self, source: ColumnSource | None, name: str) -> str:
        """A text; empty where there is no source."""
        if source is None:
            return ""
        if source.column is None:
            return str(source.value)
        if not (text := self.cell(source.column)):
            raise RecordError("missing_field", f"column {source.column!r} is empty, {name} is needed")
        return text

    def number(self, quantity: Quantity) -> str:
        """A quantity in the unit in which it is kept; empty where the line has none and may have none."""
        source = self._mapping.fields[quantity]
        if source.column is None:
            return number_in(str(source.value), source.unit, UNITS[quantity], quantity)
        text = self.cell(source.column)
        if not text and quantity in _OPTIONAL:
            return ""
        if self._mapping.decimal == ",":
            if "." in text:
                raise RecordError(
                    "bad_field", f"column {source.column!r} is {ascii(text)[:80]}: its decimals need a comma"
                )
            text = text.replace(",", ".")
        return number_in(text, source.unit, UNITS[quantity], f"column {source.column!r}")


def _tracking_data(mapping: ColumnMapping, line: _Line) -> TrackingData:
    text = {name: line.text(getattr(mapping, name), name) for name in ("sensor", "object", "track", "frame")}
    numbers = {quantity: number for quantity in mapping.fields if (number := line.number(quantity))}
    time_ns = _time_ns(mapping, line)
    if mapping.time.refers_to == "object" and mapping.is_of_a_radar:
        # Of the standard's two tags, the time of reception is taken.
        light_s = float(numbers["range"]) * 1000 / SPEED_OF_LIGHT_M_S
        if not light_s < _LONGEST_LIGHT_S:
            raise RecordError("out_of_range", f"range is {numbers['range'][:40]} km, too far for light to return")
        time_ns += round(light_s * 1_000_000_000)
    epoch = format_epoch(time_ns)
    path = {"PATH": "1,2,1", "ANGLE_TYPE": "AZEL", "RANGE_UNITS": "km"}
    if not mapping.is_of_a_radar:
        path = {"PATH": "2,1", "ANGLE_TYPE": "RADEC", "REFERENCE_FRAME": text["frame"]}
    metadata = {
        "TRACK_ID": text["track"],
        "TIME_SYSTEM": mapping.time.system,
        "PARTICIPANT_1": text["sensor"],
        "PARTICIPANT_2": text["object"],
        "MODE": "SEQUENTIAL",
        "TIMETAG_REF": "TRANSMIT" if mapping.time.refers_to == "transmit" else "RECEIVE",
        **path,
    }
    # A day and not an instant: so lines of a day are one message.
    header = {"CCSDS_TDM_VERS": "2.0", "CREATION_DATE": f"{epoch[:10]}T00:00:00", "ORIGINATOR": text["sensor"]}
    parts = TrackingParts([*map(_entry, header.items())], [*map(_entry, metadata.items())])
    if stated := _stated(mapping, line, numbers):
        parts.metadata.append(stated_comment(stated))
    parts.measured.extend((epoch, _entry((_KEYWORDS[q], numbers[q]))) for q in numbers if q in _KEYWORDS)
    return assembled(parts)


def _stated(mapping: ColumnMapping, line: _Line, numbers: Mapping[Quantity, str]) -> dict[str, Any]:
    stated: dict[str, Any] = {_STATED[q]: float(numbers[q]) for q in numbers if q in _STATED}
    texts = {
        "angle_aberration": mapping.aberration,
        "angle_refraction": mapping.refraction,
        "clock_quality": mapping.clock_quality,
    }
    return stated | {name: line.text(source, name) for name, source in texts.items() if source is not None}


def _time_ns(mapping: ColumnMapping, line: _Line) -> int:
    columns = mapping.time.columns
    shown = ", ".join(repr(column) for column in columns)
    texts = [line.cell(column) for column in columns]
    if not all(texts):
        raise RecordError("missing_field", f"column {shown} is empty, the time is needed")
    text = " ".join(texts)
    if mapping.decimal == ",":
        text = text.replace(",", ".")
    with located(f"column {shown}"):
        return time_ns_of(text, mapping.time.format)


def _entry(pair: tuple[str, str]) -> KeywordEntry:
    return KeywordEntry(*pair, "", "the line")


def _cells(text: str, mapping: ColumnMapping) -> list[str]:
    if mapping.separator == WHITESPACE:
        return text.split()
    try:
        (cells,) = csv.reader([text], delimiter=mapping.separator, strict=True)
    except (csv.Error, ValueError):
        raise RecordError("bad_field", "the line has a quote without its end") from None
    return [cell.strip() for cell in cells]


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise RecordError("bad_field", "the line is not UTF-8") from None
