"""The satellites screened against everything else: who is protected, on whose behalf, and what is known of them.

Holds the list and its reader; which element sets they fly on comes from the catalogue at run time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from sda_platform.formats.listings import read_listing

_COLUMNS = ("norad_id", "name", "operator")
_OPTIONAL = ("radius_m", "mass_kg", "manoeuvrable", "contact", "yellow_pc", "red_pc")
_ANSWERS = {"": None, "yes": True, "no": False}


@dataclasses.dataclass(frozen=True)
class ProtectedObject:
    """One satellite of the protected fleet; None: not stated.

    Attributes:
        radius_m: radius of the smallest sphere about it, metres.
        mass_kg: mass, kg.
        manoeuvrable: whether it can change its orbit.
        contact: how to reach its operator.
        yellow_pc, red_pc: its own levels of Pc for alerts.
    """

    norad_id: int
    name: str
    operator: str
    radius_m: float | None = None
    mass_kg: float | None = None
    manoeuvrable: bool | None = None
    contact: str = ""
    yellow_pc: float | None = None
    red_pc: float | None = None


def protected_fleet(path: Path | str = "") -> tuple[ProtectedObject, ...]:
    """Return the protected fleet in file order, from ``path`` or, where it is empty, the list shipped with the package.

    The file is CSV with the header ``norad_id,name,operator``; each id is a positive integer and occurs once. Columns
    ``radius_m,mass_kg,manoeuvrable,contact,yellow_pc,red_pc`` may follow, some or all; an empty field states nothing.

    Raises:
        ListingError: the file cannot be read or breaks that form.
    """
    source = Path(path) if path else Path(__file__).with_name("fleet.csv")
    return tuple(read_listing(source, _COLUMNS, _member, optional=_OPTIONAL).values())


def _member(fields: Sequence[str]) -> tuple[int, ProtectedObject]:
    norad_id, name, operator, radius_m, mass_kg, manoeuvrable, contact, yellow_pc, red_pc = fields
    if not norad_id.isascii() or not norad_id.isdigit() or int(norad_id) == 0:
        raise ValueError(f"norad_id is {norad_id!r}, must be a positive integer")
    if not name:
        raise ValueError(f"satellite {norad_id} has no name")
    if manoeuvrable not in _ANSWERS:
        raise ValueError(f"manoeuvrable is {manoeuvrable!r}, must be yes, no or empty")
    return int(norad_id), ProtectedObject(
        int(norad_id),
        name,
        operator,
        _positive("radius_m", radius_m),
        _positive("mass_kg", mass_kg),
        _ANSWERS[manoeuvrable],
        contact,
        _positive("yellow_pc", yellow_pc, at_most=1.0),
        _positive("red_pc", red_pc, at_most=1.0),
    )


def _positive(name: str, text: str, at_most: float = math.inf) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value <= at_most and math.isfinite(value)):
        limit = "" if at_most == math.inf else f" of at most {at_most:g}"
        raise ValueError(f"{name} is {text!r}, must be a positive number{limit}")
    return value
