"""Times in the columns of a sensor's own CSV, in the forms that are usual, as nanoseconds since 1970."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns, require_held

_EXACT: Final = Context(prec=50)
# Characters of a time: of more digits, arithmetic takes seconds.
_LONGEST: Final = 100
_DAY_NS: Final = Decimal(86_400_000_000_000)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# Year of four digits or two, day of the year with its fraction: 2024-306.5, 2024 306.5, 2024306.5, 24306.5.
_YEAR_DAY: Final = re.compile(r"(?:(\d{4}|\d\d)[-/: ]+(\d{1,3}(?:\.\d*)?)|(\d{4}|\d\d)(\d{3}(?:\.\d*)?))", re.ASCII)


def _counted(unit_ns: int | Decimal, first: str = "0") -> Callable[[str], int]:
    """Return the reader of a number of units since ``first``, in units, of 1970."""

    def read(text: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise ValueError
        since = _EXACT.subtract(Decimal(text), Decimal(first))
        return int(_EXACT.multiply(since, Decimal(unit_ns)).to_integral_value(context=_EXACT))

    return read


def _year_day(text: str) -> int:
    found = _YEAR_DAY.fullmatch(text)
    if found is None:
        raise ValueError
    year, day = int(found[1] or found[3]), Decimal(found[2] or found[4])
    if year < 100:  # as two-line element sets have it
        year += 1900 if year >= 57 else 2000
    first = datetime(year, 1, 1, tzinfo=UTC)
    if not 1 <= day < (datetime(year + 1, 1, 1, tzinfo=UTC) - first).days + 1:
        raise ValueError
    return round(first.timestamp()) * 1_000_000_000 + int(_EXACT.multiply(day - 1, _DAY_NS).to_integral_value())


TIME_FORMATS: Final[Mapping[str, Callable[[str], int]]] = MappingProxyType(
    {
        "iso": parse_epoch_ns,
        "unix_s": _counted(1_000_000_000),
        "unix_ms": _counted(1_000_000),
        "unix_us": _counted(1_000),
        "unix_ns": _counted(1),
        "mjd": _counted(_DAY_NS, "40587"),
        "jd": _counted(_DAY_NS, "2440587.5"),
        "year_day": _year_day,
    }
)
"""Name and reader of each form; a reader raises ValueError for what is none."""


def time_ns_of(text: str, form: str) -> int:
    """Nanoseconds since 1970, whose digits are of the system of the text. Raises RecordError.

    ``form`` is one of TIME_FORMATS, or a pattern of `datetime.strptime`.
    """
    try:
        if len(text) > _LONGEST:
            raise ValueError
        time_ns = TIME_FORMATS[form](text) if form in TIME_FORMATS else _by_pattern(text, form)
    except RecordError:
        raise
    except (ValueError, ArithmeticError):
        raise RecordError("bad_field", f"time is {ascii(text)[:80]}, which is not of the form {form}") from None
    return require_held(time_ns, f"time is {ascii(text)[:80]}")


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a pattern that `datetime.strptime` takes: what it wrote, it reads."""
    moment = datetime(2024, 11, 1, 12, 34, 56, tzinfo=UTC)
    try:
        datetime.strptime(moment.strftime(text), text)  # noqa: DTZ007 - only whether it can be read
    except (ValueError, re.error):
        return False
    return "%" in text


def _by_pattern(text: str, pattern: str) -> int:
    moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - UTC without an offset
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000
