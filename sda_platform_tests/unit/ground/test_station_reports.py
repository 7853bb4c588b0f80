"""Reports of a station on a command, by its own clock: accepted, started, completed or failed (ECSS-PUS)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sda_platform.formats.ground_events import STATION_TIMES
from sda_platform.ground.commands import Command
from sda_platform.tasking.tables import FAILED
from sda_platform.tasking.task_outcomes import Task, outcome
from sda_platform_tests.support.ground_loop import SECOND_NS, Ground, ground_at
from sda_platform_tests.support.segments import START_NS, after

AHEAD_S = 100.0


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ground_at(tmp_path, monkeypatch) as made:
        made.station_ahead_s = AHEAD_S
        yield made


def station_times_s(row: dict[str, Any]) -> list[float | None]:
    """The station's times of a row, seconds after the start of the test."""
    return [None if row[name] is None else (row[name] - START_NS) / SECOND_NS for name in STATION_TIMES]


def test_a_command_has_the_times_of_the_stations_clock__46_3(ground: Ground) -> None:
    ground.execution_s = 1.5
    ground.log().issue("TELEMETRY_REQUEST", expires_in_s=600, command_id="c")
    ground.uplink("primary")
    ground.run(2)
    row: dict[str, Any] = ground.rows()["c"]
    accepted_s, started_s, finished_s = station_times_s(row)
    assert accepted_s is not None
    assert started_s is not None
    assert AHEAD_S < accepted_s <= started_s < AHEAD_S + 2
    assert finished_s == pytest.approx(started_s + 1.5)
    assert row["finished_time_ns"] < after(2.1), "by the uplink's clock"


def test_a_command_that_the_station_cannot_execute_has_failed__46_3(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.failures["c"] = "the drive does not move"
    uplink, answers = ground.uplink("primary"), list[dict[str, Any]]()
    send = uplink._link.send

    def loses_the_first_answer(command: Command, token: int) -> dict[str, Any]:
        answers.append(send(command, token))
        if len(answers) == 1:
            raise httpx.ReadTimeout("the answer was lost")
        return dict(answers[-1])

    monkeypatch.setattr(uplink._link, "send", loses_the_first_answer)
    ground.log().issue("REPOINT", expires_in_s=600, command_id="c", azimuth_deg=1.0, elevation_deg=2.0)
    ground.run(2)
    row: dict[str, Any] = ground.rows()["c"]
    assert (row["state"], row["detail"], row["executions"]) == ("failed", "the drive does not move", 0)
    assert answers[0] == answers[1], "a repetition has the reports of the first one"
    assert len(answers) == 2, "what has failed is not sent again"
    assert ground.executed() == []
    assert None not in station_times_s(row)
    # Its request needs another observation at once.
    task = Task("r", 5, 0, "atlantic", "p", after(60), after(120))
    made = outcome(task, row, (), after(30), "open")
    assert (made.state, made.detail) == (FAILED, "failed: the drive does not move")
    assert made.has_failed(after(30))
    assert made.row()["finished_time_ns"] == row["station_finished_time_ns"]


def test_a_repetition_after_a_lost_answer_has_the_first_times(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    command = {"command_id": "c", "token": 0, "sender": "primary", "expires_time_ns": 2**62, "request_id": 7}
    first = ground.station.receive(command)
    ground.now_s += 30
    again = ground.station.receive(command)
    assert (first["outcome"], again["outcome"]) == ("executed", "repeated")
    assert first["times_ns"] == again["times_ns"]
    assert first["times_ns"]["finished"] == after(AHEAD_S)


def test_what_the_station_refuses_as_expired_has_its_time(ground: Ground) -> None:
    ground.log().issue("SAFE_MODE", expires_in_s=60, command_id="late")
    ground.uplink("primary")
    ground.run(2)
    row: dict[str, Any] = ground.rows()["late"]
    accepted_s, started_s, finished_s = station_times_s(row)
    assert (row["state"], accepted_s, started_s) == ("expired", None, None)
    assert finished_s is not None
    assert finished_s > AHEAD_S
