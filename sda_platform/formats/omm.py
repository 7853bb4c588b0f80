"""Orbit mean-elements messages (CCSDS 502.0-B-3, OMM) as people send them: CSV, JSON, KVN and XML.

Reads a record into an `ElementSet`, numbers or numbers as text; writes CelesTrak's CSV of 17 columns, and the others.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Final

from sda_platform.formats.element_set import (
    DATA_MODE,
    DECAY_DATE,
    MARKINGS,
    OWNER,
    SOURCE,
    UNKNOWN,
    ElementSet,
    element_set,
    omm_fields,
)
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.json_fields import json_object, repeated
from sda_platform.formats.ndm import USER_DEFINED, KeywordEntry
from sda_platform.formats.orbit_keywords import OMM, USER_SECTION
from sda_platform.formats.parameter_messages import ParameterMessage, read_parameters, write_parameters
from sda_platform.formats.records import RawRecord

OMM_CSV_COLUMNS: Final[tuple[str, ...]] = (
    "OBJECT_NAME",
    "OBJECT_ID",
    "EPOCH",
    "MEAN_MOTION",
    "ECCENTRICITY",
    "INCLINATION",
    "RA_OF_ASC_NODE",
    "ARG_OF_PERICENTER",
    "MEAN_ANOMALY",
    "EPHEMERIS_TYPE",
    "CLASSIFICATION_TYPE",
    "NORAD_CAT_ID",
    "ELEMENT_SET_NO",
    "REV_AT_EPOCH",
    "BSTAR",
    "MEAN_MOTION_DOT",
    "MEAN_MOTION_DDOT",
)
_LONGEST_HEADER: Final = 2**16
_USER_DEFINED: Final = (DECAY_DATE, *MARKINGS)
_MORE: Final = ("ORIGINATOR", *_USER_DEFINED)
_COMMON: Final = {
    "CENTER_NAME": "EARTH",
    "REF_FRAME": "TEME",
    "TIME_SYSTEM": "UTC",
    "MEAN_ELEMENT_THEORY": "SGP4",
}


def read_omm_csv(record: RawRecord) -> ElementSet:
    """Read one line under the header of its segment; raises RecordError."""
    return element_set(csv_fields(record))


def csv_fields(record: RawRecord) -> dict[str, str]:
    """Read the values of one line by the names in the header of its segment; raises RecordError."""
    header = csv_header(record.header)
    try:
        line = record.payload.decode("utf-8")
        row = next(csv.reader([line]), []) if '"' in line else line.split(",")
    except (UnicodeDecodeError, csv.Error) as error:
        raise RecordError("bad_field", f"not a line of CSV in UTF-8: {str(error)[:200]}") from error
    if len(row) != len(header):
        raise RecordError("bad_length", f"line has {len(row)} fields, its header has {len(header)}")
    if twice := repeated(header):
        raise RecordError("bad_field", f"the header has {ascii(twice)[:80]} twice")
    return dict(zip(header, row, strict=True))


def csv_header(line: bytes) -> Sequence[str]:
    """Return the names in the header line of a CSV; none where it is longer than any header."""
    return _names(line) if len(line) <= _LONGEST_HEADER else ()


@lru_cache(maxsize=16)
def _names(line: bytes) -> Sequence[str]:
    """Return the keywords of a CSV header line; none where it cannot be read, so every line then fails."""
    try:
        return [name.strip() for name in next(csv.reader([line.decode("utf-8")]), [])]
    except (UnicodeDecodeError, csv.Error):
        return []


def read_omm_json(record: RawRecord) -> ElementSet:
    """Read one JSON object with OMM keywords; raises RecordError."""
    return element_set(json_object(record.payload))


def read_omm(record: RawRecord, encoding: str) -> ElementSet:
    """Read one message in ``kvn`` or ``xml``; raises RecordError."""
    message = read_parameters(record, OMM, encoding)
    return element_set(message.values(), message)


def encode_omm_csv(element_sets: Iterable[ElementSet]) -> bytes:
    """A segment in CelesTrak's 17 columns, and those of _MORE where a value is known; floats keep every digit.

    Raises ValueError: line break in a name.
    """
    rows = [omm_fields(element) | _more_fields(element) for element in element_sets]
    columns = [*OMM_CSV_COLUMNS, *(name for name in _MORE if any(row[name] for row in rows))]
    lines = [",".join(columns), *(",".join(_text(row[column]) for column in columns) for row in rows)]
    return ("\r\n".join(lines) + "\r\n").encode()


def encode_omm_json(element_sets: Iterable[ElementSet]) -> bytes:
    """Encode element sets as an array of JSON objects, one a line; unknown values are left out."""
    rows = [omm_fields(element) | _more_fields(element) for element in element_sets]
    present = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return ("[" + ",\n".join(map(partial(json.dumps, ensure_ascii=False), present)) + "]\n").encode()


def encode_omm(element_sets: Iterable[ElementSet], encoding: str) -> bytes:
    """Encode element sets as OMM in ``kvn`` or ``xml``; a set read from such a message is written as it was read.

    Without originator or creation date, a message has UNKNOWN and the epoch.
    """
    return write_parameters([each.message or _message(each) for each in element_sets], encoding)


def omm_values(element: ElementSet) -> dict[str, str | float | int | None]:
    """Return the values of an element set by every keyword that is written of one, also those that all sets share."""
    values = omm_fields(element) | _more_fields(element) | _COMMON
    values["OBJECT_NAME"] = element.object_name or UNKNOWN
    return values | {"CREATION_DATE": values["EPOCH"], "ORIGINATOR": element.originator or UNKNOWN}


def _message(element: ElementSet) -> ParameterMessage:
    values = omm_values(element)
    sections = []
    for section in OMM.sections:
        names = [keyword.name for keyword in section.keywords]
        entries = tuple(KeywordEntry(name, _plain(values[name])) for name in names if values.get(name) is not None)
        if section is USER_SECTION:
            known = [(name, values[name]) for name in _USER_DEFINED if values[name] is not None]
            entries = tuple(KeywordEntry(f"{USER_DEFINED}_{name}", str(value)) for name, value in known)
        if entries:
            sections.append((section.name, entries))
    return ParameterMessage(OMM, OMM.version, tuple(sections))


def _more_fields(element: ElementSet) -> dict[str, str | float | int | None]:
    """Values outside of CelesTrak's columns by keyword, in the order of _MORE."""
    decay_ns = element.decay_time_ns
    return {
        "ORIGINATOR": element.originator,
        DECAY_DATE: None if decay_ns is None else format_epoch(decay_ns),
        DATA_MODE: element.data_mode,
        OWNER: element.owner,
        SOURCE: element.source_name,
    }


def _plain(value: str | float | int | None) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _text(value: str | float | int | None) -> str:
    text = _plain(value)
    if "\n" in text or "\r" in text:
        raise ValueError(f"a record is one line, {text!r} has a line break")
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
