"""Segments of events to bronze rows, and events to the state of each command. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.ground_events import (
    ACCEPTED,
    ACKNOWLEDGED,
    COMMAND_EVENTS,
    CONFIRMED,
    DISPATCHED,
    EXPIRED,
    FAILED,
    ISSUED,
    LOST,
    REJECTED,
    STATION_TIMES,
    GroundEvent,
)
from sda_platform.ground.commands import PRIORITY, Command, Transition
from sda_platform.ground.tables import GROUND_COMMANDS, GROUND_EVENTS, GROUND_FEED
from sda_platform.landing.record_rows import record_decoder
from sda_platform.units import DAY_NS

EXECUTED: Final = "executed"
EVENT_COLUMNS: Final = tuple(GroundEvent.__dataclass_fields__)
DIRECTION: Final = ("azimuth_deg", "elevation_deg")
_OF_COMMAND: Final = (
    "command_id", "station", "kind", "issued_time_ns", "expires_time_ns", *DIRECTION,
)  # fmt: skip
_REACHED: Final = {
    CONFIRMED: "confirmed_time_ns",
    ACCEPTED: "accepted_time_ns",
    DISPATCHED: "dispatched_time_ns",
}
_PERSON: Final = {ISSUED: "issued_by", CONFIRMED: "confirmed_by"}
FINAL: Final = (ACKNOWLEDGED, REJECTED, FAILED, EXPIRED, LOST)
_WHAT: Final = ("station", "kind", *DIRECTION)
_RANK: Final = {event: number for number, event in enumerate(COMMAND_EVENTS)}


def _facts(event: GroundEvent) -> dict[str, Any]:
    if event.event in COMMAND_EVENTS and event.kind not in PRIORITY:
        raise RecordError("bad_field", f"kind is {ascii(event.kind)[:40]}, must be one of {sorted(PRIORITY)}")
    return asdict(event)


decode = record_decoder(GROUND_EVENTS, GROUND_FEED, _facts)


def states(before: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of `ground_commands` that change by ``events``, after the rows ``before``; any order of events.

    A final state (`FINAL`) stays. What the station has executed is acknowledged in any case.
    """
    known = {row["command_id"]: dict(row) for row in before}
    changed: dict[str, dict[str, Any]] = {}
    for event in sorted(events, key=_order):
        if not event["command_id"] or event["event"] not in COMMAND_EVENTS:
            continue
        row = known.setdefault(event["command_id"], _first(event))
        changed[event["command_id"]] = row
        name = "finished_time_ns" if event["event"] in FINAL else _REACHED.get(event["event"])
        if name is not None:
            row[name] = min(row[name] or event["event_time_ns"], event["event_time_ns"])
        row |= {name: row[name] or event[name] or None for name in STATION_TIMES}
        if (named := _PERSON.get(event["event"])) is not None:
            row[named] = row[named] or event["person"] or None
        is_execution = event["event"] == ACKNOWLEDGED and event["detail"] == EXECUTED
        row["executions"] += is_execution
        is_later = row["state"] not in FINAL and _RANK[event["event"]] >= _RANK[row["state"]]
        if is_later or is_execution:
            row |= {name: event[name] for name in ("uplink", "token", "detail")} | {"state": event["event"]}
    return [{name: row[name] for name in GROUND_COMMANDS.content_schema.names} for _, row in sorted(changed.items())]


def oldest_pending_ns(commands: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], int]:
    """Find when the oldest pending command was issued, by station and priority, from rows of the table."""
    oldest: dict[tuple[str, int], int] = {}
    for row in commands:
        if row["state"] not in FINAL:
            key = row["station"], row["priority"]
            oldest[key] = min(oldest.get(key, row["issued_time_ns"]), row["issued_time_ns"])
    return oldest


def unrepeated_losses(commands: Iterable[Mapping[str, Any]], now_ns: int) -> list[str]:
    """Commands that a station lost, not issued again, up to a day after they expired; rows of the table."""
    losses: list[Mapping[str, Any]] = []
    newest_ns: dict[tuple[Any, ...], int] = {}
    for row in commands:
        same = tuple(row[name] for name in _WHAT)
        newest_ns[same] = max(newest_ns.get(same, 0), row["issued_time_ns"])
        if row["state"] == LOST and row["expires_time_ns"] > now_ns - DAY_NS:
            losses.append(row)
    return sorted(
        row["command_id"] for row in losses if row["issued_time_ns"] == newest_ns[tuple(row[name] for name in _WHAT)]
    )


def transitions(events: Iterable[Mapping[str, Any]]) -> list[Transition]:
    """Convert events of commands that are not done into transitions of a queue, in their order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for event in sorted(events, key=_order):
        if event["event"] in (ACCEPTED, DISPATCHED):
            found.setdefault(event["command_id"], []).append(event)
    order = [each for several in found.values() for each in several]
    return [Transition(number, each["event"], command_of(each)) for number, each in enumerate(order, 1)]


def command_of(event: Mapping[str, Any]) -> Command:
    """Read the command of an event."""
    direction = event["azimuth_deg"], event["elevation_deg"]
    return Command(event["command_id"], event["kind"], event["issued_time_ns"], event["expires_time_ns"], *direction)


def _order(event: Mapping[str, Any]) -> tuple[int, int, int, int]:
    return event["token"], event["number"], event["event_time_ns"], _RANK.get(event["event"], 0)


def _first(event: Mapping[str, Any]) -> dict[str, Any]:
    copied = {name: event[name] for name in _OF_COMMAND}
    times = dict.fromkeys((*_PERSON.values(), *_REACHED.values(), "finished_time_ns", *STATION_TIMES))
    facts = {"priority": PRIORITY[event["kind"]], "state": COMMAND_EVENTS[0], "executions": 0}
    return {**copied, **times, **facts, "uplink": event["uplink"], "token": event["token"], "detail": event["detail"]}
