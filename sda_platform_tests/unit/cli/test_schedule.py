"""`sda sensor schedule`: the schedule as a list and as files."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.tasking.tables import PASS_SCHEDULE, SCHEDULED, UNSERVED
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.unit.serving.catalogues import row as element_row


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose lake has a schedule: what is over, two sensors ahead, and a request that no one serves."""
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")

    def task(request_id: str, source_id: str | None, norad_id: int, start_s: float) -> dict[str, object]:
        seen = {"start_time_ns": after(start_s), "end_time_ns": after(start_s + 120), "max_elevation_deg": 40.0}
        facts = {"request_id": request_id, "norad_id": norad_id, "deadline_time_ns": after(start_s + 3_600)}
        times = seen if source_id else {}
        status = SCHEDULED if source_id else UNSERVED
        return {**facts, "source_id": source_id, "status": status, **times}

    rows = [task("over", "radar-1", 5, -600), task("b", "optical-1", 6, 900), task("a", "radar-1", 5, 60)]
    rows.append(task("unserved", None, 7, 0))
    commit(lake, PASS_SCHEDULE, [{"sequence": 1, "op": "insert", **each} for each in rows])
    commit(lake, ORBITAL_CATALOG, [element_row(6, epoch_time_ns=START_NS, object_name="SIX")])
    return tmp_path


def test_sensors_are_listed_with_their_silence_and_whether_fits_use_them(home: Path) -> None:
    heard = {"heard/radar-31": after(-1), "heard/radar-1": after(-1200), "heard/isl-25544": after(-2)}
    commit(lake_at(home / "lake"), FUSED_TRACKS, [], watermarks=heard)
    arguments = ["--home", str(home), "sensor", "list"]
    rows = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)
    assert [row["source_id"] for row in rows[:3]] == ["radar-1", "radar-31", "isl-25544"]
    assert (rows[0]["name"], rows[0]["silent_s"], rows[0]["is_listed"]) == ("Fylingdales", 1200.0, True)
    assert (rows[1]["silent_s"], rows[1]["is_listed"], rows[2]["is_listed"]) == (None, False, True)
    assert {row["source_id"] for row in rows if row["heard_time_ns"] is None} >= {"radar-2", "optical-maui"}
    shown = CliRunner().invoke(main, arguments).output
    assert "NO: no fit uses it" in shown and "20 min" in shown


def schedule(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "sensor", "schedule", *arguments], catch_exceptions=False)


def test_what_has_not_ended_is_listed_by_its_beginning(home: Path) -> None:
    assert [each["request_id"] for each in json.loads(schedule(home, "--format", "json").output)] == ["a", "b"]
    listed = schedule(home, "--sensor", "optical-1").output
    assert "optical-1" in listed and "radar-1" not in listed
    assert "no observation is scheduled" in schedule(home, "--sensor", "radar-9").output
    assert json.loads(schedule(home, "--sensor", "radar-9", "--json").output) == []


@pytest.mark.parametrize("verb", ["schedule", "tasks", "command"])
def test_an_unknown_sensor_is_refused_with_the_names_of_the_known_ones(home: Path, verb: str) -> None:
    arguments = ["nosuch"] if verb == "command" else ["--sensor", "nosuch", "--json"]
    refused = CliRunner().invoke(main, ["--home", str(home), "sensor", verb, *arguments], catch_exceptions=False)
    assert refused.exit_code == 2
    assert "'nosuch' is no sensor; there are: " in refused.stderr
    assert "radar-1" in refused.stderr and refused.stdout == ""


def test_what_became_of_scheduled_observations_is_listed(home: Path) -> None:
    listed = CliRunner().invoke(main, ["--home", str(home), "sensor", "tasks", "--json"], catch_exceptions=False)
    rows = json.loads(listed.stdout)
    assert [(row["source_id"], row["norad_id"], row["state"], row["request"]) for row in rows] == [
        ("radar-1", 5, "missed", "withdrawn"),
        ("radar-1", 5, "planned", "withdrawn"),
        ("optical-1", 6, "planned", "withdrawn"),
    ]


def test_each_sensor_has_a_file_of_its_own(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "files"
    assert schedule(home, "--format", "csv", "--out", str(out)).exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["optical-1.csv", "radar-1.csv"]
    (only,) = csv.DictReader((out / "radar-1.csv").open())
    assert (only["norad_id"], only["start_utc"][:4]) == ("5", "2024")
    schedule(home, "--format", "sensorkit", "--sensor", "optical-1", "--out", str(out))
    (task,) = json.loads((out / "optical-1.sensorkit.json").read_text())
    assert task["submission"]["task"]["target"]["tle"]["line0"] == "SIX"
    assert schedule(home, "--out", str(out)).exit_code == 2
