"""Numbers in the columns of a sensor's own CSV, converted to another unit with all their digits."""

import re
from decimal import Decimal
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import finite
from sda_platform.formats.units import converted

HOURS, SEXAGESIMAL_HOURS, SEXAGESIMAL_DEGREES = "hours", "hms", "dms"
_ANGLES: Final = (HOURS, SEXAGESIMAL_HOURS, SEXAGESIMAL_DEGREES)
_DEGREES_PER_HOUR: Final = 15
_SEXAGESIMAL: Final = re.compile(
    r"([+-]?)(\d{1,3})(?:[:hd°]\s*|\s+)(\d{1,2})(?:[:m'′]\s*|\s+)(\d{1,2}(?:\.\d*)?)\s*[s\"″]?", re.ASCII
)


def is_unit_of(unit: str, wanted: str) -> bool:
    """Return whether a number in ``unit`` can be given in the unit ``wanted``."""
    return converted("1", "deg" if unit in _ANGLES else unit, wanted) is not None


def number_in(text: str, unit: str, wanted: str, name: str) -> str:
    """Return the number ``text``, given in ``unit``, in the unit ``wanted``. Raises RecordError, with ``name``."""
    if unit in (SEXAGESIMAL_HOURS, SEXAGESIMAL_DEGREES):
        text = str(_degrees(text, name) * (_DEGREES_PER_HOUR if unit == SEXAGESIMAL_HOURS else 1))
    else:
        finite(text, name)
        if unit == HOURS:
            text = str(Decimal(text) * _DEGREES_PER_HOUR)
    given = converted(text, "deg" if unit in _ANGLES else unit, wanted)
    if given is None:
        raise RecordError("bad_field", f"{name} is {ascii(text)[:80]}, which is not in {wanted}")
    return given


def _degrees(text: str, name: str) -> Decimal:
    """Degrees, minutes and seconds as degrees; of hours, as hours."""
    found = _SEXAGESIMAL.fullmatch(text)
    if found is None or int(found[3]) >= 60 or Decimal(found[4]) > 60:
        raise RecordError("bad_field", f"{name} is {ascii(text)[:80]}, must be like 12:34:56.7")
    size = int(found[2]) + (int(found[3]) + Decimal(found[4]) / 60) / 60
    return -size if found[1] == "-" else size
