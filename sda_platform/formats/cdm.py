"""Conjunction data messages (CCSDS 508.0-B-1) in KVN and XML: read into one record, written from it.

States are in kilometres here, covariances in each object's own RTN axes (km², km²/s, km²/s²). This module does not
interpret them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal
from xml.etree.ElementTree import Element

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.formats.cdm_keywords import COVARIANCE, OF_MESSAGE, OF_OBJECT, STATE, UNITS
from sda_platform.formats.errors import RecordError, located
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.json_fields import finite, require_short, with_exponent
from sda_platform.formats.limits import FIRST_TIME_NS, LAST_TIME_NS
from sda_platform.formats.ndm import (
    COMMENT,
    NAMES,
    KeywordEntry,
    LineOf,
    kvn_messages,
    leaves,
    same_line,
    version_entry,
    xml_elements,
)
from sda_platform.formats.orbit_keywords import EARTH
from sda_platform.formats.records import RawRecord
from sda_platform.formats.stated_radius import (
    LENGTHS_M,
    StatedRadius,
    exclusion_volume_radius,
    hard_body_radius,
    require_radius,
)
from sda_platform.formats.text import as_text
from sda_platform.formats.units import converted

Encoding = Literal["kvn", "xml"]

INERTIAL_FRAMES: Final = ("EME2000", "GCRF", "ICRF", "TEME")
EARTH_FIXED_FRAME: Final = "ITRF"
_VERSION: Final = "CCSDS_CDM_VERS"
_STRICT_VERSION: Final = "1.0"
_KM: Final = {"": 1.0, "km": 1.0, "m": 1e-3, "km/s": 1.0, "m/s": 1e-3}
_METRES_SQUARED: Final = {"m": 1e-6, "km": 1.0}
_AREAS: Final = {f"{unit}**2" if unit else "": scale**2 for unit, scale in LENGTHS_M.items()}
_LARGEST_AREA_M2: Final = 1e10
_WITHOUT_UNIT: Final = ("COLLISION_PROBABILITY", "WEIGHTED_RMS")


@dataclass(frozen=True, eq=False)
class CdmObject:
    """One of the two objects: its state at TCA in ``frame``, its covariance, and everything else as text by keyword.

    ``exclusion_volume_radius_m`` is what CSpOC's messages give as the object's radius, ``area_pc_m2`` the area that the
    originator uses for the probability of collision; None where the message has none.
    """

    fields: Mapping[str, str]
    frame: str
    position_km: FloatArray
    velocity_km_s: FloatArray
    covariance_rtn: FloatArray
    hard_body_radius_m: float | None = None
    exclusion_volume_radius_m: float | None = None
    area_pc_m2: float | None = None
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Cdm:
    """One message: the values about the encounter as text by keyword, and both objects.

    ``hard_body_radius_m`` is the combined radius where the message gives one.
    """

    fields: Mapping[str, str]
    tca_time_ns: int
    miss_distance_m: float
    objects: tuple[CdmObject, CdmObject]
    hard_body_radius_m: float | None = None
    comments: tuple[str, ...] = ()


@dataclass
class _Section:
    """The entries up to the first OBJECT, or from one OBJECT on."""

    name: str
    entries: dict[str, KeywordEntry] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    ending: int = 0
    """How many comments came after the last keyword."""

    def add(self, entry: KeywordEntry, known: frozenset[str], *, strict: bool) -> None:
        self.ending = self.ending + 1 if entry.keyword == COMMENT else 0
        if entry.keyword == COMMENT:
            self.comments.append(entry.value)
        elif not strict and entry.keyword not in known:
            self.entries.setdefault(entry.keyword, entry)
        elif entry.keyword not in known:
            raise RecordError(
                "bad_field", f"{entry.place}: {ascii(entry.keyword)[1:-1][:40]} is no keyword of {self.name}"
            )
        elif entry.keyword in self.entries:
            raise RecordError("bad_field", f"{entry.place}: {entry.keyword} of {self.name} is given twice")
        else:
            self.entries[entry.keyword] = entry
        if entry.keyword in NAMES:
            with located(entry.place):
                require_short(entry.value, entry.keyword)

    def entry(self, keyword: str) -> KeywordEntry:
        found = self.entries.get(keyword)
        if found is None or not found.value:
            raise RecordError("missing_field", f"{keyword} of {self.name} is missing")
        return found

    def number(self, keyword: str, scale: Mapping[str, float]) -> float:
        found = self.entry(keyword)
        try:
            value = finite(found.value, keyword)
        except RecordError as error:
            raise RecordError(error.kind, f"{found.place}, {self.name}: {error.text}") from None
        if found.unit not in scale:
            known = " or ".join(unit for unit in scale if unit)
            raise RecordError(
                "bad_field", f"{found.place}, {self.name}: {keyword} is in {ascii(found.unit)[:40]}, must be in {known}"
            )
        return value * scale[found.unit]

    def texts(self) -> dict[str, str]:
        """Return the values by keyword, numbers in the unit of the standard; without those of a unit that cannot be
        one.
        """
        found = {keyword: _in_unit_of_standard(entry) for keyword, entry in self.entries.items()}
        return {keyword: value for keyword, value in found.items() if value is not None}

    def remarks(self) -> tuple[str, ...]:
        """Return the comments, and as comments the values that no unit of the standard can hold."""
        others = (entry for entry in self.entries.values() if _in_unit_of_standard(entry) is None)
        return (*self.comments, *(f"{entry.keyword} = {entry.value} [{entry.unit}]" for entry in others))

    def radius(self) -> StatedRadius | None:
        """Return the hard-body radius given as a keyword or in a comment, if there is one."""
        if "HBR" in self.entries:
            return StatedRadius(require_radius(self.number("HBR", LENGTHS_M), self.name), is_combined=False)
        return hard_body_radius(self.comments, self.name)

    def exclusion_volume_radius_m(self) -> float | None:
        """Return the exclusion volume radius given in a comment, if there is one."""
        found = exclusion_volume_radius(self.comments, self.name)
        return found.radius_m if found else None

    def give_ending_radius(self, following: "_Section") -> None:
        """A radius in a comment directly before OBJECT is of that object: there the standard has its comments."""
        for comment in self.comments[len(self.comments) - self.ending :]:
            if hard_body_radius([comment], self.name):
                self.comments.remove(comment)
                following.comments.append(comment)

    def area_pc_m2(self) -> float | None:
        """Return the area for the probability of collision; None where it is absent, zero or no number."""
        try:
            area_m2 = self.number("AREA_PC", _AREAS)
        except RecordError:
            return None
        return area_m2 if 0 < area_m2 <= _LARGEST_AREA_M2 else None


def read_cdm_record(record: RawRecord) -> Cdm:
    """Return the one message of a record, see `read_cdm`."""
    return read_cdm(record.payload, record.line_of)


def read_cdm(data: bytes, line_of: LineOf = same_line) -> Cdm:
    """Return the one message of a KVN or XML file.

    Raises RecordError, naming the line or element and the keyword, for no message, several messages, or a message
    without the values that a probability requires; in version 1.0 also for a keyword outside the standard.
    """
    data = as_text(data)
    is_xml = data.lstrip().startswith(b"<")
    messages = list(map(_xml_entries, xml_elements(data, "cdm", line_of)) if is_xml else kvn_messages(data, line_of))
    if len(messages) != 1:
        found = "no conjunction data message" if not messages else f"{len(messages)} messages, must be one"
        raise RecordError("bad_length", f"holds {found}")
    return cdm_of_entries(messages[0], must_come_first=not is_xml)


def _xml_entries(message: Element) -> list[KeywordEntry]:
    """Return the entries of an XML message; OBJECT begins the entries of its segment, and so its comments are
    its own.
    """
    entries = leaves(message)
    segments = [leaves(segment) for segment in message.iter("segment")]
    before = len(entries) - sum(map(len, segments))
    ordered = [entry for segment in segments for entry in sorted(segment, key=lambda e: e.keyword != "OBJECT")]
    return [*version_entry(message), *entries[:before], *ordered]


def cdm_of_entries(message: Sequence[KeywordEntry], *, must_come_first: bool = True) -> Cdm:
    """Return the message of these entries; ``must_come_first``: its version begins it. Raises RecordError."""
    whole, *objects = _sections(message, _version(message, must_come_first=must_come_first))
    if len(objects) != 2:
        raise RecordError("missing_field", f"has {len(objects)} sections that begin with OBJECT, must have two")
    combined, radii = _radii(whole, objects)
    created = whole.entries.get("CREATION_DATE")
    if created is not None and created.value:
        with located(created.place):
            parse_epoch_ns(created.value, "CREATION_DATE")
    tca = whole.entry("TCA")
    with located(tca.place):
        tca_time_ns = instant_ns(tca.value, "TCA")
    return Cdm(
        whole.texts(),
        tca_time_ns,
        whole.number("MISS_DISTANCE", {"": 1.0, "m": 1.0, "km": 1e3}),
        (_object(objects[0], radii[0]), _object(objects[1], radii[1])),
        combined if combined is not None else whole.exclusion_volume_radius_m(),
        whole.remarks(),
    )


def _radii(whole: _Section, objects: Sequence[_Section]) -> tuple[float | None, list[float | None]]:
    """Return the combined hard-body radius and those of the objects, in metres, as far as they are given.

    A comment directly before the first object may be of the encounter or of the object: of the object, where only the
    other one has a radius of its own.
    """
    objects[0].give_ending_radius(objects[1])
    if objects[1].radius() and not objects[0].radius():
        whole.give_ending_radius(objects[0])
    stated = [section.radius() for section in (whole, *objects)]
    named = next((each for each in stated if each and each.is_combined), stated[0])
    own = [each.radius_m if each and not each.is_combined else None for each in stated[1:]]
    return named.radius_m if named else None, own


def instant_ns(text: str, keyword: str) -> int:
    """Unix time in ns of an instant that a message gives. Raises RecordError, also for one without space flight."""
    time_ns = parse_epoch_ns(text, keyword)
    if not FIRST_TIME_NS <= time_ns <= LAST_TIME_NS:
        raise RecordError("out_of_range", f"{keyword} is {ascii(text)[:80]}, must be from 1957 to 2099")
    return time_ns


def _version(message: Iterable[KeywordEntry], *, must_come_first: bool) -> str:
    first = next((entry for entry in message if entry.keyword != COMMENT), None)
    if not must_come_first and (first is None or first.keyword != _VERSION):
        return _STRICT_VERSION
    if first is None or first.keyword != _VERSION:
        found = "nothing" if first is None else ascii(first.keyword)[1:-1][:40]
        raise RecordError("unknown_format", f"is no conjunction data message: begins with {found}, not {_VERSION}")
    return first.value


def _sections(message: Iterable[KeywordEntry], version: str) -> list[_Section]:
    sections = [_Section("the message")]
    known = OF_MESSAGE | {_VERSION}
    for entry in message:
        if entry.keyword == "OBJECT":
            sections.append(_Section(entry.value or "an object"))
            known = OF_OBJECT
        sections[-1].add(entry, known, strict=version == _STRICT_VERSION)
    return sections


def _object(section: _Section, radius_m: float | None) -> CdmObject:
    centre = section.entries.get("ORBIT_CENTER")
    if centre is not None and centre.value and centre.value.upper() not in EARTH:
        reason = f"{centre.place}, {section.name}: ORBIT_CENTER is {ascii(centre.value)[:40]}, must be EARTH"
        raise RecordError("out_of_range", reason)
    frame = section.entry("REF_FRAME")
    name = frame.value.upper()
    name = EARTH_FIXED_FRAME if name.startswith(EARTH_FIXED_FRAME) else name
    if name not in (*INERTIAL_FRAMES, EARTH_FIXED_FRAME):
        allowed = ", ".join((*INERTIAL_FRAMES, EARTH_FIXED_FRAME))
        reason = f"{frame.place}, {section.name}: REF_FRAME is {ascii(frame.value)[:40]}, must be one of {allowed}"
        raise RecordError("out_of_range", reason)
    position_units = {unit: scale for unit, scale in _KM.items() if "/" not in unit}
    velocity_units = {unit: scale for unit, scale in _KM.items() if "/" in unit or not unit}
    state = [section.number(keyword, velocity_units if "DOT" in keyword else position_units) for keyword in STATE]
    covariance = np.zeros((6, 6))
    for keyword, row, column in COVARIANCE:
        suffix = ("", "/s", "/s**2")[(row > 2) + (column > 2)]
        units = {"": 1e-6} | {f"{length}**2{suffix}": scale for length, scale in _METRES_SQUARED.items()}
        covariance[row, column] = covariance[column, row] = section.number(keyword, units)
    return CdmObject(
        section.texts(),
        name,
        np.array(state[:3]),
        np.array(state[3:]),
        covariance,
        radius_m,
        section.exclusion_volume_radius_m(),
        section.area_pc_m2(),
        section.remarks(),
    )


def _in_unit_of_standard(entry: KeywordEntry) -> str | None:
    unit = UNITS.get(entry.keyword, "")
    value = with_exponent(entry.value) if unit or entry.keyword in _WITHOUT_UNIT else entry.value
    if not entry.unit or not unit or entry.unit.lower() == unit.lower():
        return value
    return converted(value, entry.unit, unit)
