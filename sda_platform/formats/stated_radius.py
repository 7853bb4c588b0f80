"""Radii that the comments of a conjunction data message state: the standard has no keyword for them.

Originators write ``HBR = 7 [m]``, ``HBR (m): 7``, ``Combined hard body radius is 0.007 km, by the operator``. A number
without a unit is in metres.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import finite

LENGTHS_M: Final = {"": 1.0, "m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3}
"""Units of lengths, in metres."""
_WORDS_M: Final = LENGTHS_M | dict.fromkeys(("meter", "meters", "metre", "metres"), 1.0) | dict.fromkeys(
    ("ft", "foot", "feet"), 0.3048
)  # fmt: skip
# A word behind a number that is none of these and no unit is the next word of a sentence.
_OTHER_UNITS: Final = frozenset({"in", "inch", "inches", "yd", "mi", "nmi", "nm", "um", "dm", "au"})
_LARGEST_RADIUS_M: Final = 1e5
_VALUE: Final = (
    r"(?![a-z])\s*+(?:[\[(]\s*(?P<before>[a-z]+)\s*[\])])?\s*(?:[=:]|is\b|of\b)\s*"
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[ed][+-]?\d+)?)(?![\d.]|,\d)"
    r"\s*(?:\[(?P<unit>[^\]]*)\]|\(\s*(?P<round>[a-z]+)\s*\)|(?P<bare>[a-z]+))?"
)
_HARD_BODY: Final = re.compile(
    r"(?<![a-z])(?P<combined>combined[ _-]*)?(?:HBR|hard[ _-]?body[ _-]?radius)" + _VALUE, re.IGNORECASE
)
_EXCLUSION_VOLUME: Final = re.compile(
    r"(?<![a-z])(?P<combined>combined[ _-]*)?exclusion[ _-]?volume[ _-]?radius" + _VALUE, re.IGNORECASE
)


class StatedRadius(NamedTuple):
    """A radius in metres; ``is_combined``: it is that of both objects together, as its name says."""

    radius_m: float
    is_combined: bool


def hard_body_radius(comments: Sequence[str], whose: str) -> StatedRadius | None:
    """Return the first hard-body radius in the comments of ``whose`` section; None: none has a number.

    Raises RecordError for one in another unit, or that no radius can be.
    """
    return _first(_HARD_BODY, comments, whose)


def exclusion_volume_radius(comments: Sequence[str], whose: str) -> StatedRadius | None:
    """Compute the radius of an object from the exclusion volume that CSpOC's messages give."""
    return _first(_EXCLUSION_VOLUME, comments, whose)


def require_radius(radius_m: float, whose: str) -> float:
    """``radius_m``, if it can be one. Raises RecordError."""
    if not 0 < radius_m <= _LARGEST_RADIUS_M:
        allowed = "above zero" if radius_m <= 0 else f"at most {_LARGEST_RADIUS_M:g} m"
        raise RecordError("out_of_range", f"{whose}: its hard-body radius is {radius_m:g} m, must be {allowed}")
    return radius_m


def _first(pattern: re.Pattern[str], comments: Sequence[str], whose: str) -> StatedRadius | None:
    found = next((each for comment in comments if (each := pattern.search(comment))), None)
    if found is None:
        return None
    value = finite(found["number"], "HBR")
    radius_m = value * _unit_m(found, whose)
    return StatedRadius(require_radius(radius_m, whose), bool(found["combined"]))


def _unit_m(found: re.Match[str], whose: str) -> float:
    """Return the unit in metres. In square brackets it is a unit for certain; a word may belong to a sentence."""
    word = (found["round"] or found["bare"] or "").lower()
    stated = (
        found["unit"] if found["unit"] is not None else word if word in _WORDS_M | dict.fromkeys(_OTHER_UNITS) else ""
    )
    unit = (stated.strip() or found["before"] or "").lower()
    if unit not in _WORDS_M:
        known = ", ".join(name for name in LENGTHS_M if name)
        place = f"COMMENT {found.string}"[:60]
        raise RecordError("bad_field", f"{place}, {whose}: HBR is in {ascii(unit)[:40]}, must be in {known}")
    return _WORDS_M[unit]
