"""One mean element set and the keywords by which an orbit mean-elements message (OMM) names its fields.

Holds the keywords and number formats (CCSDS 502.0-B-3), not the physical limits.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sda_platform.formats.designators import catalogue_number
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import format_epoch, parse_epoch_ns
from sda_platform.formats.json_fields import column_text, finite
from sda_platform.formats.markings import DATA_MODES, UNCLASSIFIED, Marking, are_data_modes
from sda_platform.formats.orbit_keywords import EARTH
from sda_platform.formats.parameter_messages import ParameterMessage
from sda_platform.units import DAY_NS

_ONLY: Final = (
    ("CENTER_NAME", EARTH),
    ("TIME_SYSTEM", ("UTC",)),
    ("REF_FRAME", ("TEME",)),
    # Of the theories that the standard lists, the first two are the one that SGP4 reads.
    ("MEAN_ELEMENT_THEORY", ("SGP4", "SGP/SGP4")),
)
UNKNOWN: Final = "UNKNOWN"
"""What a message states for a name, a designator or an originator that is not known."""
OWN_ORIGINATOR: Final = "SDA PLATFORM"
"""Who publishes what the platform determined itself: element sets, ephemerides and conjunction data messages."""
DECAY_DATE: Final = "DECAY_DATE"
"""Keyword of Space-Track's catalogue, a user-defined one in a message of the standard."""
DATA_MODE, OWNER, SOURCE = MARKINGS = ("DATA_MODE", "OWNER", "SOURCE")
"""Keywords of markings, user-defined ones in a message of the standard: what a set is of, whose it is, who brought it.
The last is written, and never read: who brings a set is known."""
# Some write a whole number with a point.
_WHOLE: Final = re.compile(r"[+-]?\d{1,30}(?:\.0*)?", re.ASCII)
SGP4: Final = 0
"""The ephemeris type of sets that SGP4 propagates as they are."""
_OTHER_TYPES: Final = {2: "SGP4 with another mean motion", 3: "PPT3", 4: "SGP4-XP", 6: "special perturbations"}


@dataclass(frozen=True, slots=True)
class ElementSet:
    """One SGP4 mean element set, TEME and UTC; fields before `message` are columns of ELEMENT_SCHEMA.

    `mean_motion_dot_rev_per_day2` and `mean_motion_ddot_rev_per_day3` are as published (in practice the
    halved and sixthed derivatives of the two-line format); SGP4 does not use them.
    """

    norad_id: int
    object_name: str | None
    international_designator: str | None
    epoch_time_ns: int
    mean_motion_rev_per_day: float
    eccentricity: float
    inclination_deg: float
    raan_deg: float
    arg_of_pericenter_deg: float
    mean_anomaly_deg: float
    bstar_per_earth_radius: float
    mean_motion_dot_rev_per_day2: float | None = None
    mean_motion_ddot_rev_per_day3: float | None = None
    element_set_number: int | None = None
    originator: str | None = None
    classification: str | None = "U"
    revolution_at_epoch: int | None = None
    decay_time_ns: int | None = None
    """When the object decayed, as the source states it; of a day its end."""
    data_mode: str | None = None
    """One of DATA_MODES, or several (`markings.are_data_modes`); None: it states none."""
    owner: str | None = None
    """Whose data it is, as its source states it."""
    message: ParameterMessage | None = field(default=None, compare=False, repr=False)
    """The message that it was read from, where that can hold more than these fields."""
    source_name: str | None = field(default=None, compare=False)
    """Who brought it, where that is known."""


def element_set(fields: Mapping[str, Any], message: ParameterMessage | None = None) -> ElementSet:
    """An ElementSet from values by OMM keyword, each text or number; RecordError names the keyword."""
    for keyword, allowed in _ONLY:
        value = fields.get(keyword)
        if (value.strip().upper() if isinstance(value, str) else value) not in (*allowed, "", None):
            raise RecordError("out_of_range", f"{keyword} is {ascii(value)[:80]}, only {allowed[0]} can be used")
    require_sgp4(_optional_int(fields, "EPHEMERIS_TYPE"), "EPHEMERIS_TYPE")
    return ElementSet(
        norad_id=catalogued_number(_present(fields, "NORAD_CAT_ID")),
        object_name=_optional_text(fields, "OBJECT_NAME"),
        international_designator=_known_text(fields, "OBJECT_ID"),
        epoch_time_ns=parse_epoch_ns(_present(fields, "EPOCH")),
        mean_motion_rev_per_day=_number(fields, "MEAN_MOTION"),
        eccentricity=_number(fields, "ECCENTRICITY"),
        inclination_deg=_number(fields, "INCLINATION"),
        raan_deg=_number(fields, "RA_OF_ASC_NODE"),
        arg_of_pericenter_deg=_number(fields, "ARG_OF_PERICENTER"),
        mean_anomaly_deg=_number(fields, "MEAN_ANOMALY"),
        bstar_per_earth_radius=_number(fields, "BSTAR"),
        mean_motion_dot_rev_per_day2=_optional_number(fields, "MEAN_MOTION_DOT"),
        mean_motion_ddot_rev_per_day3=_optional_number(fields, "MEAN_MOTION_DDOT"),
        element_set_number=_optional_int(fields, "ELEMENT_SET_NO"),
        originator=_known_text(fields, "ORIGINATOR"),
        classification=_optional_text(fields, "CLASSIFICATION_TYPE"),
        revolution_at_epoch=_optional_int(fields, "REV_AT_EPOCH"),
        decay_time_ns=_decay_time_ns(fields),
        data_mode=stated_data_mode(fields),
        owner=_user_defined(fields, OWNER),
        message=message,
    )


