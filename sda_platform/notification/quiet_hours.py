"""Quiet hours, by the clock of a time zone; they may go over midnight."""

from datetime import UTC, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from sda_platform.units import SECOND_NS


def quiet_hours(text: Any) -> tuple[time, time]:
    """Read quiet hours such as 22:00-06:00. Raises ValueError."""
    begin, separator, end = str(text).partition("-")
    if not separator:
        raise ValueError(f"{text!r} are no quiet hours, such as 22:00-06:00")
    hours = time.fromisoformat(begin.strip()), time.fromisoformat(end.strip())
    if hours[0] == hours[1] or any(each.tzinfo for each in hours):
        raise ValueError(f"{text!r} are no quiet hours, such as 22:00-06:00; the zone is the rule's `timezone`")
    return hours


def time_zone(name: Any) -> ZoneInfo:
    """Return the time zone of a name such as Europe/Berlin. Raises ValueError."""
    try:
        return ZoneInfo(str(name))
    except (OSError, ValueError, LookupError):  # each is raised for some names
        raise ValueError(f"{name!r} is no time zone, such as Europe/Berlin") from None


def is_quiet(hours: tuple[time, time] | None, zone: ZoneInfo, now_ns: int) -> bool:
    """Return whether ``now_ns`` is in quiet hours; without any, it never is."""
    if hours is None:
        return False
    begin, end = hours
    now = datetime.fromtimestamp(now_ns // SECOND_NS, UTC).astimezone(zone).time()
    return begin <= now < end if begin < end else now >= begin or now < end
