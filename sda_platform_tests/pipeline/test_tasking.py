"""Tasking end to end: a conjunction becomes requests, windows and a schedule, which follow what changes."""

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.formats.ground_events import GroundEvent
from sda_platform.formats.membership_events import MembershipEvent, encode_membership_events
from sda_platform.ground.log import CommandLog
from sda_platform.ground.reporting import change_registry
from sda_platform.ground.tables import FLEET_MEMBERSHIP, GROUND_COMMANDS
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.recovery.verification import current_keys
from sda_platform.replay.history import Span
from sda_platform.tasking.sensors import lost_tasks
from sda_platform.tasking.tables import OBSERVATION_REQUESTS, PASS_SCHEDULE, PASS_WINDOWS, TASK_OUTCOMES
from sda_platform.tasking.task_outcomes import TASK_COLUMNS, tasks
from sda_platform_tests.support.lived import MET_ID, ONCOMING_ID, oncoming
from sda_platform_tests.support.platform_run import Platform, correctness, written
from sda_platform_tests.support.segments import START_NS, after, catalogue_of, land

TASKING = "sensor_tasking"
HOUR_S = 3600


def test_conjunctions_are_tasked_and_the_schedule_follows_them__PW28(tmp_path: Path, spark: SparkSession) -> None:
    platform = Platform(tmp_path, spark, START_NS, ScreeningResource(horizon_h=10.0))
    land(platform.zone("elements"), "catalogue.csv", catalogue_of([MET_ID]))
    land(platform.zone("elements"), "oncoming.csv", oncoming(after(9 * HOUR_S)))
    platform.run("catalog_to_alerts")
    at_risk = current_keys(platform.lake.log(CONJUNCTION_ASSESSMENTS), ["risk", "norad_id_1", "norad_id_2"])
    at_risk = at_risk.filter(pc.not_equal(at_risk["risk"], "green"))
    assert at_risk.num_rows, "the scene has a conjunction at risk"

    outcome = platform.run(TASKING)
    assert all(correctness(outcome).values()), correctness(outcome)
    asked = current_keys(platform.lake.log(OBSERVATION_REQUESTS), ["norad_id", "deadline_time_ns"])
    assert set(asked["norad_id"].to_pylist()) == {MET_ID, ONCOMING_ID}
    assert all(abs(deadline - after(7 * HOUR_S)) < 60e9 for deadline in asked["deadline_time_ns"].to_pylist())
    windows = current_keys(platform.lake.log(PASS_WINDOWS), ["norad_id", "source_id", "aos_time_ns", "los_time_ns"])
    assert set(windows["norad_id"].to_pylist()) <= set(asked["norad_id"].to_pylist())
    booked = platform.rows(PASS_SCHEDULE).to_pylist()
    assert {row["request_id"] for row in booked} == set(asked["request_id"].to_pylist())
    by_pass = {row["pass_id"]: row for row in windows.to_pylist()}
    for row in booked:
        if row["status"] == "scheduled":
            window = by_pass[row["pass_id"]]
            assert window["norad_id"] == row["norad_id"]
            assert window["aos_time_ns"] <= row["start_time_ns"] < row["end_time_ns"] <= window["los_time_ns"]
            assert row["end_time_ns"] <= row["deadline_time_ns"]

    assert any(row["status"] == "scheduled" for row in booked)

    # The station rejects the command of one: within one run, its request has another pass or a reason why not.
    (rejected, *_) = tasks(platform.lake.log(PASS_SCHEDULE).rows(TASK_COLUMNS).to_pylist())
    log = CommandLog(platform.lake, str(platform.zone("ground").root.parent), "atlantic")
    asked_to = log.issue("REPOINT", expires_in_s=60, command_id=rejected.task_id, azimuth_deg=1.0, elevation_deg=30.0)
    promoted = GroundEvent("atlantic", "promoted", asked_to.event_time_ns, "primary", 1, 1)
    log.append([promoted, replace(asked_to, event="rejected", uplink="primary", token=1, number=3, detail="unsafe")])
    platform.run("ground_segment")
    assert lost_tasks(platform.lake) == [rejected]
    assert all(correctness(platform.run(TASKING)).values())
    assert lost_tasks(platform.lake) == []
    again = {row["request_id"]: row for row in current_keys(platform.lake.log(PASS_SCHEDULE), ["pass_id"]).to_pylist()}
    assert again[rejected.request_id]["pass_id"] != rejected.pass_id
    columns = ["state", "detail", "request", "event_id", "realised_gain"]
    became = {row["task_id"]: row for row in current_keys(platform.lake.log(TASK_OUTCOMES), columns).to_pylist()}
    lost = became[rejected.task_id]
    request = "rescheduled" if again[rejected.request_id]["pass_id"] else "open"
    assert (lost["state"], lost["detail"], lost["request"]) == ("failed", "rejected: unsafe", request)
    assert {row["event_id"] for row in became.values()} <= set(at_risk["event_id"].to_pylist())
    booked = current_keys(platform.lake.log(PASS_SCHEDULE), ["status", "source_id"]).to_pylist()

    # By all who report, the agent of a sensor has failed: nothing is planned for the sensor any more.
    (sensor, *_) = (row["source_id"] for row in booked if row["status"] == "scheduled")
    change_registry(platform.zone("membership"), START_NS, "ann", [sensor], admits=True)
    claims = [("collector", "alive"), (sensor, "failed")]
    views = [MembershipEvent("collector", name, status, START_NS, 1, n) for n, (name, status) in enumerate(claims)]
    platform.zone("membership").seal_at(START_NS, "out.membership", encode_membership_events(views), "membership-jsonl")
    platform.run("ground_segment")
    (shown,) = platform.run(TASKING).asset_materializations_for_node(PASS_SCHEDULE.name)
    assert f"| {sensor} | failed |" in str(shown.metadata["sensors_out_of_service"].value)
    planned = current_keys(platform.lake.log(PASS_SCHEDULE), ["source_id", "unserved_reason"])
    assert set(planned["request_id"].to_pylist()) == set(asked["request_id"].to_pylist())
    assert sensor not in planned["source_id"].to_pylist()

    # Nothing new, soon after: no commit.
    assert set(written(platform.run(TASKING)).values()) == {0}

    # After the encounter nothing is requested, and nothing is scheduled ahead.
    platform.at(after(10 * HOUR_S))
    platform.run(TASKING)
    assert current_keys(platform.lake.log(OBSERVATION_REQUESTS)).num_rows == 0
    left = current_keys(platform.lake.log(PASS_SCHEDULE), ["end_time_ns"])
    assert all(end_ns <= after(7 * HOUR_S) for end_ns in left["end_time_ns"].to_pylist())

    # Made again from the second commit on, each table goes on from what it held.
    tables = (OBSERVATION_REQUESTS, PASS_WINDOWS, PASS_SCHEDULE, TASK_OUTCOMES)
    resources = platform.definitions.resources or {}
    made = replay_lake(platform.lake, str(tmp_path / "shadow"), resources, tables=tables, span=Span(from_sequence=2))
    assert [(each.first_sequence, list(each.differences)) for each in made] == [(2, [])] * len(tables)

    # The same platform commands a station: what its uplinks have sealed becomes the state of each command.
    asked = log.issue("REPOINT", expires_in_s=60, command_id="a", azimuth_deg=271.5, elevation_deg=30.0)
    log.issue("SAFE_MODE", expires_in_s=60, command_id="b")
    log.append([replace(asked, event="acknowledged", uplink="primary", token=1, number=4, detail="executed")])
    outcome = platform.run("ground_segment")
    # The sensor's agent has failed, and the collector's is not registered.
    unsound = {f"fleet_membership:members_are_{what}" for what in ("alive", "registered")}
    assert {name for name, passed in correctness(outcome).items() if not passed} == unsound
    states = {
        row["command_id"]: (row["state"], row["executions"], row["azimuth_deg"])
        for row in platform.rows(GROUND_COMMANDS).to_pylist()
        if row["command_id"] != rejected.task_id
    }
    assert states == {"a": ("acknowledged", 1, 271.5), "b": ("issued", 0, None)}
    # The agents of its stations report who is alive.
    change_registry(platform.zone("membership"), START_NS, "ann", ["atlantic", "pacific"], admits=True)
    views = [
        MembershipEvent("atlantic", name, "alive", START_NS, 1, number) for number, name in enumerate(("atlantic", "x"))
    ]
    platform.zone("membership").seal_at(
        START_NS, "views.membership", encode_membership_events(views), "membership-jsonl"
    )
    outcome = platform.run("ground_segment")
    warned = {name for name, passed in correctness(outcome).items() if not passed}
    assert warned == unsound
    columns = ["member", "status", "is_registered"]
    fleet = {tuple(row[name] for name in columns) for row in platform.rows(FLEET_MEMBERSHIP).to_pylist()}
    known = {("atlantic", "alive", True), ("pacific", None, True), ("x", "alive", False)}
    assert fleet == known | {("collector", "alive", False), (sensor, "failed", True)}
    assert set(written(platform.run("ground_segment")).values()) == {0}
