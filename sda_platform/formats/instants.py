"""Instants as text: ISO 8601 by month and day or by day of year, to Unix time in nanoseconds and back."""

from datetime import UTC, datetime
from typing import Final

from sda_platform.formats.errors import RecordError

_NS: Final = 1_000_000_000


def parse_epoch_ns(text: object, keyword: str = "EPOCH") -> int:
    """Unix time in ns of an ISO 8601 instant, by month and day or by day of year; UTC without an offset.

    Digits past 1 ns are cut. Raises RecordError for what is no instant, or one that 64 bits of nanoseconds cannot hold.
    """
    if not isinstance(text, str):
        raise RecordError("bad_field", f"{keyword} is {ascii(text)[:80]}, must be text")
    whole, _, fraction = text.strip().removesuffix("Z").partition(".")
    try:
        if fraction and not (fraction.isascii() and fraction.isdigit()):
            raise ValueError
        moment = _by_day_of_year(whole) if whole[8:9] == "T" else datetime.fromisoformat(whole)
        if moment.microsecond:
            raise ValueError
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        time_ns = round(moment.timestamp()) * _NS + int(fraction[:9].ljust(9, "0") if fraction else 0)
    except (ValueError, OverflowError):
        raise RecordError(
            "bad_field", f"{keyword} is {ascii(text)[:80]}, must be like 2024-11-01T00:00:00.000000"
        ) from None
    if not -(2**63) <= time_ns < 2**63:
        raise RecordError("out_of_range", f"{keyword} is {ascii(text)[:80]}, must be from 1957 to 2099")
    return time_ns


def _by_day_of_year(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%jT%H:%M:%S").replace(tzinfo=UTC)


def format_epoch(time_ns: int) -> str:
    """ISO 8601 with microseconds (nanoseconds where needed) and no offset, as OMM writes UTC."""
    seconds, fraction = divmod(time_ns, _NS)
    digits = f"{fraction // 1000:06d}" if fraction % 1000 == 0 else f"{fraction:09d}"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{digits}"
