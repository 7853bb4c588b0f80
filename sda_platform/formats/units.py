"""Units of messages: the factor between two of one dimension. Notation: CCSDS 502.0-B-3, 7.7 (``km**2/s``).

Beside the standard's units, those of sensors: angles in rad, mrad, arcmin, arcsec and mas.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

_DEG_PER_RAD: Final = Decimal("57.29577951308232087679815481")
# Of each unit the factor to the base of its dimension, and that base.
_UNITS: Final = {
    "m": (Decimal(1), "m"), "km": (Decimal(1000), "m"), "cm": (Decimal("0.01"), "m"), "mm": (Decimal("0.001"), "m"),
    "s": (Decimal(1), "s"), "min": (Decimal(60), "s"), "h": (Decimal(3600), "s"), "d": (Decimal(86400), "s"),
    "kg": (Decimal(1), "kg"), "g": (Decimal("0.001"), "kg"), "w": (Decimal(1), "W"), "kw": (Decimal(1000), "W"),
    "deg": (Decimal(1), "deg"), "arcmin": (1 / Decimal(60), "deg"), "arcsec": (1 / Decimal(3600), "deg"),
    "mas": (1 / Decimal(3_600_000), "deg"), "rad": (_DEG_PER_RAD, "deg"), "mrad": (_DEG_PER_RAD / 1000, "deg"),
    "%": (Decimal(1), "%"), "hz": (Decimal(1), "Hz"), "n/a": (Decimal(1), ""),
}  # fmt: skip
_PART: Final = re.compile(r"([*/]?)(\(?)([a-z%]+)(?:\*\*(-?\d)|\^(-?\d))?(\)?)")
_LONGEST_UNIT: Final = 64


def converted(value: str, unit: str, wanted: str) -> str | None:
    """Return the number ``value``, given in ``unit``, in the unit ``wanted``, with all its digits; None where it has
    none.
    """
    given, target = _dimension(unit) if len(unit) <= _LONGEST_UNIT else None, _dimension(wanted)
    if given is None or target is None or given[1] != target[1]:
        return None
    try:
        number = Decimal(value) * given[0] / target[0]
    except ArithmeticError:
        return None
    return f"{number.normalize():f}" if -15 < number.adjusted() < 15 else f"{number.normalize()}"


@lru_cache(maxsize=256)
def _dimension(unit: str) -> tuple[Decimal, dict[str, int]] | None:
    """Return the factor of a unit to the bases of its dimension, and the exponents of these; None for one not known."""
    text, factor, powers, at, within = unit.strip().lower().replace(" ", ""), Decimal(1), dict[str, int](), 0, 1
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[3] not in _UNITS or (at > 0) != bool(part[1]):
            return None
        sign = within * (-1 if part[1] == "/" else 1)
        power = sign * int(part[4] or part[5] or 1)
        within = 1 if part[6] else sign if part[2] else within
        scale, base = _UNITS[part[3]]
        factor *= scale**power
        powers[base] = powers.get(base, 0) + power
        at = part.end()
    return factor, {base: power for base, power in powers.items() if power and base}
