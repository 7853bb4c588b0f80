"""Instants as text: ISO 8601 by month and day or by day of year, to Unix time in nanoseconds and back."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.time_systems import leap_second_ends_ns
from sda_platform.units import SECOND_NS

# Half an hour less than 64 bits hold: more than time systems, and the time of light, differ.
_MOST_NS: Final = 2**63 - 1_800 * SECOND_NS
_LONGEST: Final = 64
"""Characters of an instant, with any digits of its second that a writer gives; bounds what the cache below holds."""
# Year; day of the year, or month and day; hour and minute; second; its digits; Z or an offset.
_INSTANT: Final = re.compile(
    r"(\d{4})-(?:(\d{3})|(\d\d-\d\d))[T ](\d\d:\d\d):(\d\d)(?:\.(\d*))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


def parse_epoch_ns(text: object, keyword: str = "EPOCH") -> int:
    """Unix time in ns of an ISO 8601 instant, by month and day or by day of year; UTC without an offset.

    Digits past 1 ns are cut. A leap second is the first second of the next day, as in Unix time. Raises RecordError for
    what is no instant, or one that 64 bits of nanoseconds cannot hold.
    """
    if not isinstance(text, str):
        raise RecordError("bad_field", f"{keyword} is {ascii(text)[:80]}, must be text")
    try:
        if len(text) > _LONGEST:
            raise ValueError
        time_ns = _unix_ns(text.strip().upper())
    except (ValueError, OverflowError):
        raise RecordError(
            "bad_field", f"{keyword} is {ascii(text)[:80]}, must be like 2024-11-01T00:00:00.000000"
        ) from None
    return require_held(time_ns, f"{keyword} is {ascii(text)[:80]}")


def require_held(time_ns: int, stated: str) -> int:
    """Return ``time_ns`` where 64 bits hold it in every time system. Raises RecordError, beginning with ``stated``."""
    if abs(time_ns) > _MOST_NS:
        raise RecordError("out_of_range", f"{stated}, must be from 1957 to 2099")
    return time_ns


@lru_cache(maxsize=1024)
def _unix_ns(text: str) -> int:
    found = _INSTANT.fullmatch(text)
    if found is None:
        moment = datetime.fromisoformat(text)
        if moment.microsecond:
            raise ValueError  # digits that fromisoformat would round
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * SECOND_NS
    year, day_of_year, month_day, clock, second, fraction, offset = found.groups()
    day = datetime.fromisoformat(f"{year}-{month_day}") if month_day else _by_day_of_year(int(year), int(day_of_year))
    is_leap = second == "60"
    moment = datetime.fromisoformat(f"{day:%Y-%m-%d}T{clock}:{'59' if is_leap else second}{offset or '+00:00'}")
    seconds = round(moment.timestamp()) + is_leap
    if is_leap and seconds * SECOND_NS not in leap_second_ends_ns():
        raise ValueError
    return seconds * SECOND_NS + int(fraction[:9].ljust(9, "0") if fraction else 0)


def _by_day_of_year(year: int, day: int) -> datetime:
    moment = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day - 1)
    if day < 1 or moment.year != year:
        raise ValueError
    return moment


def format_epoch(time_ns: int) -> str:
    """ISO 8601 with microseconds (nanoseconds where needed) and no offset, as OMM writes UTC."""
    seconds, fraction = divmod(time_ns, SECOND_NS)
    digits = f"{fraction // 1000:06d}" if fraction % 1000 == 0 else f"{fraction:09d}"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{digits}"
