"""From the schedule to commands of an antenna of our own."""

from collections.abc import Sequence
from typing import Final

import pyarrow.dataset as ds

from sda_platform.formats.ground_events import GroundEvent
from sda_platform.ground.log import CommandLog
from sda_platform.lake.lake import Lake
from sda_platform.tasking.planning import WINDOW_COLUMNS, antenna_pass
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import PASS_SCHEDULE, PASS_WINDOWS, SCHEDULED
from sda_platform.tasking.task_outcomes import TASK_COLUMNS, Task, tasks
from sda_platform.units import SECOND_NS

LEAD_NS: Final = 30 * SECOND_NS
"""A command is issued so long before its observation, or when the one before has ended, if that is later."""


class SensorCommander:
    """Issues the commands of one ``sensor``, each once, through the log of its station."""

    def __init__(self, lake: Lake, log: CommandLog, sensor: str, mask_deg: float) -> None:
        self._lake, self._log, self._sensor, self._mask_deg = lake, log, sensor, mask_deg
        self._sequence = 0
        self._tasks: list[Task] = []
        self._known: set[str] = set()

    def step(self) -> list[GroundEvent]:
        """Issue what is due; call it each second. Repeating it, also in another process, issues nothing twice."""
        head = self._lake.log(PASS_SCHEDULE).head().sequence
        now_ns = self._lake.clock.now_ns()
        if head > self._sequence:
            self._tasks, self._sequence = self._ahead(now_ns), head
        due = due_tasks(self._tasks, now_ns)
        if not due:
            return []
        self._known |= {event["command_id"] for event in self._log.new_events()}
        return [self._issued(task, now_ns) for task in due if task.task_id not in self._known]

    def _issued(self, task: Task, now_ns: int) -> GroundEvent:
        azimuth_deg, elevation_deg = self._direction(task)
        event = self._log.issue(
            "REPOINT",
            expires_in_s=(task.end_ns - now_ns) / SECOND_NS,
            command_id=task.task_id,
            azimuth_deg=azimuth_deg,
            elevation_deg=elevation_deg,
        )
        self._known.add(task.task_id)
        return event

    def _direction(self, task: Task) -> tuple[float, float]:
        """Where the antenna points when the observation begins, by the window that it was booked in."""
        is_its = ds.field("pass_id") == task.pass_id
        rows = self._lake.log(PASS_WINDOWS).rows(["pass_id", "sequence", *WINDOW_COLUMNS], is_its).to_pylist()
        window = antenna_pass(max(rows, key=lambda row: int(row["sequence"])), self._mask_deg)
        azimuth_deg, elevation_deg = window.direction(task.start_ns)
        return azimuth_deg, min(max(elevation_deg, 0.0), 90.0)

    def _ahead(self, now_ns: int) -> list[Task]:
        found = StoredRows(self._lake).current(PASS_SCHEDULE, TASK_COLUMNS[3:]).to_pylist()
        mine = [row for row in found if row["status"] == SCHEDULED and row["source_id"] == self._sensor]
        return [task for task in tasks({**row, "sequence": 0} for row in mine) if task.end_ns > now_ns]


def due_tasks(ahead: Sequence[Task], now_ns: int) -> list[Task]:
    """Those of one sensor, in their order, whose command is to be issued by ``now_ns``."""
    ends_ns = [0, *(task.end_ns for task in ahead[:-1])]
    return [
        task
        for task, free_ns in zip(ahead, ends_ns, strict=True)
        if max(task.start_ns - LEAD_NS, min(free_ns, task.start_ns)) <= now_ns < task.end_ns
    ]
