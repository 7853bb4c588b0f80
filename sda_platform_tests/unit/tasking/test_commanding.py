"""From the schedule to commands that a station executes, and from these and observations to outcomes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.clock import MissionClock
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ground.tables import GROUND_COMMANDS, GROUND_EVENTS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.correction_log import INSERT, RETRACT
from sda_platform.tasking.commanding import SensorCommander, due_tasks
from sda_platform.tasking.sensors import LOOKS_EVERY_S, lost_tasks, request_another
from sda_platform.tasking.stored_outcomes import recent_outcomes
from sda_platform.tasking.tables import OBSERVATION_REQUESTS, PASS_SCHEDULE, PASS_WINDOWS, SCHEDULED, UNSERVED
from sda_platform.tasking.task_outcomes import ARRIVES_WITHIN_NS, Task, tasks
from sda_platform.units import MINUTE_NS, SECOND_NS
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at
from sda_platform_tests.support.ground_loop import Ground, ground_at
from sda_platform_tests.support.segments import START_NS, after

SENSOR = "atlantic"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_at(tmp_path, monkeypatch) as made:
        yield made


def entry(request_id: str, start_s: float | None, *, sequence: int = 1, as_of_s: float = 0.0, **more: Any) -> Any:
    booking: dict[str, Any] = {"source_id": None, "pass_id": None, "start_time_ns": None, "end_time_ns": None}
    if start_s is not None:
        times = {"start_time_ns": after(start_s), "end_time_ns": after(start_s + 60)}
        booking = {"source_id": SENSOR, "pass_id": "p", **times}
    return {
        "request_id": request_id, "sequence": sequence, "op": INSERT, "as_of_ns": after(as_of_s),
        "status": UNSERVED if start_s is None else SCHEDULED, "norad_id": 5, "priority_class": 0,
        "reason": "lost_track", "information_gain": 1.0, "deadline_time_ns": after(9_000), **booking, **more,
    }  # fmt: skip


def begun(entries: list[Any]) -> list[tuple[str, int]]:
    return [(task.request_id, (task.start_ns - START_NS) // 10**9) for task in tasks(entries)]


def test_a_task_is_a_booking_that_was_in_force_when_it_began() -> None:
    moved = [entry("moved", 100), entry("moved", 500, sequence=2, as_of_s=50)]
    dropped = [entry("dropped", 100), entry("dropped", 100, sequence=1, as_of_s=50, op=RETRACT)]
    unserved = [entry("unserved", 100), entry("unserved", None, sequence=2, as_of_s=50)]
    again = [entry("again", 100), entry("again", 700, sequence=2, as_of_s=200)]
    updated = [entry("updated", 100), entry("updated", 100, sequence=2, as_of_s=50, priority_class=1)]
    assert begun([*again, *updated, *moved, *dropped, *unserved]) == [
        ("again", 100), ("updated", 100), ("moved", 500), ("again", 700),
    ]  # fmt: skip
    # What was commanded stays one, also when it failed so early that its request was moved before it began.
    (first, _) = (task.task_id for each in moved for task in tasks([each]))
    assert [task.start_ns for task in tasks(moved, {first})] == [after(100), after(500)]


def test_a_command_is_due_shortly_before_its_observation_and_not_before_the_one_ahead_has_ended() -> None:
    first = Task("a", 5, 0, SENSOR, "p", after(100), after(160))
    second = replace(first, request_id="b", start_ns=after(170), end_ns=after(230))
    due = {at_s: [task.request_id for task in due_tasks([first, second], after(at_s))] for at_s in range(60, 240, 10)}
    assert [at_s for at_s, found in due.items() if "a" in found] == list(range(70, 160, 10))
    assert [at_s for at_s, found in due.items() if "b" in found] == list(range(160, 230, 10))


def test_a_scheduled_observation_is_commanded_once_executed_and_attributed(ground: Ground) -> None:
    lake = ground.lake
    starts_s = {"seen": 100.0, "blind": 200.0, "late": 400.0}
    commit(lake, PASS_SCHEDULE, [entry(name, start_s) for name, start_s in starts_s.items()])
    window = {
        "pass_id": "p", "sequence": 1, "op": INSERT, "norad_id": 5, "source_id": SENSOR, "aos_time_ns": after(0),
        "tca_time_ns": after(200), "los_time_ns": after(500), "max_elevation_deg": 60.0, "azimuth_aos_deg": 10.0,
        "azimuth_tca_deg": 90.0, "azimuth_los_deg": 170.0,
    }  # fmt: skip
    commit(lake, PASS_WINDOWS, [window])
    ground.uplink("primary")
    ground.run(1)
    for at_s in (60.0, 75.0, 80.0, 175.0):
        move_to(ground, at_s)
        for _ in range(2):  # as two processes do
            SensorCommander(lake, ground.log(), SENSOR, 10.0).step()
        ground.run(1)
    executed = [task.task_id for task in tasks(entry(name, start_s) for name, start_s in starts_s.items())][:2]
    assert ground.executed() == executed
    assert list(ground.station._database.execute("SELECT azimuth_deg, elevation_deg FROM pointings")) == [
        (50.0, 35.0), (90.0, 60.0),
    ]  # fmt: skip
    # The pipeline consumes the events; a fit has an observation of the sensor, one of another sensor, one too late.
    commit(lake, GROUND_COMMANDS, list(ground.rows().values()), windows=[genesis_window(GROUND_EVENTS)])
    measured = [("mine", SENSOR, 110.0), ("others", "radar-1", 220.0), ("later", SENSOR, 300.0)]
    commit(lake, OBSERVATIONS, [observed(*each) for each in measured])
    fit = {"fit_id": "f", "sequence": 1, "op": INSERT, "norad_id": 5, "window_start_ns": after(90.0)}
    commit(lake, FUSED_TRACKS, [{**fit, "observation_ids": [name for name, _, _ in measured]}])
    standing = [{"request_id": name, "sequence": 1, "op": INSERT, "norad_id": 5} for name in ("blind", "late")]
    commit(lake, OBSERVATION_REQUESTS, standing)
    for at_s, states in (
        (210.0, [("observed", 1), ("executing", 0), ("planned", 0)]),
        (500.0, [("observed", 1), ("executed", 0), ("missed", 0)]),
    ):
        move_to(ground, at_s)
        found = recent_outcomes(lake, after(0))
        assert [(each.state, len(each.observation_ids)) for each in found] == states
    assert [each.request for each in found] == ["satisfied", "open", "open"]
    # What saw nothing half a minute after its end is planned again at once, but not what has another booking.
    for at_s, lost in ((285.0, []), (295.0, ["blind"]), (485.0, ["blind"]), (500.0, ["blind", "late"])):
        move_to(ground, at_s)
        assert [task.request_id for task in lost_tasks(lake)] == lost
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance)
        requests = [request_another(context, lake) for _ in range(2)]
        assert all(isinstance(each, dg.RunRequest) for each in requests)
        assert requests[0] == requests[1], "Dagster starts one run of them"
    commit(lake, PASS_SCHEDULE, [entry(name, 900.0, sequence=2, as_of_s=450.0) for name in ("blind", "late")])
    assert [each.request for each in recent_outcomes(lake, after(0))][1] == "rescheduled"
    assert lost_tasks(lake) == []


def test_a_failed_or_missed_observation_is_planned_again_within_a_minute(tmp_path: Path) -> None:
    assert LOOKS_EVERY_S * SECOND_NS + ARRIVES_WITHIN_NS < MINUTE_NS
    lake = lake_at(tmp_path, now_ns=after(189))
    upkeep = entry("upkeep", 100.0, priority_class=2)
    commit(lake, PASS_SCHEDULE, [entry("red", 100.0), entry("rejected", 300.0), upkeep])
    names = ("red", "rejected", "upkeep")
    commit(lake, OBSERVATION_REQUESTS, [{"request_id": n, "sequence": 1, "op": INSERT, "norad_id": 5} for n in names])
    assert lost_tasks(lake) == []
    # Without a command, only what concerns a red conjunction is missed: others may observe by plans of their own.
    lake.clock = MissionClock(after(160) + ARRIVES_WITHIN_NS, 0, 0.0)
    assert [task.request_id for task in lost_tasks(lake)] == ["red"]
    # A command that the station refuses has failed before its observation begins.
    (rejected,) = tasks([entry("rejected", 300.0)])
    refusal = {"command_id": rejected.task_id, "state": "rejected", "detail": "unsafe", "issued_time_ns": after(170)}
    commit(lake, GROUND_COMMANDS, [refusal], windows=[genesis_window(GROUND_EVENTS)])
    assert [task.request_id for task in lost_tasks(lake)] == ["red", "rejected"]


def observed(name: str, source_id: str, at_s: float) -> dict[str, Any]:
    return {"observation_id": name, "source_id": source_id, "sensor_time_ns": after(at_s)}


def move_to(ground: Ground, at_s: float) -> None:
    """Let the clocks of the lake and of the uplinks show ``at_s``."""
    ground.now_s = at_s
    ground.lake.clock = MissionClock(after(at_s), 0, 0.0)
