"""`sda ground` on the command line: the fleet's registry and its list, and what is said without servers."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from sda_platform.cli.collector.report import agents_of, source_grid
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.settings import Settings
from sda_platform_tests.support.segments import START_NS


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    return tmp_path


def ground(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "ground", *arguments])


def test_members_are_admitted_listed_and_removed__TG25(home: Path) -> None:
    assert ground(home, "fleet", "list").output == "no agent is registered or has reported\n"
    assert ground(home, "fleet", "admit", "radar-1", "radar-2").exit_code == 0
    assert ground(home, "fleet", "remove", "radar-2").exit_code == 0
    listed = json.loads(ground(home, "fleet", "list", "--json").output)
    assert {row["member"]: row["is_registered"] for row in listed} == {"radar-1": True, "radar-2": False}
    assert "never seen" in ground(home, "fleet", "list").output
    assert ground(home, "fleet", "admit").exit_code == 2


def test_sources_are_shown_with_the_status_of_their_agents_and_their_errors_by_reason(home: Path) -> None:
    ground(home, "fleet", "admit", "radars")
    source: dict[str, Any] = {
        "name": "radars", "kind": "radar", "address": "-", "state": "running", "detail": "", "silent_s": None,
        "sealed": 1, "deferred": 0, "dropped": 0, "kernel_drops": None, "errors": {}, "restarts": 0, "rate_per_s": 0.0,
    }  # fmt: skip
    report = {
        "sources": [source, {**source, "name": "others", "errors": {"torn": 1, "duplicate": 2200}}],
        "problems": [],
        "saturated": [],
        "bottleneck": "",
    }
    console = Console(width=160, record=True)
    console.print(source_grid(report, agents_of(Settings(home=home))))
    shown = console.export_text()
    assert "running (agent never seen)" in shown
    assert shown.count("agent") == 1
    assert "others: duplicate 2,200, torn 1" in [line.strip() for line in shown.splitlines()]
    assert "radars: " not in shown


@pytest.mark.parametrize(
    "arguments", [("put", "a", "1"), ("get", "a"), ("promote", "r1", "--synchronous", "r2"), ("replicas",)]
)
def test_without_servers_of_the_station_state_the_setting_is_named(home: Path, arguments: tuple[str, ...]) -> None:
    answer = ground(home, "state", *arguments)
    assert answer.exit_code == 1
    assert answer.output == "Error: no station state: set SDA_STATION_STATE to the addresses of its servers\n"
