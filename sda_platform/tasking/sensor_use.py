"""How requests are served and sensors are used from now on, by current rows of `pass_schedule`. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sda_platform.tasking.tables import SCHEDULED
from sda_platform.units import SECOND_NS

USE_COLUMNS: Final = (
    "priority_class", "owner", "status", "deadline_time_ns", "source_id", "start_time_ns", "end_time_ns",
)  # fmt: skip


def requests_by_status(rows: Iterable[Mapping[str, Any]], now_ns: int) -> Counter[tuple[int, str, str]]:
    """Count the requests whose deadline is ahead, by priority class, owner and status."""
    return Counter(
        (row["priority_class"], row["owner"], row["status"]) for row in rows if row["deadline_time_ns"] > now_ns
    )


def booked_ahead_s(rows: Iterable[Mapping[str, Any]], now_ns: int) -> dict[str, float]:
    """Sum the antenna time that is booked from now on, seconds, by sensor; of several beams together."""
    booked: Counter[str] = Counter()
    for row in rows:
        if row["status"] == SCHEDULED and row["end_time_ns"] > now_ns:
            booked[row["source_id"]] += row["end_time_ns"] - max(row["start_time_ns"], now_ns)
    return {sensor: time_ns / SECOND_NS for sensor, time_ns in booked.items()}
