"""The simulated cluster of the scaling benchmark: what its figures rest on."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform_tests.support.event_log import ExecutedTask, parallel_s, serial_s, tasks_of

TASKS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 100), st.floats(0.01, 50)).map(
        lambda each: ExecutedTask(each[0], "0", each[1], each[1] + each[2])
    ),
    max_size=30,
)


@given(TASKS, st.integers(1, 8))
def test_more_executors_take_no_longer_and_never_less_than_their_share_or_the_longest_task(
    tasks: list[ExecutedTask], executors: int
) -> None:
    work = sum(task.duration_s for task in tasks)
    assert parallel_s(tasks, 1) == pytest.approx(work)
    found = parallel_s(tasks, executors)
    stages = {task.stage for task in tasks}
    longest = sum(max(task.duration_s for task in tasks if task.stage == stage) for stage in stages)
    assert max(longest, work / executors) - 1e-9 <= found <= work + 1e-9


def test_stages_follow_each_other() -> None:
    tasks = [ExecutedTask(stage, "0", 0.0, 10.0) for stage in (0, 0, 1, 1, 1)]
    assert [parallel_s(tasks, executors) for executors in (1, 2, 3, 4)] == [50.0, 30.0, 20.0, 20.0]


def test_the_serial_part_is_when_no_task_runs() -> None:
    tasks = [ExecutedTask(0, "0", 11.0, 13.0), ExecutedTask(0, "1", 12.0, 15.0), ExecutedTask(1, "0", 16.0, 17.0)]
    assert serial_s(tasks, 10.0, 20.0) == pytest.approx(5.0)
    assert serial_s([], 10.0, 20.0) == pytest.approx(10.0)


def test_tasks_are_read_from_the_log_of_their_time(tmp_path: Path) -> None:
    def ended(launch_ms: int, executor: str) -> str:
        facts = {"Launch Time": launch_ms, "Finish Time": launch_ms + 500, "Executor ID": executor}
        return json.dumps({"Event": "SparkListenerTaskEnd", "Stage ID": 7, "Task Info": facts}, separators=(",", ":"))

    lines = [ended(3_000, "1"), '{"Event":"SparkListenerJobStart"}', ended(1_000, "0"), ended(9_000, "0")]
    (tmp_path / "app-1").write_text("\n".join([*lines, lines[0][:40]]))  # the last line is being written
    assert tasks_of(tmp_path, 0.5, 5.0) == [ExecutedTask(7, "0", 1.0, 1.5), ExecutedTask(7, "1", 3.0, 3.5)]
