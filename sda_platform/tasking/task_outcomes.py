"""What became of scheduled observations and of their requests. Pure.

A task is a booking of a request that was in force when it began, or that was commanded. Its id names request, sensor
and beginning. So the command of a task is issued once, and a booking that moves is another task.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.formats.ground_events import ACKNOWLEDGED, CONFIRMED, EXPIRED, ISSUED, LOST, REJECTED
from sda_platform.formats.ground_events import FAILED as COMMAND_FAILED
from sda_platform.lake.correction_log import INSERT
from sda_platform.tasking.tables import (
    ACCEPTED,
    EXECUTED,
    EXECUTING,
    FAILED,
    MISSED,
    OBSERVED,
    OPEN,
    PLANNED,
    RESCHEDULED,
    SATISFIED,
    SCHEDULED,
    WITHDRAWN,
)
from sda_platform.units import DAY_NS, SECOND_NS

TASK_COLUMNS: Final = (
    "request_id", "sequence", "op", "as_of_ns", "status", "norad_id", "reason", "priority_class", "source_id",
    "pass_id", "start_time_ns", "end_time_ns", "information_gain",
)  # fmt: skip
SHARE_COLUMNS: Final = (*TASK_COLUMNS, "owner")
SHARE_HALF_LIFE_NS: Final = 7 * DAY_NS
SHARE_MEMORY_NS: Final = 5 * SHARE_HALF_LIFE_NS
"""Antenna time from before counts for no share."""
ARRIVES_WITHIN_NS: Final = 30 * SECOND_NS
"""After a task has ended, its observations are fitted within so long."""

_NAMESPACE: Final = uuid.UUID("2f0f3f0c-7e0b-5d0e-8a64-0b2f6ad4f7c9")


@dataclass(frozen=True)
class Task:
    """One observation of an object by a sensor, Unix time ns."""

    request_id: str
    norad_id: int
    priority_class: int
    source_id: str
    pass_id: str
    start_ns: int
    end_ns: int
    reason: str = ""
    expected_gain: float = 0.0
    """That of its request."""

    @property
    def task_id(self) -> str:
        """Its identity, which is also the id of its command."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.request_id}|{self.source_id}|{self.start_ns}"))


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task, and of its request since."""

    task: Task
    state: str
    detail: str
    observation_ids: tuple[str, ...]
    request: str
    command: Mapping[str, Any] | None = None
    """Its row of `ground_commands`."""
    event_id: str | None = None
    realised_gain: float | None = None

    def has_failed(self, now_ns: int) -> bool:
        """Return whether its request needs another observation: the command ended without one, or nothing was seen.

        What is seen arrives within `ARRIVES_WITHIN_NS`. A sensor that is not commanded here may observe by plans of
        its own: without a command, only class 0 counts.
        """
        has_arrived = self.task.end_ns + ARRIVES_WITHIN_NS <= now_ns
        is_over = self.state == FAILED or (self.state in (EXECUTED, MISSED) and has_arrived)
        counts = self.command is not None or self.task.priority_class == 0
        return counts and self.request in (OPEN, RESCHEDULED) and is_over

    def row(self) -> dict[str, Any]:
        """Return the outcome as a row of `task_outcomes`, without the columns of every correction log."""
        task, command = self.task, self.command or {}
        return {
            "task_id": task.task_id,
            "request_id": task.request_id,
            "event_id": self.event_id,
            "norad_id": task.norad_id,
            "reason": task.reason,
            "priority_class": task.priority_class,
            "source_id": task.source_id,
            "pass_id": task.pass_id,
            "start_time_ns": task.start_ns,
            "end_time_ns": task.end_ns,
            "state": self.state,
            "detail": self.detail,
            "request": self.request,
            "issued_time_ns": command.get("issued_time_ns"),
            "accepted_time_ns": command.get("accepted_time_ns"),
            "finished_time_ns": command.get("station_finished_time_ns") or command.get("finished_time_ns"),
            "observations": len(self.observation_ids),
            "observation_ids": list(self.observation_ids),
            "expected_gain": task.expected_gain,
            "realised_gain": self.realised_gain,
        }


def tasks(entries: Iterable[Mapping[str, Any]], commanded: Collection[str] = ()) -> list[Task]:
    """Return the tasks in the ``entries`` (`TASK_COLUMNS`) of `pass_schedule`, by their beginning; all entries of a
    request.

    A booking that was moved or dropped before it began is none, unless its id is among those ``commanded``.
    """
    by_request: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        by_request[entry["request_id"]].append(entry)
    found: dict[str, Task] = {}
    for mine in by_request.values():
        # Of two entries with one sequence the retract is the later, and "retract" > "insert".
        ordered = sorted(mine, key=lambda each: (each["sequence"], each["op"]))
        for place, entry in enumerate(ordered):
            if entry["op"] != INSERT or entry["status"] != SCHEDULED:
                continue
            later = ordered[place + 1 :]
            task = _task(entry)
            if task.task_id in commanded or not any(each["as_of_ns"] <= task.start_ns for each in later):
                found[task.task_id] = task
    return sorted(found.values(), key=lambda each: (each.start_ns, each.source_id, each.request_id))


def used_ns(entries: Iterable[Mapping[str, Any]], as_of_ns: int) -> dict[str, float]:
    """Return the antenna time of each owner up to ``as_of_ns``; time of `SHARE_HALF_LIFE_NS` ago counts half.

    ``entries`` of `pass_schedule` with `SHARE_COLUMNS`; all of a request.
    """
    found = list(entries)
    owners = {entry["request_id"]: entry["owner"] for entry in found}
    used: dict[str, float] = defaultdict(float)
    for task in tasks(found):
        if task.end_ns <= as_of_ns:
            age = (as_of_ns - task.end_ns) / SHARE_HALF_LIFE_NS
            used[owners[task.request_id]] += (task.end_ns - task.start_ns) * 0.5**age
    return dict(used)


def outcome(
    task: Task, command: Mapping[str, Any] | None, observation_ids: Sequence[str], now_ns: int, request: str
) -> TaskOutcome:
    """Return what became of ``task`` by ``now_ns``, and of its ``request`` (`request_state`).

    ``command``: its row of `ground_commands`, if it has one; ``observation_ids``: those of its sensor, of its object
    and time, that were fitted.
    """
    state, detail = _state(task, command, is_observed=bool(observation_ids), now_ns=now_ns)
    return TaskOutcome(task, state, detail, tuple(observation_ids), request, command)


def request_state(*, is_open: bool, is_booked: bool, is_observed: bool) -> str:
    """Return what became of a request: ``is_open``, it is not retracted; ``is_booked``, another time is ahead;
    ``is_observed``, one of its tasks was.
    """
    if is_open:
        return RESCHEDULED if is_booked else OPEN
    return SATISFIED if is_observed else WITHDRAWN


def _state(task: Task, command: Mapping[str, Any] | None, *, is_observed: bool, now_ns: int) -> tuple[str, str]:
    if is_observed:
        return OBSERVED, ""
    has_ended = task.end_ns <= now_ns
    if command is None:
        return (MISSED, "neither command nor observation") if has_ended else (PLANNED, "")
    reached = command["state"]
    if reached in (REJECTED, COMMAND_FAILED, EXPIRED, LOST):
        return FAILED, f"{reached}: {command['detail']}" if command["detail"] else reached
    if reached == ACKNOWLEDGED:
        return (EXECUTED, "no observation of it") if has_ended else (EXECUTING, "")
    if has_ended:
        return MISSED, f"its command was {reached}, not executed"
    return (PLANNED, "its command is issued") if reached in (ISSUED, CONFIRMED) else (ACCEPTED, "")


def _task(entry: Mapping[str, Any]) -> Task:
    return Task(
        entry["request_id"],
        entry["norad_id"],
        entry["priority_class"],
        entry["source_id"],
        entry["pass_id"] or "",
        entry["start_time_ns"],
        entry["end_time_ns"],
        entry["reason"],
        entry["information_gain"],
    )
