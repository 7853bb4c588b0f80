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
from sda_platform.formats.ndm import text_lines
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tabulated_paths import PathTable, numbers, object_of_file
from sda_platform.formats.time_systems import tai_to_utc_ns, utc_to_tai_ns

BEGINS: Final = re.compile(rb"\A\s*(?:#[^\n]*\n\s*)*stk\.v\.\d", re.IGNORECASE)
_FRAMES: Final = {
    "icrf": "ICRF", "j2000": "EME2000", "fixed": "ITRF", "temeofdate": "TEME", "trueofdate": "TOD",
}  # fmt: skip
_UNITS_KM: Final = {"meters": 1e-3, "kilometers": 1.0}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STATES: Final = {"ephemeristimepos": 3, "ephemeristimeposvel": 6, "ephemeristimeposvelacc": 9}
_COVARIANCES: Final = "covariancetimeposvel"
_NAMES: Final = ("time", "X", "Y", "Z", "X_DOT", "Y_DOT", "Z_DOT", "X_DDOT", "Y_DDOT", "Z_DDOT")
_INSTANT: Final = re.compile(r"(\d{1,2}) ([A-Za-z]{3}) (\d{4}) (\d\d):(\d\d):(\d\d)(\.\d+)?")


Line = tuple[str, list[str]]
"""A line's place and its words."""


@dataclass
class _Parts:
    """Keywords and tables of a file; ``width``: how many numbers a state has after its time."""

    keywords: dict[str, str] = field(default_factory=dict)
    states: list[Line] = field(default_factory=list)
    covariances: list[Line] = field(default_factory=list)
    width: int = 0
    is_ended: bool = False


def read_stk_ephemeris(record: RawRecord) -> EphemerisSegment:
    """The ephemeris of one file. Raises RecordError with the line and the reason."""
    lines = text_lines(record.payload)
    parts = _parts(record, lines)
    if not parts.is_ended:
        raise RecordError("torn_record", "the file ends before END Ephemeris")
    if not parts.states:
        raise RecordError("missing_field", f"it has none of the tables {', '.join(sorted(_STATES))}")
    table = PathTable(object_of_file(lines), _frame(parts.keywords), "UTC")
    unit_km, epoch_tai_ns = _unit_km(parts.keywords), utc_to_tai_ns(_epoch_ns(parts.keywords))
    for place, words in parts.states:
        row = numbers(words, place, _NAMES[: parts.width + 1])
        r, v = ([unit_km * each for each in row[first : first + 3]] for first in (1, 4))
        table.add(place, _instant_ns(epoch_tai_ns, row[0]), r, v if parts.width > 3 else None)
    if parts.covariances:
        _require_known_covariances(parts.keywords)
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
    parts, table = _Parts(), list[Line]()
    is_table = False
    for number, line in enumerate(lines, 1):
        text, place = line.strip(), f"line {record.line_of(number)}"
        words = text.split()
        if not words or text.startswith("#") or text.lower().startswith("stk.v."):
            continue
        if words[0].lower() == "begin" and len(words) > 1:
            words = words[1:]  # some writers begin each table so
        name = words[0].lower()
        if name == "end":
            parts.is_ended = parts.is_ended or words[-1].lower() == "ephemeris"
        elif name in _STATES:
            table, parts.width = parts.states, _STATES[name]
        elif name == _COVARIANCES:
            table = parts.covariances
        elif name[0].isalpha():
            parts.keywords[name] = " ".join(words[1:])
        elif is_table:
            table.append((place, words))
            continue
        else:
            raise RecordError("bad_field", f"{place}: {ascii(text)[:40]} is in no table that is read")
        is_table = name in _STATES or name == _COVARIANCES
    return parts


def _frame(keywords: dict[str, str]) -> str:
    body, system = keywords.get("centralbody", "Earth"), keywords.get("coordinatesystem")
    if body.lower() != "earth":
        raise RecordError("out_of_range", f"CentralBody is {ascii(body)[:40]}, must be Earth")
    if system is None:
        raise RecordError("missing_field", "CoordinateSystem is missing: what holds without it differs by version")
    if system.lower() not in _FRAMES:
        allowed = "ICRF, J2000, Fixed, TEMEOfDate or TrueOfDate"
        raise RecordError("out_of_range", f"CoordinateSystem is {ascii(system)[:40]}, must be {allowed}")
    return _FRAMES[system.lower()]


def _unit_km(keywords: dict[str, str]) -> float:
    unit = keywords.get("distanceunit", "Meters")
    if unit.lower() not in _UNITS_KM:
        raise RecordError("out_of_range", f"DistanceUnit is {ascii(unit)[:40]}, must be Meters or Kilometers")
    return _UNITS_KM[unit.lower()]


def _require_known_covariances(keywords: dict[str, str]) -> None:
    form, system = keywords.get("covarianceformat", "LowerTriangular"), keywords.get("covariancecoordinatesystem")
    if form.lower() != "lowertriangular":
        raise RecordError("out_of_range", f"CovarianceFormat is {ascii(form)[:40]}, must be LowerTriangular")
    if system is not None and system.lower() != keywords["coordinatesystem"].lower():
        reason = f"CovarianceCoordinateSystem is {ascii(system)[:40]}, must be that of the states"
        raise RecordError("out_of_range", reason)


def _epoch_ns(keywords: dict[str, str]) -> int:
    text = keywords.get("scenarioepoch")
    if text is None:
        raise RecordError("missing_field", "ScenarioEpoch is missing")
    found = _INSTANT.fullmatch(" ".join(text.split()))
    try:
        if found is None:
            raise ValueError("no instant")
        month = 1 + _MONTHS.index(found[2].lower())
        day, year, hour, minute, second = (int(found[n]) for n in (1, 3, 4, 5, 6))
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise RecordError(
            "bad_field", f"ScenarioEpoch is {ascii(text)[:40]}, must be like 1 Jan 2024 00:00:00.0"
        ) from None
    return round(at.timestamp()) * 1_000_000_000 + round(float(found[7] or 0) * 1e9)


def _instant_ns(epoch_tai_ns: np.ndarray, elapsed_s: float) -> int:
    """UTC after so many seconds, leap seconds counted."""
    if abs(elapsed_s) > 1e9:
        raise RecordError("out_of_range", f"a time of {elapsed_s:g} s is more than 30 years from the epoch")
    return int(tai_to_utc_ns(np.array([int(epoch_tai_ns) + round(elapsed_s * 1e9)]))[0])
