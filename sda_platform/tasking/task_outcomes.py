"""What became of scheduled observations: accepted, executing, executed, observed, failed or missed. Pure.

A task is a booking of a request that was in force when it began. Its id names request, sensor and beginning, so the
command of a task is issued once, and a booking that moves is another task.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.formats.ground_events import ACKNOWLEDGED, EXPIRED, LOST, REJECTED
from sda_platform.lake.correction_log import INSERT
from sda_platform.tasking.tables import SCHEDULED
from sda_platform.units import DAY_NS, SECOND_NS

TASK_COLUMNS: Final = (
    "request_id", "sequence", "op", "as_of_ns", "status", "norad_id", "priority_class", "source_id", "pass_id",
    "start_time_ns", "end_time_ns",
)  # fmt: skip
SHARE_COLUMNS: Final = (*TASK_COLUMNS, "owner")
SHARE_HALF_LIFE_NS: Final = 7 * DAY_NS
SHARE_MEMORY_NS: Final = 5 * SHARE_HALF_LIFE_NS
"""Antenna time from before counts for no share."""
PLANNED, ACCEPTED, EXECUTING, EXECUTED = "planned", "accepted", "executing", "executed"
OBSERVED, FAILED, MISSED = "observed", "failed", "missed"
SATISFIED, RESCHEDULED, OPEN = "satisfied", "rescheduled", "open"
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
    observations: int
    request: str
    is_commanded: bool = False

    def has_failed(self, now_ns: int) -> bool:
        """Return whether its request needs another observation: the command ended without one, or nothing was seen.

        What is seen arrives within `ARRIVES_WITHIN_NS`. A sensor that is not commanded here may have observed by plans
        of its own, so that a booking without an observation does not count.
        """
        has_arrived = self.task.end_ns + ARRIVES_WITHIN_NS <= now_ns
        is_over = self.state == FAILED or (self.state in (EXECUTED, MISSED) and has_arrived)
        return self.is_commanded and self.request != SATISFIED and is_over

    def shown(self) -> dict[str, Any]:
        """Return the outcome as a row."""
        task = self.task
        facts = {"task_id": task.task_id, "source_id": task.source_id, "norad_id": task.norad_id}
        times = {"start_time_ns": task.start_ns, "end_time_ns": task.end_ns}
        became = {"state": self.state, "observations": self.observations, "request": self.request}
        return {**facts, **times, "priority_class": task.priority_class, **became, "detail": self.detail}


def tasks(entries: Iterable[Mapping[str, Any]]) -> list[Task]:
    """Return the tasks in the ``entries`` (`TASK_COLUMNS`) of `pass_schedule`, by their beginning; all entries of a
    request.

    A booking that was moved or dropped before it began is none.
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
            if not any(each["as_of_ns"] <= entry["start_time_ns"] for each in later):
                task = _task(entry)
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
    task: Task, command: Mapping[str, Any] | None, observations: int, now_ns: int, *, is_open: bool, is_booked: bool
) -> TaskOutcome:
    """Return what became of ``task`` by ``now_ns``.

    ``command``: its row of `ground_commands`, if it has one; ``observations``: how many of its sensor, of its object
    and time, were fitted. ``is_open``: its request is not retracted; ``is_booked``: it has a later booking.
    """
    state, detail = _state(task, command, observations, now_ns)
    request = (RESCHEDULED if is_booked else OPEN) if is_open else SATISFIED
    return TaskOutcome(task, state, detail, observations, request, command is not None)


def _state(task: Task, command: Mapping[str, Any] | None, observations: int, now_ns: int) -> tuple[str, str]:
    if observations:
        return OBSERVED, ""
    has_ended = task.end_ns <= now_ns
    if command is None:
        return (MISSED, "neither command nor observation") if has_ended else (PLANNED, "")
    reached = command["state"]
    if reached in (REJECTED, EXPIRED, LOST):
        return FAILED, f"{reached}: {command['detail']}" if command["detail"] else reached
    if reached == ACKNOWLEDGED:
        return (EXECUTED, "no observation of it") if has_ended else (EXECUTING, "")
    return (MISSED, f"its command was {reached}, not executed") if has_ended else (ACCEPTED, "")


def _task(entry: Mapping[str, Any]) -> Task:
    return Task(
        entry["request_id"],
        entry["norad_id"],
        entry["priority_class"],
        entry["source_id"],
        entry["pass_id"] or "",
        entry["start_time_ns"],
        entry["end_time_ns"],
    )
