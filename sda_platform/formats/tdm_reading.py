"""Tracking data messages (CCSDS 503.0-B-2, TDM) in KVN and XML: the measurements of one time, as a record."""

from typing import Final

from sda_platform.formats.errors import RecordError, located
from sda_platform.formats.json_fields import finite, with_exponent
from sda_platform.formats.keywords import shown
from sda_platform.formats.ndm import (
    COMMENT,
    KeywordEntry,
    kvn_entry,
    leaves,
    one_line,
    place_of,
    text_lines,
    the_segment,
    version_entry,
)
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tdm_keywords import DATA
from sda_platform.formats.tracking_data import TrackingData, TrackingParts, assembled

_DATA_NAMES: Final = frozenset(keyword.name for keyword in DATA)
# Marks: the section that they end, and the one that they begin.
_MARKS: Final = {
    "META_START": ("header", "metadata"),
    "META_STOP": ("metadata", "space before the data"),
    "DATA_START": ("space before the data", "data"),
    "DATA_STOP": ("data", "end"),
}


def read_tdm_kvn(record: RawRecord) -> TrackingData:
    """Return the measurements of one record. Raises RecordError with the line, the keyword and the reason."""
    parts, section = TrackingParts(), "header"
    for number, line in enumerate(text_lines(record.payload), 1):
        text, place = line.strip(), f"line {record.line_of(number)}"
        if not text:
            continue
        if text in _MARKS:
            before, after = _MARKS[text]
            if section != before:
                raise RecordError("bad_field", f"{place}: {text} is in the {section}, must end the {before}")
            section = after
        elif section in ("header", "metadata"):
            (parts.header if section == "header" else parts.metadata).append(kvn_entry(text, place))
        elif text.split(maxsplit=1)[0] == COMMENT:
            parts.comments.append(kvn_entry(text, place).value)
        elif section == "data":
            entry = kvn_entry(text, place)
            words = entry.value.split()
            if len(words) != 2:
                raise RecordError("bad_length", f"{place}: {len(words)} values, must be an epoch and a number")
            parts.measured.append((words[0], _measured(entry.keyword, words[1], place)))
        else:
            raise RecordError("bad_field", f"{place}: {shown(text)} is in the {section}")
    if section != "end":
        raise RecordError("torn_record", f"the message ends in its {section}")
    return assembled(parts)


def read_tdm_xml(record: RawRecord) -> TrackingData:
    """Read a TDM in XML."""
    message, header, metadata, data = the_segment(record.payload, "tdm", record.line_of)
    parts = TrackingParts([*version_entry(message), *leaves(header)], leaves(metadata))
    for element in data:
        if element.tag == COMMENT:
            parts.comments.append(one_line(element.text or ""))
            continue
        place, entries = place_of(element), leaves(element)
        if element.tag != "observation":
            raise RecordError("bad_field", f"{place}: <{shown(element.tag)}> is no observation")
        if len(entries) != 2 or entries[0].keyword != "EPOCH":
            raise RecordError("bad_length", f"{place}: an observation has an EPOCH and one measurement")
        epoch, measured = entries
        parts.measured.append((epoch.value, _measured(measured.keyword, measured.value, measured.place)))
    return assembled(parts)


def _measured(keyword: str, value: str, place: str) -> KeywordEntry:
    if keyword not in _DATA_NAMES:
        raise RecordError("bad_field", f"{place}: {shown(keyword)} is no keyword of tracking data")
    with located(place):
        finite(value, keyword)
    return KeywordEntry(keyword, with_exponent(value), "", place)