def set_marking(classification: str | None, data_mode: str | None) -> Marking:
    """Return the marking of an element set by its columns.

    One that states no classification is unclassified: CCSDS 502.0-B-3 has that default for CLASSIFICATION_TYPE. It has
    no data mode, so one that is not stated is not known.
    """
    return Marking(classification or UNCLASSIFIED, data_mode)


def require_sgp4(ephemeris_type: int | None, name: str) -> None:
    """Raises RecordError for the type of another theory: SGP4 would make other orbits of such numbers."""
    if ephemeris_type not in (None, SGP4):
        what = _OTHER_TYPES.get(ephemeris_type, "another theory")
        raise RecordError("out_of_range", f"{name} is {ephemeris_type} ({what}), only {SGP4} can be propagated by SGP4")


def omm_fields(element: ElementSet) -> dict[str, str | float | int | None]:
    """Return an element set's values by OMM keyword, in the order of CelesTrak's CSV; None: not known.

    A value that readers demand is never absent: an unknown designator is UNKNOWN (502.0-B-3, table 4-2), and unknown
    numbers are 0, as in a two-line set.
    """
    return {
        "OBJECT_NAME": element.object_name,
        "OBJECT_ID": element.international_designator or UNKNOWN,
        "EPOCH": format_epoch(element.epoch_time_ns),
        "MEAN_MOTION": element.mean_motion_rev_per_day,
        "ECCENTRICITY": element.eccentricity,
        "INCLINATION": element.inclination_deg,
        "RA_OF_ASC_NODE": element.raan_deg,
        "ARG_OF_PERICENTER": element.arg_of_pericenter_deg,
        "MEAN_ANOMALY": element.mean_anomaly_deg,
        "EPHEMERIS_TYPE": 0,
        "CLASSIFICATION_TYPE": element.classification or "U",
        "NORAD_CAT_ID": element.norad_id,
        "ELEMENT_SET_NO": element.element_set_number or 0,
        "REV_AT_EPOCH": element.revolution_at_epoch or 0,
        "BSTAR": element.bstar_per_earth_radius,
        "MEAN_MOTION_DOT": element.mean_motion_dot_rev_per_day2 or 0.0,
        "MEAN_MOTION_DDOT": element.mean_motion_ddot_rev_per_day3 or 0.0,
    }


def _present(fields: Mapping[str, Any], keyword: str) -> Any:
    value = fields.get(keyword)
    if value is None or value == "":
        raise RecordError("missing_field", f"{keyword} is missing")
    return value


def _number(fields: Mapping[str, Any], keyword: str) -> float:
    value = _present(fields, keyword)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError("bad_field", f"{keyword} is {ascii(value)[:80]}, must be a number")
    return finite(value, keyword)


def _optional_number(fields: Mapping[str, Any], keyword: str) -> float | None:
    return None if fields.get(keyword) in (None, "") else _number(fields, keyword)


def catalogued_number(value: object, keyword: str = "NORAD_CAT_ID") -> int:
    """A catalogue number, also in Alpha-5. Raises RecordError."""
    number = catalogue_number(value.strip()) if isinstance(value, str) else None
    return _int(value, keyword) if number is None else number


def _int(value: object, keyword: str) -> int:
    try:
        if isinstance(value, str):
            if not _WHOLE.fullmatch(value.strip()):
                raise ValueError
            value = int(value.strip().partition(".")[0])
        if isinstance(value, float) and value.is_integer():  # as a table with gaps writes whole numbers
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
    except ValueError:
        raise RecordError("bad_field", f"{keyword} is {_shown(value)}, must be an integer") from None
    if not -(2**53) <= value <= 2**53:
        raise RecordError("out_of_range", f"{keyword} is {_shown(value)}, too large for an integer here")
    return value


def _shown(value: object) -> str:
    return ascii(value)[:80] if isinstance(value, str) or not isinstance(value, int) else hex(value)[:80]


def _optional_int(fields: Mapping[str, Any], keyword: str) -> int | None:
    value = fields.get(keyword)
    return None if value is None or value == "" else _int(value, keyword)


def _known_text(fields: Mapping[str, Any], keyword: str) -> str | None:
    text = _optional_text(fields, keyword)
    return None if text is None or text.upper() == UNKNOWN else text


def _decay_time_ns(fields: Mapping[str, Any]) -> int | None:
    text = _user_defined(fields, DECAY_DATE)
    return None if text is None else day_or_instant_ns(text, DECAY_DATE, at_end=True)


def stated_data_mode(fields: Mapping[str, Any]) -> str | None:
    """Return the data mode among the user-defined values of a message; None: it states none. Raises RecordError."""
    text = _user_defined(fields, DATA_MODE)
    if text is not None and not are_data_modes(text):
        raise RecordError("out_of_range", f"{DATA_MODE} is {ascii(text)[:80]}, must be one of {', '.join(DATA_MODES)}")
    return None if text is None else text.upper()


def _user_defined(fields: Mapping[str, Any], keyword: str) -> str | None:
    return _optional_text(fields, keyword) or _optional_text(fields, f"USER_DEFINED_{keyword}")


def day_or_instant_ns(text: str, keyword: str, *, at_end: bool) -> int:
    """An instant as Unix time in ns, UTC; of a day its begin, or its end. Raises RecordError."""
    is_day = len(text) <= len("2024-05-03")
    return parse_epoch_ns(f"{text}T00:00:00" if is_day else text, keyword) + (is_day and at_end) * DAY_NS


def _optional_text(fields: Mapping[str, Any], keyword: str) -> str | None:
    return text_of(fields.get(keyword), keyword)


def text_of(value: object, keyword: str) -> str | None:
    """A value that is text, without blanks around it; None where it is empty. Raises RecordError."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise RecordError("bad_field", f"{keyword} is {ascii(value)[:80]}, must be text")
    return column_text(value.strip(), keyword) or None
