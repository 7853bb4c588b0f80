"""Precise orbits of the IGS and ILRS (SP3-c, SP3-d): positions in an ITRF at GPS time, UTC or TAI.

Source: IGS, "The Extended Standard Product 3 Orbit Format (SP3-d)". A file has many satellites; each is a record: the
header, the epochs and its own lines. Satellites have numbers of their system (G01, L51), no catalogue numbers. A
comment `/* OBJECT L51 = 8820` states one. A file with one satellite may have it in its name. Those of navigation
satellites are looked up in the names of the catalogue.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from sda_platform.formats.designators import is_navigation_number
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.framing.documents import document_spans
from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.framing.repeated import Repetition
from sda_platform.formats.ndm import text_lines
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tabulated_paths import FileObject, PathTable, numbers, object_of_file

BEGINS: Final = re.compile(rb"^#[cd][PV]\s*\d{4}", re.MULTILINE)
BEGINS_A_FILE: Final = re.compile(rb"^(?:# [^\n]*\n){0,20}#[cd][PV]\s*\d{4}", re.MULTILINE)
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_OF_SATELLITE: Final = re.compile(rb"(?:[PV]|EP|EV)([A-Z ][ \d]\d)")
_OBJECT: Final = re.compile(r"/\*\s*OBJECT\s+([A-Z]\d\d)\s*=\s*(\S+)")
_TIME_SYSTEMS: Final = {
    "GPS": ("GPS", 0), "UTC": ("UTC", 0), "TAI": ("TAI", 0), "GAL": ("GPS", 0), "QZS": ("GPS", 0), "IRN": ("GPS", 0),
    "GLO": ("UTC", 0), "BDT": ("GPS", 14_000_000_000),
}  # fmt: skip
"""By each a system that can be converted, and what is added to have it, ns. The other systems' times are GPS time to
nanoseconds, GLONASS' is UTC, BeiDou's is 14 s behind GPS."""
_EARTH_FIXED: Final = re.compile(r"(?:ITR|IT\d|IG[A-Z0]|SLR|SLF|WGS)\w*", re.IGNORECASE)
"""ITR97, ITRF, IGS20, IGb14, SLRF, WGS84: realisations of ITRF, to metres."""


def split_sp3(data: bytes) -> Iterator[RawRecord]:
    """Yield one record for each satellite of each file in ``data``: its header, the epochs, and its lines."""
    number, at, repetition = 0, LineNumbers(data), Repetition(len(data))
    for start, end in document_spans(data, BEGINS_A_FILE):
        begin = at.at(start)
        lines = [(begin + row, found.group()) for row, found in enumerate(_LINE.finditer(data[start:end]))]
        first = next((row for row, (_, line) in enumerate(lines) if line.startswith(b"* ")), len(lines))
        own: dict[bytes, list[tuple[int, bytes]]] = {}
        for place, line in lines[first:]:
            own.setdefault(_owner(line), []).append((place, line))
        common = [*lines[:first], *own.pop(b"", [])]
        if len(own) > 1:  # what states one object, such as the file's name, is said of none of them
            common = [(place, line) for place, line in common if place - begin >= first or not line.startswith(b"# ")]
        size = len(own) * sum(len(line) for _, line in common) + end - start
        if reason := repetition.excess(size, len(own) * len(common) + len(lines)):
            yield RawRecord(number, None, data[start:end], "bad_length", reason, begin)
            number += 1
            continue
        for of_satellite in own.values() or [[]]:
            kept = sorted([*common, *of_satellite])
            pieces = tuple((row, line) for row, (line, _) in enumerate(kept, 1))
            yield RawRecord(number, None, b"".join(line for _, line in kept), line=begin, pieces=pieces)
            number += 1


def _owner(line: bytes) -> bytes:
    """Return the satellite of a line of positions, velocities or correlations; empty: the line is of all."""
    found = _OF_SATELLITE.match(line)
    return found[1] if found else b""


class _Reader:
    """Reads the lines of one satellite into a table."""

    def __init__(self) -> None:
        self.table = PathTable(FileObject(""), "ITRF", "")
        self.objects: dict[str, str] = {}
        self.satellite, self.satellites, self.is_ended = "", 0, False
        self.epochs, self.stated = 0, ("", "")
        self._time_ns: int | None = None
        self._ahead_ns = 0

    def take(self, line: str, place: str) -> None:
        """Take the next line. Raises RecordError."""
        if line.startswith("#") and line[1:2] in "cd" and line[2:3] in "PV":
            self.table.originator = line[56:60].strip()
            _require_earth_fixed(line[46:51].strip(), place)
            self.stated = line[32:39].strip(), place
        elif line.startswith("+ ") and not self.satellites:
            self.satellites = int(line[1:6].strip() or 0) if line[1:6].strip().isdigit() else 0
        elif line.startswith("%c") and not self.table.time_system:
            self.table.time_system, self._ahead_ns = _time_system(line[9:12].strip(), place)
        elif found := _OBJECT.match(line):
            self.objects[found[1]] = found[2]
        elif line.startswith("* "):
            self._time_ns = _instant_ns(line, place) + self._ahead_ns
            self.epochs += 1
        elif line[:1] in ("P", "V") and len(line) > 3:
            self._take_numbers(line, place)
        self.is_ended = self.is_ended or line.startswith("EOF")

    def _take_numbers(self, line: str, place: str) -> None:
        row = numbers(line[4:46].split(), place, ("X", "Y", "Z"))
        if self._time_ns is None:
            raise RecordError("bad_field", f"{place}: a position before the first epoch")
        self.satellite = line[1:4].replace(" ", "0" if line[1] != " " else "G")
        if line[0] == "P" and any(row):  # zeros are a position that is not known
            self.table.add(place, self._time_ns, row, None)
        elif line[0] == "V" and any(row) and self.table.times_ns[-1:] == [self._time_ns]:  # so are zeros of velocities
            self.table.velocities_km_s[-1] = [each / 10_000 for each in row]  # dm/s


def read_sp3(record: RawRecord) -> EphemerisSegment:
    """Return the ephemeris of one satellite. Raises RecordError with the line and the reason."""
    lines, reader = text_lines(record.payload), _Reader()
    for number, line in enumerate(lines, 1):
        reader.take(line, f"line {record.line_of(number)}")
    table, satellite = reader.table, reader.satellite
    if not reader.is_ended:
        raise RecordError("torn_record", "the file ends before its EOF")
    stated, place = reader.stated
    if stated.isdigit() and int(stated) != reader.epochs:
        raise RecordError(
            "torn_record", f"{place}: the header states {stated} epochs, the file has {reader.epochs}: it is not whole"
        )
    if not satellite:
        raise RecordError("missing_field", "the file has no position")
    table.object = _object(reader, lines)
    return table.ephemeris()


def _require_earth_fixed(name: str, place: str) -> None:
    if not _EARTH_FIXED.fullmatch(name):
        reason = f"the coordinate system is {name!a}, must be an Earth-fixed one of ITRF, IGS, SLRF or WGS84"
        raise RecordError("out_of_range", f"{place}: {reason}")


def _time_system(name: str, place: str) -> tuple[str, int]:
    if name not in _TIME_SYSTEMS:
        allowed = ", ".join(_TIME_SYSTEMS)
        raise RecordError("out_of_range", f"{place}: the time system is {name!a}, must be one of {allowed}")
    return _TIME_SYSTEMS[name]


def _object(reader: _Reader, lines: list[str]) -> FileObject:
    """As a comment states it, else by the name of a file with one satellite, else its number in its system."""
    satellite = reader.satellite
    if stated := reader.objects.get(satellite):
        if others := [other for other, of_it in reader.objects.items() if of_it == stated and other != satellite]:
            raise RecordError("bad_field", f"satellites {satellite} and {others[0]} are both stated to be {stated}")
        return FileObject(stated, satellite)
    reason = f"satellite {satellite} has no catalogue number; state it by a comment: /* OBJECT {satellite} = 12345"
    try:
        if reader.satellites == 1:
            return replace(object_of_file(lines), name=satellite)
    except RecordError as error:
        reason = f"{reason}; {error.text}"
    if is_navigation_number(satellite):
        return FileObject(satellite, satellite)
    raise RecordError("missing_field", reason)


def _instant_ns(line: str, place: str) -> int:
    year, month, day, hour, minute, second = numbers(
        line[1:].split(), place, ("year", "month", "day", "hour", "minute", "second")
    )
    try:
        at = datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=UTC)
    except (ValueError, OverflowError):
        raise RecordError("bad_field", f"{place}: {ascii(line.strip())[:50]} is no instant") from None
    return round(at.timestamp()) * 1_000_000_000 + round(second * 1e9)
