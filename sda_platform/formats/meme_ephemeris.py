"""Operators' ephemerides as Space-Track exchanges them ("MEME", modified ITC): EME2000, UTC, covariances in UVW.

Four lines state when it was made, its span, its source and the frame of the covariances. Then a line has the time
(yyyydddhhmmss.sss), position and velocity, km and km/s. The next three have seven terms each of the covariance's lower
triangle. The object's number is in the name of the file: `MEME_44713_STARLINK-1007_…`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from sda_platform.formats.ephemeris import Covariance, EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.ndm import text_lines
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tabulated_paths import PathTable, numbers, object_of_file
from sda_platform.units import SECOND_NS

BEGINS: Final = re.compile(rb"^ephemeris_start:", re.MULTILINE)
_CREATED: Final = re.compile(r"created:\s*(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC")
_STOP: Final = re.compile(r"ephemeris_stop:\s*(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) UTC")
_EPOCH: Final = re.compile(r"(\d{4})(\d{3})(\d\d)(\d\d)(\d\d)(\.\d{1,9})?")
_FRAMES: Final = {"UVW": "RTN", "MEME": "EME2000", "EME2000": "EME2000"}
_STATE: Final = ("X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT")


def read_meme_ephemeris(record: RawRecord) -> EphemerisSegment:
    """Return the ephemeris of one file. Raises RecordError with the line and the reason."""
    lines = text_lines(record.payload)
    table = PathTable(object_of_file(lines), "EME2000", "UTC")
    frame, terms, begun = "", list[str](), ""
    for number, line in enumerate(lines, 1):
        text, place = line.strip(), f"line {record.line_of(number)}"
        words = text.split()
        if not words or text.startswith("#"):
            continue
        if ":" in words[0]:
            table.comments.append(text)
            if found := _CREATED.match(text):
                table.created = f"{found[1]}T{found[2]}"
            if found := _STOP.search(text):
                table.stop = f"{found[1]}T{found[2]}"
        elif text.upper() in _FRAMES:
            frame = _FRAMES[text.upper()]
        elif words[0][0].isalpha():
            raise RecordError("out_of_range", f"{place}: {ascii(text)[:40]} is no frame of covariances that is read")
        elif len(words) == 1 + len(_STATE):
            if _EPOCH.fullmatch(words[0]):
                _take_covariance(table, terms, frame, begun)
                terms, begun = [], place
                row = numbers(words[1:], place, _STATE)
                table.add(place, _instant_ns(words[0], place), row[:3], row[3:])
            else:
                terms += words
        else:
            raise RecordError("bad_length", f"{place}: {len(words)} values, a line has 7")
    _take_covariance(table, terms, frame, begun)
    return table.ephemeris()


def _take_covariance(table: PathTable, terms: list[str], frame: str, place: str) -> None:
    """The covariance of the state at ``place``, whose lines have ``terms``."""
    if not terms:
        return
    if not place:
        raise RecordError("bad_field", "a covariance comes before the first state")
    if not frame:
        raise RecordError("missing_field", f"{place}: the frame of the covariances is missing, such as UVW")
    table.covariances.append(Covariance(table.times_ns[-1], frame, numbers(terms, place, COVARIANCE_TERMS)))


def _instant_ns(text: str, place: str) -> int:
    year, day, hour, minute, second, fraction = _EPOCH.fullmatch(text).groups()  # type: ignore[union-attr]  # it matched
    is_leap = int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0)
    if not (1957 <= int(year) < 2100 and 1 <= int(day) <= 365 + is_leap and int(hour) < 24 and int(minute) < 60):
        raise RecordError("bad_field", f"{place}: the epoch is {text!a}, must be yyyydddhhmmss.sss")
    if int(second) > 59:
        raise RecordError("bad_field", f"{place}: the epoch is {text!a}, its seconds must be below 60")
    start = datetime(int(year), 1, 1, tzinfo=UTC) + timedelta(days=int(day) - 1, hours=int(hour), minutes=int(minute))
    nanoseconds = int((fraction or ".0")[1:].ljust(9, "0"))
    return (round(start.timestamp()) + int(second)) * SECOND_NS + nanoseconds
