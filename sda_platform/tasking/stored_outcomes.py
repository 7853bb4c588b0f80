"""What became of scheduled observations, read from the tables: commands, and the observations that were fitted."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ground.tables import GROUND_COMMANDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.tasking.demand import request_id
from sda_platform.tasking.realised_gains import ENCOUNTER_COLUMNS, FIT_COLUMNS, AttributedFit, realised_gain
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import CONJUNCTION, OBSERVATION_REQUESTS, OBSERVED, PASS_SCHEDULE, SCHEDULED
from sda_platform.tasking.task_outcomes import TASK_COLUMNS, Task, TaskOutcome, outcome, request_state, tasks
from sda_platform.units import DAY_NS, MINUTE_NS

REVIEWED_NS: Final = DAY_NS
"""What became of a task is concluded again for so long after its beginning."""
_COMMAND: Final = (
    "command_id", "state", "detail", "issued_time_ns", "accepted_time_ns", "finished_time_ns",
    "station_finished_time_ns",
)  # fmt: skip
# No observation is longer, nor a window of fits.
_LONGEST_NS: Final = 30 * MINUTE_NS


@dataclass(frozen=True)
class _Attribution:
    """The observations of a task, sorted, and the fits that they are in."""

    observation_ids: tuple[str, ...] = ()
    fits: tuple[AttributedFit, ...] = ()


def recent_outcomes(lake: Lake, since_ns: int) -> list[TaskOutcome]:
    """List the outcomes of the tasks that begin after ``since_ns``, by their beginning, as they are now."""
    return outcomes(StoredRows(lake), since_ns, lake.clock.now_ns())


def outcomes_of_event(lake: Lake, event_id: str, norad_ids: Iterable[int], since_ns: int) -> list[TaskOutcome]:
    """List the outcomes of the tasks for a conjunction of these objects, first assessed at ``since_ns``."""
    requests = {request_id(CONJUNCTION, norad_id, event_id) for norad_id in norad_ids}
    return outcomes(StoredRows(lake), since_ns, lake.clock.now_ns(), requests)


def outcomes(
    stored: StoredRows, since_ns: int, now_ns: int, requests: Collection[str] | None = None
) -> list[TaskOutcome]:
    """List the outcomes by ``now_ns`` of the tasks that begin after ``since_ns``, of all ``requests`` or these."""
    commands = _commands(stored, since_ns)
    found = scheduled_tasks(stored, since_ns, commands, requests)
    attributed = _attributed(stored, found, FIT_COLUMNS)
    made = _outcomes(stored, found, commands, attributed, now_ns)
    events = _events(stored, [each.task for each in made if each.task.reason == CONJUNCTION])
    encounters = _encounters(stored, [each.task for each in made if each.state == OBSERVED], events)
    return [
        replace(
            each,
            event_id=events.get(each.task.request_id),
            realised_gain=_gain(each, attributed[each.task.task_id], encounters.get(each.task.task_id), now_ns),
        )
        for each in made
    ]


def tasks_with_outcomes(stored: StoredRows, since_ns: int) -> list[Task]:
    """List the tasks that begin after ``since_ns``, by the schedule and the commands."""
    return scheduled_tasks(stored, since_ns, _commands(stored, since_ns))


def scheduled_tasks(
    stored: StoredRows, since_ns: int, commanded: Collection[str], requests: Collection[str] | None = None
) -> list[Task]:
    """List the tasks that begin after ``since_ns``, of all ``requests`` or these; ``commanded``: ids of commands."""
    recent = ds.field("deadline_time_ns") > since_ns - DAY_NS
    where = recent if requests is None else recent & ds.field("request_id").isin(sorted(requests))
    entries = stored.rows(PASS_SCHEDULE, TASK_COLUMNS, where).to_pylist()
    return [task for task in tasks(entries, commanded) if task.start_ns > since_ns]


def _commands(stored: StoredRows, since_ns: int) -> dict[str, Mapping[str, Any]]:
    """Read the commands of tasks that begin after ``since_ns``, by their id: each is issued shortly before."""
    recent = ds.field("issued_time_ns") > since_ns - DAY_NS
    return {row["command_id"]: row for row in stored.rows(GROUND_COMMANDS, _COMMAND, recent).to_pylist()}


def failed_tasks(stored: StoredRows, now_ns: int) -> list[Task]:
    """List the tasks of the last day that failed, and whose requests are not satisfied: commanded ones, and class 0."""
    since_ns = now_ns - DAY_NS
    commands = _commands(stored, since_ns)
    recently = scheduled_tasks(stored, since_ns, commands)
    found = [
        task for task in recently if task.task_id in commands or (task.priority_class == 0 and task.end_ns <= now_ns)
    ]
    made = _outcomes(stored, found, commands, _attributed(stored, found), now_ns)
    return [each.task for each in made if each.has_failed(now_ns)]


def booked_still(failed: Sequence[Task], existing: Sequence[Mapping[str, Any]]) -> list[Task]:
    """List the ``failed`` tasks that the ``existing`` bookings still have: their requests wait for another one."""
    booked = {(row["request_id"], row["start_time_ns"]) for row in existing if row["status"] == SCHEDULED}
    return [task for task in failed if (task.request_id, task.start_ns) in booked]


def _outcomes(
    stored: StoredRows,
    found: Sequence[Task],
    commands: Mapping[str, Mapping[str, Any]],
    attributed: Mapping[str, _Attribution],
    now_ns: int,
) -> list[TaskOutcome]:
    if not found:
        return []
    is_open = set(stored.current(OBSERVATION_REQUESTS, [])["request_id"].to_pylist())
    booked_ns = {
        row["request_id"]: row["start_time_ns"]
        for row in stored.current(PASS_SCHEDULE, ["status", "start_time_ns"]).to_pylist()
        if row["status"] == SCHEDULED
    }
    observed = {task.request_id for task in found if attributed[task.task_id].observation_ids}
    return [
        outcome(
            task,
            commands.get(task.task_id),
            attributed[task.task_id].observation_ids,
            now_ns,
            request_state(
                is_open=task.request_id in is_open,
                is_booked=task.start_ns != booked_ns.get(task.request_id, 0) > min(task.start_ns, now_ns),
                is_observed=task.request_id in observed,
            ),
        )
        for task in found
    ]


def _gain(
    made: TaskOutcome, attribution: _Attribution, encounter: Mapping[str, Any] | None, now_ns: int
) -> float | None:
    """Return the realised gain; None before the end of a task, and where the states before are not known."""
    task = made.task
    if task.end_ns > now_ns or (task.reason == CONJUNCTION and attribution.fits and encounter is None):
        return None
    return realised_gain(task.norad_id, task.expected_gain, attribution.fits, encounter)


def _events(stored: StoredRows, found: Sequence[Task]) -> dict[str, str]:
    """Find the conjunction of each request, also of those that are retracted."""
    if not found:
        return {}
    wanted = ds.field("request_id").isin(sorted({task.request_id for task in found}))
    rows = stored.rows(OBSERVATION_REQUESTS, ["request_id", "event_id"], wanted).to_pylist()
    return {row["request_id"]: row["event_id"] for row in rows if row["event_id"]}


def _encounters(stored: StoredRows, found: Sequence[Task], events: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Find, of each task for a conjunction by its id, the assessment that was in force when it began."""
    mine = [task for task in found if task.request_id in events]
    if not mine:
        return {}
    where = ds.field("event_id").isin(sorted({events[task.request_id] for task in mine}))
    where &= ds.field("tca_time_ns") > min(task.start_ns for task in mine)
    names = ["event_id", "sequence", "op", "as_of_ns", *ENCOUNTER_COLUMNS]
    by_event: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in stored.rows(CONJUNCTION_ASSESSMENTS, names, where).to_pylist():
        if row["op"] == INSERT:
            by_event[row["event_id"]].append(row)
    known: dict[str, Mapping[str, Any]] = {}
    for task in mine:
        before = [row for row in by_event[events[task.request_id]] if row["as_of_ns"] <= task.start_ns]
        if before:
            known[task.task_id] = max(before, key=lambda row: int(row["sequence"]))
    return known


