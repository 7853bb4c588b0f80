"""Spark's event log: which executor ran which task for how long, and how long that would take on other clusters.

The log has each task's launch and end. The wall time of a run in which no task runs is its serial part: planning, the
client, the driver, the commit. A simulated cluster has executors of one core. The tasks of a stage are assigned in
their order to the executor that is free first, and stages follow each other. The serial part does not change, and a
task takes as long as in the log. So contention for disk and network, which more executors bring, is neglected.
"""

import heapq
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TASK = '{"Event":"SparkListenerTaskEnd"'


@dataclass(frozen=True)
class ExecutedTask:
    """A task of the event log; times are Unix seconds."""

    stage: int
    executor: str
    launch_s: float
    finish_s: float

    @property
    def duration_s(self) -> float:
        """From its launch to its end, with the transfer of its code and result."""
        return self.finish_s - self.launch_s


def tasks_of(event_log: Path, begin_s: float = 0.0, end_s: float = math.inf) -> list[ExecutedTask]:
    """The tasks in the logs of the directory ``event_log`` launched in a span of time (Unix seconds), by launch."""
    found = []
    for log in event_log.iterdir():
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith(_TASK) and line.endswith("}"):
                event = json.loads(line)
                facts = event["Task Info"]
                times = (facts["Launch Time"] / 1e3, facts["Finish Time"] / 1e3)
                found.append(ExecutedTask(event["Stage ID"], facts["Executor ID"], *times))
    return sorted((t for t in found if begin_s <= t.launch_s < end_s), key=lambda task: task.launch_s)


def serial_s(tasks: Sequence[ExecutedTask], begin_s: float, end_s: float) -> float:
    """The seconds of the span in which no task ran."""
    busy, upto = 0.0, begin_s
    for task in sorted(tasks, key=lambda each: each.launch_s):
        busy += max(min(task.finish_s, end_s) - max(task.launch_s, upto), 0.0)
        upto = max(upto, task.finish_s)
    return end_s - begin_s - busy


def parallel_s(tasks: Sequence[ExecutedTask], executors: int) -> float:
    """How long the tasks take on so many executors of one core, stage after stage."""
    stages: dict[int, list[float]] = defaultdict(list)
    for task in tasks:
        stages[task.stage].append(task.duration_s)
    return sum(_makespan(durations, executors) for durations in stages.values())


def _makespan(durations: Sequence[float], executors: int) -> float:
    free = [0.0] * executors
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)
