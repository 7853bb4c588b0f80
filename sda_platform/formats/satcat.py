"""Facts about objects, as satellite catalogues (SATCAT) and decay messages state them.

Reads CelesTrak's catalogue as CSV and JSON, and Space-Track's classes `satcat`, `decay` and `tip` (tracking and impact
predictions). The record has one set of names; NAMES has those that the two publishers give each field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from sda_platform.formats.element_set import UNKNOWN, catalogued_number, day_or_instant_ns, text_of
from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import RecordFormat
from sda_platform.formats.framing.json_array import JSON_ARRAY
from sda_platform.formats.framing.lines import CSV
from sda_platform.formats.json_fields import finite, json_object
from sda_platform.formats.omm import csv_fields
from sda_platform.formats.records import RawRecord

PAYLOAD, ROCKET_BODY, DEBRIS, TO_BE_ASSIGNED = "PAYLOAD", "ROCKET BODY", "DEBRIS", "TBA"
OBJECT_TYPES: Final = (PAYLOAD, ROCKET_BODY, DEBRIS, UNKNOWN, TO_BE_ASSIGNED)
"""The types by the words of Space-Track."""
SHORT_TYPES: Final = {"PAY": PAYLOAD, "R/B": ROCKET_BODY, "DEB": DEBRIS, "UNK": UNKNOWN}
STATUSES: Final = {
    "+": "operational",
    "-": "not operational",
    "P": "partially operational",
    "B": "backup or standby",
    "S": "spare",
    "X": "extended mission",
    "D": "decayed",
    "?": "unknown",
}
"""The operational statuses by CelesTrak's codes."""
WORKING: Final = ("+", "P", "B", "S", "X")
"""The statuses of satellites that count as active."""
SMALL, MEDIUM, LARGE = "SMALL", "MEDIUM", "LARGE"
SIZES: Final = (SMALL, MEDIUM, LARGE)
_LONGEST_WINDOW_MIN: Final = 525_600.0
_SMALL_BELOW_M2, _LARGE_FROM_M2 = 0.1, 1.0
_PREDICTED: Final = "PREDICTION"
_WINDOW: Final = "WINDOW"
"""A field that tracking and impact predictions alone have: the uncertainty of the decay, minutes to each side."""
_DAY_ONLY: Final = re.compile(r"(\d{4}-\d\d-\d\d) 0?0:00(?::00)?", re.ASCII)
_SHORT_HOUR: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d:.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SatelliteRecord:
    """What one record states of an object; None: nothing. Of a day, launches are at its begin and decays at its end."""

    norad_id: int
    object_name: str | None = None
    international_designator: str | None = None
    object_type: str | None = None
    operational_status: str | None = None
    owner: str | None = None
    launch_time_ns: int | None = None
    launch_site: str | None = None
    decay_time_ns: int | None = None
    predicted_decay_time_ns: int | None = None
    rcs_m2: float | None = None
    rcs_size: str | None = None
    prediction_window_min: float | None = None
    reentry_latitude_deg: float | None = None
    reentry_longitude_deg: float | None = None


PREDICTION: Final = (
    "predicted_decay_time_ns",
    "prediction_window_min",
    "reentry_latitude_deg",
    "reentry_longitude_deg",
)
"""What one prediction of a decay states: it replaces all that an earlier one stated."""
FACTS: Final = tuple(field.name for field in fields(SatelliteRecord))
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "norad_id": ("NORAD_CAT_ID", "OBJECT_NUMBER"),
    "object_name": ("OBJECT_NAME", "SATNAME"),
    "international_designator": ("OBJECT_ID", "INTLDES"),
    "object_type": ("OBJECT_TYPE",),
    "operational_status": ("OPS_STATUS_CODE",),
    "owner": ("OWNER", "COUNTRY", "COUNTRY_CODE"),
    "launch_time_ns": ("LAUNCH_DATE", "LAUNCH"),
    "launch_site": ("LAUNCH_SITE", "SITE"),
    "decay_time_ns": ("DECAY_DATE", "DECAY", "DECAY_EPOCH"),
    "rcs_m2": ("RCS", "RCSVALUE"),
    "rcs_size": ("RCS_SIZE",),
}
"""The names of each field: CelesTrak's, then those of Space-Track's classes."""


def read_satcat_csv(record: RawRecord) -> SatelliteRecord:
    """Read one line under the header of its segment; raises RecordError."""
    return satellite_record(csv_fields(record))


def read_satcat_json(record: RawRecord) -> SatelliteRecord:
    """Read one JSON object; raises RecordError."""
    return satellite_record(json_object(record.payload))


