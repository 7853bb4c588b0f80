"""The jobs `verify`, `replay`, `reconcile`, `impact` of the UI: verdict, audit event, a run that fails on a finding."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform import audit_log
from sda_platform.definitions import build_defs, default_resources
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.observability.audits.by_hand import jobs_by_hand
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, lake_at

OPS = {
    "verify": "examine_tables", "replay": "compare_with_replay", "reconcile": "compare_with_inputs",
    "impact": "leave_out_input",
}  # fmt: skip


def run(home: Path, name: str, **config: Any) -> dg.ExecuteInProcessResult:
    settings = Settings(home=home)
    job = next(each for each in jobs_by_hand(settings) if each.name == name)
    with dg.DagsterInstance.ephemeral() as instance:
        return job.execute_in_process(
            run_config={"ops": {OPS[name]: {"config": config}}},
            resources={"lake": default_resources(settings)["lake"]},
            instance=instance,
            raise_on_error=False,
        )


def test_verification_from_the_ui_fails_on_a_lost_file_and_leaves_an_event_spec_99(tmp_path: Path) -> None:
    commit(lake_at(tmp_path / "lake"), OBSERVATIONS, [{"observation_id": "a"}])
    sound = run(tmp_path, "verify")
    assert sound.success
    next((tmp_path / "lake" / "observations").glob("*.parquet")).unlink()
    damaged = run(tmp_path, "verify", deep=True)
    assert not damaged.success
    events = audit_log.events(tmp_path)
    assert [(event.operation, event.by, event.arguments) for event in events] == [
        ("verify", f"run {sound.run_id}", {"deep": False}),
        ("verify", f"run {damaged.run_id}", {"deep": True}),
    ]
    assert events[0].outcome == "no problem" and "such as observations: " in events[1].outcome


@pytest.mark.parametrize("name", ["replay", "reconcile"])
def test_commits_that_nothing_explains_fail_the_run_and_leave_no_shadow_spec_80(tmp_path: Path, name: str) -> None:
    assert run(tmp_path, name, table="observations").success, "a table without a commit"
    commit(lake_at(tmp_path / "lake"), OBSERVATIONS, [{"observation_id": "a"}])
    assert not run(tmp_path, name, table="observations", to_sequence=1).success
    assert not run(tmp_path, name, table="observation").success
    first, differs, unknown = audit_log.events(tmp_path)
    assert first.outcome == "no problem"
    assert differs.arguments == {"table": "observations", "from_sequence": 1, "to_sequence": 1}
    assert differs.outcome != "no problem"
    assert unknown.outcome.startswith("refused: no table is named 'observation'")
    assert list(tmp_path.glob("lake.re*")) == []


def test_an_input_that_is_none_fails_the_run_and_leaves_an_event_spec_80(tmp_path: Path) -> None:
    assert not run(tmp_path, "impact", source="radar-7").success
    (event,) = audit_log.events(tmp_path)
    assert event.arguments == {"source": "radar-7"}
    assert event.outcome.startswith("refused: 'radar-7' is no input of this lake")


def test_the_jobs_by_hand_are_in_the_definitions() -> None:
    names = {job.name for job in build_defs().get_repository_def().get_all_jobs()}
    assert {"verify", "replay", "reconcile", "impact", "reprocess"} <= names
