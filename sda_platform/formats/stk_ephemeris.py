"""STK ephemeris files (`.e`): positions and velocities in seconds since an epoch in UTC, with covariances.

Source: AGI, "STK Ephemeris File Format (*.e)". Keywords are of any case; the usual unit is the metre. The coordinate
system must be stated: what holds without it differs by version.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from sda_platform.formats.ephemeris import Covariance, EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import require_held
from sda_platform.formats.json_fields import finite
from sda_platform.formats.ndm import text_lines
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tabulated_paths import PathTable, numbers, object_of_file
from sda_platform.formats.time_systems import tai_to_utc_ns, utc_to_tai_ns

BEGINS: Final = re.compile(rb"\A\s*(?:#[^\n]*\n\s*)*stk\.v\.\d", re.IGNORECASE)
_FRAMES: Final = {
    "icrf": "ICRF", "j2000": "EME2000", "fixed": "ITRF", "temeofdate": "TEME", "trueofdate": "TOD",
    "temeofepoch": "TEME", "trueofepoch": "TOD",
}  # fmt: skip
_UNITS_KM: Final = {"meters": 1e-3, "kilometers": 1.0}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STATES: Final = {"ephemeristimepos": 3, "ephemeristimeposvel": 6, "ephemeristimeposvelacc": 9}
_COVARIANCES: Final = "covariancetimeposvel"
_POSITIONS_ONLY: Final = "covariancetimepos"
_BOUNDARIES: Final = "segmentboundarytimes"
_READ: Final = {
    "scenarioepoch", "centralbody", "coordinatesystem", "coordinatesystemepoch", "distanceunit", "covarianceformat",
    "covariancecoordinatesystem", "numberofephemerispoints", "timeformat",
}  # fmt: skip
# What changes nothing in the states: how to interpolate them, how to store and to show them.
_PASSED_OVER: Final = re.compile(r"ephemeris|interpolation.*|numberofcovariancepoints|blockingfactor|messagelevel")
_NAMES: Final = ("time", "X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT", "X_DDOT", "Y_DDOT", "Z_DDOT")
_INSTANT: Final = re.compile(r"(\d{1,2}) ([A-Za-z]{3}) (\d{4}) (\d\d):(\d\d):(\d\d)(\.\d+)?")


Line = tuple[str, list[str]]
"""A line's place and its words."""


@dataclass
class _Parts:
    """Keywords and tables of a file; ``width``: how many numbers a state has after its time."""

    keywords: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    states: list[Line] = field(default_factory=list)
    covariances: list[Line] = field(default_factory=list)
    boundaries: list[Line] = field(default_factory=list)
    width: int = 0
    is_ended: bool = False

    def table_of(self, name: str) -> list[Line] | None:
        """Return the table that begins with this word; None: none does."""
        if name in _STATES:
            self.width = _STATES[name]
            return self.states
        return {_COVARIANCES: self.covariances, _BOUNDARIES: self.boundaries}.get(name)

    def take_keyword(self, words: Sequence[str], place: str) -> None:
        """Keep the value of a keyword. Raises RecordError for one that might change the states, and is not read."""
        name = words[0].lower()
        if name == _POSITIONS_ONLY:
            reason = "CovarianceTimePos has no errors of the velocities; give CovarianceTimePosVel, or no covariances"
            raise RecordError("missing_field", f"{place}: {reason}")
        if name in _READ:
            self.keywords[name], self.places[name] = " ".join(words[1:]), place
        elif not _PASSED_OVER.fullmatch(name):
            raise RecordError("bad_field", f"{place}: {ascii(words[0])[1:-1][:40]} is no keyword or table that is read")

    def wrong(self, name: str, reason: str) -> RecordError:
        """Return the error of a keyword's value, with its line."""
        place = self.places.get(name.lower())
        text = f"{name} is {ascii(self.keywords.get(name.lower(), ''))[:40]}, {reason}"
        return RecordError("out_of_range", f"{place}: {text}" if place else text)


def read_stk_ephemeris(record: RawRecord) -> EphemerisSegment:
    """Return the ephemeris of one file. Raises RecordError with the line and the reason."""
    lines = text_lines(record.payload)
    parts = _parts(record, lines)
    if not parts.is_ended:
        raise RecordError("torn_record", "the file ends before END Ephemeris")
    if not parts.states:
        raise RecordError("missing_field", f"it has none of the tables {', '.join(sorted(_STATES))}")
    table = PathTable(object_of_file(lines), _frame(parts), "UTC")
    unit_km, epoch_tai_ns = _unit_km(parts), utc_to_tai_ns(_epoch_ns(parts, "ScenarioEpoch"))
    if _is_of_epoch(parts):
        table.frame_epoch_ns = _epoch_ns(parts, "CoordinateSystemEpoch")
    _require_all_points(parts)
    _require_one_segment(parts)
    for place, words in parts.states:
        row = numbers(words, place, _NAMES[: parts.width + 1])
        r, v = ([unit_km * each for each in row[first : first + 3]] for first in (1, 4))
        table.add(place, _instant_ns(epoch_tai_ns, row[0]), r, v if parts.width > 3 else None)
    if parts.covariances:
        _require_known_covariances(parts)
    # Writers break the triangle into rows, so the numbers count, not the lines.
    terms = [(place, word) for place, words in parts.covariances for word in words]
    size = 1 + len(COVARIANCE_TERMS)
    for start in range(0, len(terms), size):
        part = terms[start : start + size]
        row = numbers([word for _, word in part], part[0][0], ("time", *COVARIANCE_TERMS))
        at_ns = _instant_ns(epoch_tai_ns, row[0])
        table.covariances.append(Covariance(at_ns, "", [unit_km**2 * term for term in row[1:]]))
    return table.ephemeris()