def satellite_record(values: Mapping[str, Any]) -> SatelliteRecord:
    """Make a record of values by the names of a publisher, each text or number; RecordError names the field."""
    given = {name: _given(values, name) for name in NAMES}
    keyword, number = given["norad_id"]
    if number is None:
        raise RecordError("missing_field", f"{NAMES['norad_id'][0]} is missing")
    norad_id = catalogued_number(number, keyword)
    if norad_id < 1:
        raise RecordError("out_of_range", f"{keyword} is {norad_id}, must be at least 1")
    decay_ns = _time_ns(*given["decay_time_ns"], at_end=True)
    stated = (text_of(values.get("MSG_TYPE"), "MSG_TYPE") or "").upper()
    is_predicted = stated == _PREDICTED or values.get(_WINDOW) not in (None, "")
    rcs_m2 = _cross_section_m2(*given["rcs_m2"])
    return SatelliteRecord(
        norad_id=norad_id,
        **{name: text_of(*reversed(given[name])) for name in ("object_name", "owner", "launch_site")},
        international_designator=_known(given["international_designator"]),
        object_type=_object_type(given["object_type"]),
        operational_status=_one_of(given["operational_status"], tuple(STATUSES)),
        launch_time_ns=_time_ns(*given["launch_time_ns"], at_end=False),
        decay_time_ns=None if is_predicted else decay_ns,
        predicted_decay_time_ns=decay_ns if is_predicted else None,
        prediction_window_min=_within(values, _WINDOW, 0.0, _LONGEST_WINDOW_MIN) if is_predicted else None,
        reentry_latitude_deg=_within(values, "LAT", -90.0, 90.0) if is_predicted else None,
        reentry_longitude_deg=_within(values, "LON", -180.0, 360.0) if is_predicted else None,
        rcs_m2=rcs_m2,
        rcs_size=_one_of(given["rcs_size"], SIZES) or size_of(rcs_m2),
    )


def size_of(rcs_m2: float | None) -> str | None:
    """Return the class of a radar cross-section, m²: small below 0.1, large above 1."""
    if rcs_m2 is None:
        return None
    return SMALL if rcs_m2 < _SMALL_BELOW_M2 else LARGE if rcs_m2 > _LARGE_FROM_M2 else MEDIUM


def _given(values: Mapping[str, Any], name: str) -> tuple[str, Any]:
    """Return the first name of a field that has a value, and the value."""
    found = ((keyword, values[keyword]) for keyword in NAMES[name] if values.get(keyword) not in (None, ""))
    return next(found, (NAMES[name][0], None))


def _known(given: tuple[str, Any]) -> str | None:
    text = text_of(given[1], given[0])
    return None if text is None or text.upper() == UNKNOWN else text


def _object_type(given: tuple[str, Any]) -> str | None:
    text = text_of(given[1], given[0])
    if text is None:
        return None
    return _one_of((given[0], SHORT_TYPES.get(text.upper(), text)), OBJECT_TYPES)


def _one_of(given: tuple[str, Any], words: tuple[str, ...]) -> str | None:
    keyword, value = given
    text = text_of(value, keyword)
    if text is not None and text.upper() not in words:
        raise RecordError("out_of_range", f"{keyword} is {ascii(text)[:80]}, must be one of {' '.join(words)}")
    return text.upper() if text else None


def _time_ns(keyword: str, value: Any, *, at_end: bool) -> int | None:
    text = text_of(value, keyword)
    if text is None:
        return None
    # Decay messages state midnight where only the day is known.
    return day_or_instant_ns(with_leading_zero(_DAY_ONLY.sub(r"\1", text)), keyword, at_end=at_end)


def with_leading_zero(text: str) -> str:
    """Return a time of Space-Track with two digits for its hour, as ISO 8601 has."""
    return _SHORT_HOUR.sub(r"\1 0\2", text)


def _within(values: Mapping[str, Any], keyword: str, low: float, high: float) -> float | None:
    value = values.get(keyword)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError("bad_field", f"{keyword} is {ascii(value)[:80]}, must be a number")
    number = finite(value, keyword)
    if not low <= number <= high:
        raise RecordError("out_of_range", f"{keyword} is {number:g}, must be from {low:g} to {high:g}")
    return number


def _cross_section_m2(keyword: str, value: Any) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().upper() == "N/A"):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError("bad_field", f"{keyword} is {ascii(value)[:80]}, must be a number")
    area_m2 = finite(value, keyword)
    if area_m2 < 0:
        raise RecordError("out_of_range", f"{keyword} is {ascii(value)[:80]}, must be square metres")
    return area_m2 or None  # Space-Track states 0 for what it does not publish


SATCAT_FORMATS: Final = (
    RecordFormat(
        name="satcat-csv",
        title="Satellite catalogue (SATCAT) and decay messages of CelesTrak and Space-Track, CSV",
        content="satellite",
        zone="satellites",
        suffixes=(".csv",),
        framing=CSV,
        # Its header.
        begins=re.compile(
            rb"\A\s*+(?=[^\n]*\bNORAD_CAT_ID\b)(?=[^\n]*\b(?:OBJECT_TYPE|DECAY_EPOCH)\b)(?![^\n]*\bMEAN_MOTION\b)"
        ),
        read=read_satcat_csv,
    ),
    RecordFormat(
        name="satcat-json",
        title="Satellite catalogue (SATCAT) and decay messages of CelesTrak and Space-Track, JSON",
        content="satellite",
        zone="satellites",
        suffixes=(".json",),
        framing=JSON_ARRAY,
        begins=re.compile(rb'(?s)\A(?!.*"MEAN_MOTION"\s*:).*?"(?:OBJECT_TYPE|DECAY_EPOCH)"\s*:'),
        read=read_satcat_json,
    ),
)
