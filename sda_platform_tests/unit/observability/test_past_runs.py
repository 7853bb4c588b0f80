"""The runs of the platform as `sda run list` shows them."""

import json
from pathlib import Path

import dagster as dg
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.observability.past_runs import past_runs
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform_tests.support.run_records import failed_run, recorded_run


def test_a_run_has_its_state_why_it_failed_and_its_page() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        recorded_run(instance, OBSERVATIONS_TO_ALERTS, dg.DagsterRunStatus.SUCCESS)
        failed = failed_run(instance, CATALOG_TO_ALERTS, "disk full")
        recorded_run(instance, OBSERVATIONS_TO_ALERTS, dg.DagsterRunStatus.STARTING)
        found = list(past_runs(instance, "http://ui"))
        assert [each.state for each in found] == ["started", "failure", "success"]
        assert (found[1].failure, found[1].reason, found[1].url) == (
            "transient",
            "disk full",
            f"http://ui/runs/{failed}",
        )
        assert [each.run_id for each in past_runs(instance, "http://ui", "failure")] == [failed]
        assert len(list(past_runs(instance, "http://ui", most=1))) == 1


def test_a_home_without_a_platform_has_no_run(tmp_path: Path) -> None:
    MissionClock(0, 0, 1.0).save(tmp_path)
    arguments = ["--home", str(tmp_path), "run", "list"]
    assert "no platform has run in this home" in CliRunner().invoke(main, arguments).output
    assert json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output) == []
