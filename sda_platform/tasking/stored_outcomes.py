"""What became of scheduled observations, read from the tables: commands, and the observations that were fitted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ground.tables import GROUND_COMMANDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import OBSERVATION_REQUESTS, PASS_SCHEDULE, SCHEDULED
from sda_platform.tasking.task_outcomes import TASK_COLUMNS, Task, TaskOutcome, outcome, tasks
from sda_platform.units import DAY_NS, MINUTE_NS

# No observation is longer, nor a window of fits.
_LONGEST_NS: Final = 30 * MINUTE_NS


def task_outcomes(lake: Lake, since_ns: int) -> list[TaskOutcome]:
    """List the outcomes of the tasks that end after ``since_ns``, by their beginning."""
    now_ns, stored = lake.clock.now_ns(), StoredRows(lake)
    recent = ds.field("deadline_time_ns") > since_ns - DAY_NS
    entries = stored.rows(PASS_SCHEDULE, TASK_COLUMNS, recent).to_pylist()
    found = [task for task in tasks(entries) if task.end_ns > since_ns]
    is_its = ds.field("command_id").isin([task.task_id for task in found])
    commands = stored.rows(GROUND_COMMANDS, ["command_id", "state", "detail"], is_its).to_pylist()
    return _outcomes(stored, found, {row["command_id"]: row for row in commands}, now_ns)


def failed_tasks(stored: StoredRows, now_ns: int) -> list[Task]:
    """List the commanded tasks of the last day that failed, and whose requests are not satisfied."""
    recent = ds.field("issued_time_ns") > now_ns - DAY_NS
    commands = stored.rows(GROUND_COMMANDS, ["command_id", "state", "detail"], recent).to_pylist()
    if not commands:
        return []
    by_id = {row["command_id"]: row for row in commands}
    entries = stored.rows(PASS_SCHEDULE, TASK_COLUMNS, ds.field("deadline_time_ns") > now_ns - 2 * DAY_NS)
    found = [task for task in tasks(entries.to_pylist()) if task.task_id in by_id]
    return [each.task for each in _outcomes(stored, found, by_id, now_ns) if each.has_failed(now_ns)]


def booked_still(failed: Sequence[Task], existing: Sequence[Mapping[str, Any]]) -> list[Task]:
    """List the ``failed`` tasks that the ``existing`` bookings still have: their requests wait for another one."""
    booked = {(row["request_id"], row["start_time_ns"]) for row in existing if row["status"] == SCHEDULED}
    return [task for task in failed if (task.request_id, task.start_ns) in booked]


def _outcomes(
    stored: StoredRows, found: Sequence[Task], commands: Mapping[str, Mapping[str, Any]], now_ns: int
) -> list[TaskOutcome]:
    is_open = set(stored.current(OBSERVATION_REQUESTS, [])["request_id"].to_pylist())
    booked_ns = {
        row["request_id"]: row["start_time_ns"]
        for row in stored.current(PASS_SCHEDULE, ["status", "start_time_ns"]).to_pylist()
        if row["status"] == SCHEDULED
    }
    observed = observed_counts(stored, found)
    return [
        outcome(
            task,
            commands.get(task.task_id),
            observed[task.task_id],
            now_ns,
            is_open=task.request_id in is_open,
            is_booked=booked_ns.get(task.request_id, 0) > task.start_ns,
        )
        for task in found
    ]


def observed_counts(stored: StoredRows, wanted: Sequence[Task]) -> Counter[str]:
    """Count, of each task by its id, the observations of its sensor in its time that are in a fit of its object."""
    if not wanted:
        return Counter()
    first_ns, last_ns = min(task.start_ns for task in wanted), max(task.end_ns for task in wanted)
    start = ds.field("window_start_ns")
    of_objects = ds.field("norad_id").isin(sorted({task.norad_id for task in wanted}))
    near = (start > first_ns - _LONGEST_NS) & (start < last_ns)
    fits = stored.current(FUSED_TRACKS, ["norad_id", "observation_ids"], of_objects & near).to_pylist()
    object_of = {each: row["norad_id"] for row in fits for each in row["observation_ids"]}
    names = ["observation_id", "source_id", "sensor_time_ns"]
    taken = (ds.field("sensor_time_ns") >= first_ns) & (ds.field("sensor_time_ns") <= last_ns)
    times: dict[tuple[str, int], list[int]] = {}
    if object_of:
        used = taken & ds.field("observation_id").isin(sorted(object_of))
        for row in stored.rows(OBSERVATIONS, names, used).to_pylist():
            key = row["source_id"], object_of[row["observation_id"]]
            times.setdefault(key, []).append(row["sensor_time_ns"])
    return Counter(
        {
            task.task_id: _within(times.get((task.source_id, task.norad_id), []), task.start_ns, task.end_ns)
            for task in wanted
        }
    )


def _within(times_ns: Sequence[int], first_ns: int, last_ns: int) -> int:
    times = np.asarray(times_ns, dtype=np.int64)
    return int(((times >= first_ns) & (times <= last_ns)).sum())
