"""Which sensors are out of service by the fleet's membership, so that no observation is planned for them. Pure.

A sensor's agent has its name. The sensor is out of service when the agent is registered, and every agent that reports
holds it failed or left. Without a report for minutes there is no evidence: then all sensors count as in
service. A sensor without an agent is always in service.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.clock import iso
from sda_platform.formats.membership_events import DEAD, LEFT, STATUS_NAMES
from sda_platform.tasking.antennas import Antenna
from sda_platform.tasking.tables import SCHEDULED
from sda_platform.units import SECOND_NS

FLEET_COLUMNS: Final = (
    "member", "is_registered", "status", "since_time_ns", "alive_views", "other_views", "own_report_time_ns",
)  # fmt: skip
EVIDENCE_S: Final = 600.0
"""A report that is older than this, before the instant of the schedule, is no evidence."""
_DOWN: Final = (STATUS_NAMES[DEAD], STATUS_NAMES[LEFT])


@dataclass(frozen=True)
class SensorOutage:
    """A sensor that nothing is planned for: the status of its agent, since when, and how many agents report it."""

    source_id: str
    status: str
    since_ns: int
    observers: int


def outages(fleet: Iterable[Mapping[str, Any]], sensors: Collection[str], as_of_ns: int) -> dict[str, SensorOutage]:
    """Return the ``sensors`` out of service at ``as_of_ns``, by the rows of `fleet_membership`."""
    rows = list(fleet)
    newest_ns = max((row["own_report_time_ns"] or 0 for row in rows), default=0)
    if as_of_ns - newest_ns > EVIDENCE_S * SECOND_NS:
        return {}
    return {
        row["member"]: SensorOutage(row["member"], row["status"], row["since_time_ns"], row["other_views"])
        for row in sorted(rows, key=lambda each: str(each["member"]))
        if row["member"] in sensors
        and row["is_registered"]
        and row["status"] in _DOWN
        and not row["alive_views"]
        and row["other_views"]
    }


def is_affected(existing: Iterable[Mapping[str, Any]], out: Mapping[str, SensorOutage], as_of_ns: int) -> bool:
    """Return whether an observation that has not ended is booked at a sensor that is ``out`` of service."""
    return any(row["source_id"] in out for row in _ahead(existing, as_of_ns))


def is_closed(existing: Iterable[Mapping[str, Any]], antennas: Mapping[str, Antenna], as_of_ns: int) -> bool:
    """Return whether an observation that has not ended is booked while its sensor is closed."""
    return any(
        start_ns < row["end_time_ns"] and row["start_time_ns"] < end_ns
        for row in _ahead(existing, as_of_ns)
        if row["source_id"] in antennas
        for start_ns, end_ns in antennas[row["source_id"]].closed_ns
    )


def shown_outages(
    out: Mapping[str, SensorOutage],
    existing: Iterable[Mapping[str, Any]],
    planned: Iterable[Mapping[str, Any]],
    as_of_ns: int,
) -> list[dict[str, Any]]:
    """A line for each sensor that is ``out``, with what became of the observations that it had.

    ``existing`` is the schedule before, ``planned`` the one that was made without these sensors.
    """
    now = {row["request_id"]: row["status"] == SCHEDULED for row in planned}
    taken: dict[str, list[str]] = {name: [] for name in out}
    for row in _ahead(existing, as_of_ns):
        if row["source_id"] in out and row["request_id"] in now:
            taken[row["source_id"]].append(row["request_id"])
    return [
        {
            "sensor": each.source_id,
            "agent": each.status,
            "since": iso(each.since_ns),
            "observers": each.observers,
            "observations moved": sum(now[request] for request in taken[each.source_id]),
            "without another sensor": sum(not now[request] for request in taken[each.source_id]),
        }
        for each in out.values()
    ]


def _ahead(rows: Iterable[Mapping[str, Any]], as_of_ns: int) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["status"] == SCHEDULED and row["end_time_ns"] > as_of_ns]
