"""Predictions for laser ranging (ILRS Consolidated Prediction Format, CPF 1 and 2): ITRF, UTC.

Source: ILRS, "Consolidated Laser Ranging Prediction Format", version 1.01 and 2.00. Records H1 and H2 are the header,
10 positions (m), 20 velocities (m/s), 99 the end. Other records are corrections for ranging, and not read.
"""

import re
from typing import Final

from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.ndm import text_lines
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tabulated_paths import FileObject, PathTable, numbers
from sda_platform.units import DAY_NS

BEGINS: Final = re.compile(rb"^H1\s+CPF\b", re.MULTILINE | re.IGNORECASE)
_FRAMES: Final = {"0": "ITRF", "1": "TOD", "2": "EME2000"}
"""By the record H2: geocentric true body-fixed, true of date, mean of J2000."""
_UNIX_MJD: Final = 40_587
_POSITION: Final = ("direction", "MJD", "seconds of day", "leap second", "X", "Y", "Z")
_VELOCITY: Final = ("direction", "X_DOT", "Y_DOT", "Z_DOT")
_COSPAR: Final = re.compile(r"(\d\d)(\d{3})(\d\d)")
_FRAME_AT: Final = 18  # of the words of H2: after ids (3), two instants (12), step, compatibility and target class


def read_cpf(record: RawRecord) -> EphemerisSegment:
    """Return the ephemeris of one file. Raises RecordError with the line and the reason."""
    table, is_ended = PathTable(FileObject(""), "", "UTC"), False
    for number, line in enumerate(text_lines(record.payload), 1):
        words, place = line.split(), f"line {record.line_of(number)}"
        kind = words[0].upper() if words else ""
        if kind in _RECORDS:
            _RECORDS[kind](table, words, place)
        is_ended = is_ended or kind == "99"
    if not is_ended:
        raise RecordError("torn_record", "the file ends before its record 99")
    if not table.frame:
        raise RecordError("missing_field", "the record H2 is missing")
    return table.ephemeris()


def _take_position(table: PathTable, words: list[str], place: str) -> None:
    row = numbers(words[1:], place, _POSITION)
    if row[0] == 0:  # the common epoch; other directions are for transponders
        table.add(place, _instant_ns(row[1], row[2], place), [each / 1000 for each in row[4:]], None)


def _take_velocity(table: PathTable, words: list[str], place: str) -> None:
    row = numbers(words[1:], place, _VELOCITY)
    if row[0] == 0:
        if not table.times_ns:
            raise RecordError("bad_field", f"{place}: a velocity before the first position")
        table.velocities_km_s[-1] = [each / 1000 for each in row[1:]]


def _header(table: PathTable, words: list[str], place: str) -> None:
    if len(words) < 9 or words[1].upper() != "CPF" or words[2] not in ("1", "2"):
        raise RecordError("bad_field", f"{place}: H1 is no header of CPF 1 or 2")
    year, month, day, hour = words[4:8]
    if not all(each.isdigit() for each in (year, month, day, hour)):
        raise RecordError("bad_field", f"{place}: H1 has no date of production")
    table.originator = words[3]
    table.created = f"{year}-{int(month):02}-{int(day):02}T{int(hour):02}:00:00"
    # Version 2 has a sub-daily number before the name.
    name_at = 9 + (words[2] == "2")
    table.object = FileObject("", words[name_at] if len(words) > name_at else "")


def _take_object(table: PathTable, words: list[str], place: str) -> None:
    if len(words) <= _FRAME_AT + 1:
        raise RecordError("bad_length", f"{place}: H2 has {len(words)} values, must have {_FRAME_AT + 2} or more")
    norad, cospar, frame = words[3], words[1], words[_FRAME_AT + 1]
    if frame not in _FRAMES:
        raise RecordError("out_of_range", f"{place}: the reference frame is {ascii(frame)[:20]}, must be 0, 1 or 2")
    table.frame = _FRAMES[frame]
    found = _COSPAR.fullmatch(cospar.zfill(7))
    if norad.isdigit() and int(norad):
        table.object = FileObject(norad, table.object.name)
    elif found and 1 <= int(found[3]) <= 26:
        table.object = FileObject(f"{found[1]}{found[2]}{chr(ord('A') + int(found[3]) - 1)}", table.object.name)
    else:
        raise RecordError("missing_field", f"{place}: H2 has neither a catalogue number nor a COSPAR id")


def _instant_ns(mjd: float, second: float, place: str) -> int:
    if not (0 <= second < 86_401 and mjd == int(mjd) and 36_000 < mjd < 90_000):
        raise RecordError("out_of_range", f"{place}: MJD {mjd:g} and {second:g} s are no instant")
    return (int(mjd) - _UNIX_MJD) * DAY_NS + round(second * 1e9)


_RECORDS: Final = {"H1": _header, "H2": _take_object, "10": _take_position, "20": _take_velocity}
