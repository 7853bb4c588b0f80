"""The table of outcomes: one row for each task, its observations, its request and what it changed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette

from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.console.overview import Overviews
from sda_platform.console.page import ConsoleContext
from sda_platform.console.routes import console_routes
from sda_platform.fusion.tables import FUSED_TRACKS, STATE_COLUMNS, lower_triangles
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.observability.trace import trace_event
from sda_platform.orbits.two_body import two_body_state
from sda_platform.settings import Settings
from sda_platform.tasking.checks import every_task_has_an_outcome
from sda_platform.tasking.demand import request_id
from sda_platform.tasking.reports import outcomes_by_sensor
from sda_platform.tasking.stored_outcomes import outcomes_of_event, recent_outcomes
from sda_platform.tasking.tables import CONJUNCTION, OBSERVATION_REQUESTS, PASS_SCHEDULE, SCHEDULED, TASK_OUTCOMES
from sda_platform.tasking.task_outcomes import request_state
from sda_platform_tests.support.delta_tables import commit, genesis_window, row
from sda_platform_tests.support.encounters import LOWER, TCA_NS, assessed
from sda_platform_tests.support.segments import after
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client

EVENT, ISS, OTHER = "an-event", 25544, 5
HOUR_S = 3600.0
KNOWN_BETTER = (1e-6 * np.array(LOWER)).tolist()
PRIOR = np.diag([0.01, 0.16, 0.04, 1e-8, 1e-8, 1e-8])


def booked(name: str, norad_id: int, source_id: str, start_s: float, **facts: Any) -> dict[str, Any]:
    known = {"request_id": name, "sequence": 1, "op": INSERT, "as_of_ns": after(0), "status": SCHEDULED,
             "norad_id": norad_id, "reason": CONJUNCTION, "priority_class": 0, "source_id": source_id, "pass_id": "p",
             "deadline_time_ns": TCA_NS, "start_time_ns": after(start_s), "end_time_ns": after(start_s + 120),
             "information_gain": 1.5}  # fmt: skip
    return row(PASS_SCHEDULE, **{**known, **facts})


def fitted(name: str, at_s: float, ids: list[str], shrinks: float) -> dict[str, Any]:
    state = assessed(0)["state_1"]
    there = two_body_state(np.array([state[:3]]), np.array([state[3:]]), at_s - (TCA_NS - after(0)) / 1e9)
    fitted_state = dict(zip(STATE_COLUMNS, np.concatenate(there, axis=1)[0].tolist(), strict=True))
    return row(FUSED_TRACKS, fit_id=name, sequence=1, op=INSERT, norad_id=ISS, window_start_ns=after(at_s - 15),
               epoch_time_ns=after(at_s), **fitted_state,
               covariance=lower_triangles(PRIOR[None] / shrinks)[0].tolist(), observation_ids=ids,
               predicted_covariance=lower_triangles(PRIOR[None])[0].tolist(), half_fits=None)  # fmt: skip


def observed_lake(home: Path) -> Lake:
    """A red conjunction with both objects tasked: one was observed by its radar and another one, one was missed."""
    lake = small_catalogue(home, [OTHER, ISS])
    lake.clock = MissionClock(after(HOUR_S + 600), 0, 0.0)
    commit(lake, CONJUNCTION_ASSESSMENTS, [assessed(0, risk="red"), assessed(1.1, covariance_1=KNOWN_BETTER)])
    requests = {n: request_id(CONJUNCTION, n, EVENT) for n in (ISS, OTHER)}
    asked = [
        row(OBSERVATION_REQUESTS, request_id=each, sequence=1, op=INSERT, norad_id=n, event_id=EVENT)
        for n, each in requests.items()
    ]
    commit(lake, OBSERVATION_REQUESTS, asked)
    others = booked("of-a-track", 11, "radar-5", HOUR_S, reason="lost_track", priority_class=2)
    mine = [booked(requests[ISS], ISS, "radar-5", HOUR_S), booked(requests[OTHER], OTHER, "radar-7", HOUR_S)]
    commit(lake, PASS_SCHEDULE, [*mine, others])
    seen = [("a", "radar-5", 10.0), ("b", "radar-5", 50.0), ("c", "radar-9", 50.0), ("d", "radar-5", 300.0)]
    rows = [
        row(OBSERVATIONS, observation_id=name, source_id=source, sensor_time_ns=after(HOUR_S + at_s))
        for name, source, at_s in seen
    ]
    commit(lake, OBSERVATIONS, rows)
    commit(lake, FUSED_TRACKS, [fitted("f", HOUR_S + 15, ["a"], 4.0), fitted("g", HOUR_S + 45, ["b", "c"], 4.0)])
    return lake


def test_a_task_of_a_conjunction_has_its_observations_its_event_and_what_they_changed(tmp_path: Path) -> None:
    lake = observed_lake(tmp_path)
    seen, missed = outcomes_of_event(lake, EVENT, [ISS, OTHER], after(0))
    assert [(each.task.norad_id, each.state, each.request) for each in (seen, missed)] == [
        (ISS, "observed", "open"), (OTHER, "missed", "open"),
    ]  # fmt: skip
    assert seen.row() | {"task_id": ""} == {
        "task_id": "", "request_id": request_id(CONJUNCTION, ISS, EVENT), "event_id": EVENT, "norad_id": ISS,
        "reason": CONJUNCTION, "priority_class": 0, "source_id": "radar-5", "pass_id": "p",
        "start_time_ns": after(HOUR_S), "end_time_ns": after(HOUR_S + 120), "state": "observed", "detail": "",
        "request": "open", "issued_time_ns": None, "accepted_time_ns": None, "finished_time_ns": None,
        "observations": 2, "observation_ids": ["a", "b"], "expected_gain": 1.5, "realised_gain": seen.realised_gain,
    }  # fmt: skip
    # The assessment after the task began knows more: the one before it counts.
    assert seen.realised_gain is not None
    assert seen.realised_gain > 0.1
    assert missed.realised_gain == 0.0
    assert {each.task.request_id for each in recent_outcomes(lake, after(0))} == {
        request_id(CONJUNCTION, ISS, EVENT), request_id(CONJUNCTION, OTHER, EVENT), "of-a-track",
    }  # fmt: skip


def test_sensors_are_compared_by_what_their_tasks_realised(tmp_path: Path) -> None:
    lake = observed_lake(tmp_path)
    by_sensor = {
        each["sensor"]: each for each in outcomes_by_sensor([e.row() for e in recent_outcomes(lake, after(0))])
    }
    assert {name: (each["tasks"], each["observed"], each["missed"]) for name, each in by_sensor.items()} == {
        "radar-5": (2, 1, 1), "radar-7": (1, 0, 1),
    }  # fmt: skip
    assert (by_sensor["radar-7"]["expected gain"], by_sensor["radar-7"]["realised share"]) == ("1.50", "0 %")
    assert float(by_sensor["radar-5"]["realised gain"]) > 0


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((True, False, True), "open"),
        ((True, True, False), "rescheduled"),
        ((False, False, True), "satisfied"),
        ((False, False, False), "withdrawn"),
    ],
)
def test_a_request_is_satisfied_only_by_an_observation(facts: tuple[bool, bool, bool], state: str) -> None:
    is_open, is_booked, is_observed = facts
    assert request_state(is_open=is_open, is_booked=is_booked, is_observed=is_observed) == state


def test_a_task_without_an_outcome_is_found(tmp_path: Path) -> None:
    lake = observed_lake(tmp_path)
    rows = [row(TASK_OUTCOMES, sequence=0, op=INSERT, **each.row()) for each in recent_outcomes(lake, after(0))]
    commit(lake, TASK_OUTCOMES, rows[1:], windows=[genesis_window(PASS_SCHEDULE)])
    log = lake.log(TASK_OUTCOMES)
    assert every_task_has_an_outcome(lake, log, list(log.commits())) == ["1 tasks with an outcome missing"]
    commit(lake, TASK_OUTCOMES, rows[:1], windows=[genesis_window(PASS_SCHEDULE)])
    assert every_task_has_an_outcome(lake, log, list(log.commits())) == []


def test_page_and_trace_of_a_conjunction_have_its_tasks(tmp_path: Path) -> None:
    lake, settings = observed_lake(tmp_path), Settings(home=tmp_path)
    assert [each["norad_id"] for each in trace_event(lake, EVENT).tasks] == [ISS, OTHER]
    context = ConsoleContext(lake, settings, Overviews(lake, settings.landing_uri), lambda: True, lambda: None)
    with Client(Starlette(routes=console_routes(context))) as client:
        text = client.get(f"/conjunctions/{EVENT}").text
    (tasked,) = [part for part in text.split("<section") if "<h2>Tasked observations</h2>" in part]
    assert tasked.count("<tr>") == 3, "the header and two tasks"
    assert 'href="../sensors/radar-5"' in tasked
    assert "<td>observed</td>" in tasked and "<td>missed</td>" in tasked