def _attributed(
    stored: StoredRows, wanted: Sequence[Task], columns: Sequence[str] = ("observation_ids",)
) -> dict[str, _Attribution]:
    """Find, of each task by its id, the observations of its sensor in its time that are in a fit of its object.

    Of the fits, ``columns`` are read.
    """
    if not wanted:
        return {}
    first_ns, last_ns = min(task.start_ns for task in wanted), max(task.end_ns for task in wanted)
    start = ds.field("window_start_ns")
    of_objects = ds.field("norad_id").isin(sorted({task.norad_id for task in wanted}))
    near = (start > first_ns - _LONGEST_NS) & (start < last_ns)
    fits = stored.current(FUSED_TRACKS, ["norad_id", *columns], of_objects & near).to_pylist()
    fit_of = {each: fit for fit in fits for each in fit["observation_ids"]}
    names = ["observation_id", "source_id", "sensor_time_ns"]
    taken = (ds.field("sensor_time_ns") >= first_ns) & (ds.field("sensor_time_ns") <= last_ns)
    seen: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    if fit_of:
        used = taken & ds.field("observation_id").isin(sorted(fit_of))
        for row in stored.rows(OBSERVATIONS, names, used).to_pylist():
            key = row["source_id"], fit_of[row["observation_id"]]["norad_id"]
            seen[key].append((row["sensor_time_ns"], row["observation_id"]))
    return {task.task_id: _attribution(task, seen[task.source_id, task.norad_id], fit_of) for task in wanted}


def _attribution(task: Task, seen: Sequence[tuple[int, str]], fit_of: Mapping[str, Mapping[str, Any]]) -> _Attribution:
    times_ns = np.array([time_ns for time_ns, _ in seen], dtype=np.int64)
    places = np.flatnonzero((times_ns >= task.start_ns) & (times_ns <= task.end_ns))
    ids = sorted({seen[place][1] for place in places.tolist()})
    used: dict[str, list[str]] = defaultdict(list)
    for each in ids:
        used[fit_of[each]["fit_id"]].append(each)
    fits = [fit_of[mine[0]] for mine in used.values()]
    shares = [len(mine) / len(fit["observation_ids"]) for mine, fit in zip(used.values(), fits, strict=True)]
    return _Attribution(tuple(ids), tuple(map(AttributedFit, fits, shares)))