def _parts(record: RawRecord, lines: Sequence[str]) -> _Parts:
    parts, table = _Parts(), None
    for number, line in enumerate(lines, 1):
        text, place = line.strip(), f"line {record.line_of(number)}"
        words = text.split()
        if not words or text.startswith("#") or text.lower().startswith("stk.v."):
            continue
        if words[0].lower() == "begin" and len(words) > 1:
            words = words[1:]  # some writers begin each table so
        name = words[0].lower()
        if name == "end":
            parts.is_ended, table = parts.is_ended or words[-1].lower() == "ephemeris", None
        elif (begun := parts.table_of(name)) is not None:
            table = begun
        elif name[0].isalpha():
            parts.take_keyword(words, place)
            table = None
        elif table is not None:
            table.append((place, words))
        else:
            raise RecordError("bad_field", f"{place}: {ascii(text)[:40]} is in no table that is read")
    return parts


def _frame(parts: _Parts) -> str:
    system = parts.keywords.get("coordinatesystem")
    if parts.keywords.get("centralbody", "Earth").lower() != "earth":
        raise parts.wrong("CentralBody", "must be Earth")
    if parts.keywords.get("timeformat", "EpSec").lower() != "epsec":
        raise parts.wrong("TimeFormat", "must be EpSec, seconds since ScenarioEpoch")
    if system is None:
        raise RecordError("missing_field", "CoordinateSystem is missing: what holds without it differs by version")
    if system.lower() not in _FRAMES:
        allowed = "ICRF, J2000, Fixed, TEMEOfDate, TrueOfDate, TEMEOfEpoch or TrueOfEpoch"
        raise parts.wrong("CoordinateSystem", f"must be {allowed}")
    if "coordinatesystemepoch" in parts.keywords and not _is_of_epoch(parts):
        raise parts.wrong("CoordinateSystemEpoch", f"but the CoordinateSystem {system} is of no epoch")
    return _FRAMES[system.lower()]


def _is_of_epoch(parts: _Parts) -> bool:
    return parts.keywords["coordinatesystem"].lower().endswith("ofepoch")


def _unit_km(parts: _Parts) -> float:
    unit = parts.keywords.get("distanceunit", "Meters")
    if unit.lower() not in _UNITS_KM:
        raise parts.wrong("DistanceUnit", "must be Meters or Kilometers")
    return _UNITS_KM[unit.lower()]


def _require_all_points(parts: _Parts) -> None:
    """Refuse a file that lost lines."""
    stated = parts.keywords.get("numberofephemerispoints", str(len(parts.states)))
    if stated != str(len(parts.states)):
        raise parts.wrong("NumberOfEphemerisPoints", f"but the file has {len(parts.states)}: it is not whole")


def _require_one_segment(parts: _Parts) -> None:
    """Refuse boundaries of segments within the states: no curve through the states of both sides is the orbit."""
    first, last = (finite(parts.states[row][1][0], "time") for row in (0, -1))
    for place, words in parts.boundaries:
        if first < numbers(words, place, ("time",))[0] < last:
            reason = f"{place}: a segment ends here, as at a manoeuvre, and a file is read as one segment"
            raise RecordError("out_of_range", f"{reason}: make one file of each segment")


def _require_known_covariances(parts: _Parts) -> None:
    system = parts.keywords.get("covariancecoordinatesystem")
    if parts.keywords.get("covarianceformat", "LowerTriangular").lower() != "lowertriangular":
        raise parts.wrong("CovarianceFormat", "must be LowerTriangular")
    if system is not None and system.lower() != parts.keywords["coordinatesystem"].lower():
        raise parts.wrong("CovarianceCoordinateSystem", "must be that of the states")


def _epoch_ns(parts: _Parts, name: str) -> int:
    text = parts.keywords.get(name.lower())
    if text is None:
        raise RecordError("missing_field", f"{name} is missing")
    found = _INSTANT.fullmatch(" ".join(text.split()))
    try:
        if found is None:
            raise ValueError("no instant")
        month = 1 + _MONTHS.index(found[2].lower())
        day, year, hour, minute, second = (int(found[n]) for n in (1, 3, 4, 5, 6))
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise parts.wrong(name, "must be like 1 Jan 2024 00:00:00.0") from None
    time_ns = round(at.timestamp()) * 1_000_000_000 + round(float(found[7] or 0) * 1e9)
    return require_held(time_ns, f"{parts.places.get(name.lower())}: {name} is {ascii(text)[:40]}")


def _instant_ns(epoch_tai_ns: np.ndarray, elapsed_s: float) -> int:
    """UTC after so many seconds, leap seconds counted."""
    if abs(elapsed_s) > 1e9:
        raise RecordError("out_of_range", f"a time of {elapsed_s:g} s is more than 30 years from the epoch")
    tai_ns = require_held(int(epoch_tai_ns) + round(elapsed_s * 1e9), f"a time of {elapsed_s:g} s after the epoch")
    return int(tai_to_utc_ns(np.array([tai_ns]))[0])
