"""Orbit ephemeris messages (CCSDS 502.0-B-3, OEM) in KVN: one segment with its header, as a record."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from sda_platform.formats.ephemeris import Covariance, EphemerisParts, EphemerisSegment, EphemerisState, assembled
from sda_platform.formats.errors import RecordError, located
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.json_fields import finite
from sda_platform.formats.keywords import shown
from sda_platform.formats.ndm import COMMENT, kvn_entry, text_lines
from sda_platform.formats.orbit_keywords import ACCELERATION, COVARIANCE_TERMS, STATE
from sda_platform.formats.records import RawRecord

_ROWS: Final = 6
_NUMBERS: Final = tuple(keyword.name for keyword in (*STATE[1:], *ACCELERATION))
# Marks: the section that they end, and the one that they begin.
_MARKS: Final = {
    "META_START": ("header", "metadata"),
    "META_STOP": ("metadata", "data"),
    "COVARIANCE_START": ("data", "covariance"),
    "COVARIANCE_STOP": ("covariance", "end"),
}
# Some programs write them as in tracking data; they mean nothing here.
_MARKS_OF_OTHERS: Final = ("DATA_START", "DATA_STOP")


def read_oem_kvn(record: RawRecord) -> EphemerisSegment:
    """Return the ephemeris of one record. Raises RecordError with the line, the keyword and the reason."""
    parts = EphemerisParts()
    section, covariance = "header", list[tuple[str, str]]()
    for number, line in enumerate(text_lines(record.payload), 1):
        text, place = line.strip(), f"line {record.line_of(number)}"
        if not text:
            continue
        if text in _MARKS_OF_OTHERS and section == "data":
            continue
        if text in _MARKS:
            section = _next_section(section, text, place)
        elif section in ("header", "metadata"):
            (parts.header if section == "header" else parts.metadata).append(kvn_entry(text, place))
        elif text.split(maxsplit=1)[0] == COMMENT:
            parts.comments.append(kvn_entry(text, place).value)
        elif section == "covariance":
            covariance.append((place, text))
        else:
            parts.states.append(_state(text, place))
    if section not in ("data", "end"):
        raise RecordError("torn_record", f"the message ends in its {section}")
    parts.covariances.extend(_covariances(covariance))
    return assembled(parts)


def _next_section(section: str, mark: str, place: str) -> str:
    before, after = _MARKS[mark]
    if section != before and not (section == "end" and mark == "COVARIANCE_START"):
        raise RecordError("bad_field", f"{place}: {mark} is in the {section}, must end the {before}")
    return after


def _state(text: str, place: str) -> EphemerisState:
    words = text.split()
    if len(words) not in (7, 10):
        raise RecordError("bad_length", f"{place}: {len(words)} values, a state has an epoch and 6 or 9 numbers")
    with located(place):
        return EphemerisState(place, parse_epoch_ns(words[0]), [*map(finite, words[1:], _NUMBERS)])


def _covariances(lines: Sequence[tuple[str, str]]) -> Iterator[Covariance]:
    """Yield the matrices between COVARIANCE_START and COVARIANCE_STOP; each begins with its epoch."""
    begins = [row for row, (_, text) in enumerate(lines) if text.partition("=")[0].strip() == "EPOCH"]
    if lines and begins[:1] != [0]:
        raise RecordError("missing_field", f"{lines[0][0]}: a covariance begins with its EPOCH")
    for begin, end in pairwise([*begins, len(lines)]):
        yield _covariance(lines[begin:end])


def _covariance(lines: Sequence[tuple[str, str]]) -> Covariance:
    """A matrix without COV_REF_FRAME is in the frame of the states (502.0-B-3, chapter 5), as in XML."""
    place, text = lines[0]
    frame = ""
    epoch, terms, rows = kvn_entry(text, place).value, list[float](), 0
    for place, text in lines[1:]:
        if "=" in text:
            entry = kvn_entry(text, place)
            if entry.keyword != "COV_REF_FRAME" or rows:
                raise RecordError("bad_field", f"{place}: {shown(entry.keyword)} cannot be within a covariance")
            frame = entry.value
            continue
        words = text.split()
        rows += 1
        if rows > _ROWS:
            raise RecordError("bad_length", f"{place}: a covariance has {_ROWS} rows, this is row {rows}")
        if len(words) != rows:
            raise RecordError("bad_length", f"{place}: row {rows} of a covariance has {len(words)} numbers, not {rows}")
        with located(place):
            terms += map(finite, words, COVARIANCE_TERMS[len(terms) :])
    if rows != _ROWS:
        raise RecordError("bad_length", f"{lines[0][0]}: the covariance has {rows} rows, must have {_ROWS}")
    with located(lines[0][0]):
        return Covariance(parse_epoch_ns(epoch), frame, terms)
