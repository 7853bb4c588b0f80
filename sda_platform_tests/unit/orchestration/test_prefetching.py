"""Which states of tables a run requests of the engine, and when."""

from pathlib import Path

import dagster as dg
import pytest

import sda_platform.definitions  # noqa: F401 - declares every table
from sda_platform.lake.table import Table
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_asset import tables_of, tables_written_by
from sda_platform.spark.session import SparkResource


def test_a_run_of_a_whole_job_writes_the_jobs_tables_in_the_order_of_its_steps() -> None:
    run = dg.DagsterRun(job_name=OBSERVATIONS_TO_ALERTS.name, run_id="r")
    found = [table.name for table in tables_written_by(run)]
    assert sorted(found) == sorted(table.name for table in tables_of(OBSERVATIONS_TO_ALERTS))
    chain = ["raw_records", "observations", "fused_tracks", "tracks", "conjunction_assessments", "conjunction_alerts"]
    assert [name for name in found if name in chain] == chain


@pytest.mark.parametrize(
    "chosen",
    [
        {"step_keys_to_execute": ["tracks", "tracks_checks", "fused_tracks"]},
        {"asset_selection": {dg.AssetKey("tracks"), dg.AssetKey("fused_tracks")}},
    ],
)
def test_a_run_of_some_assets_writes_those(chosen: dict[str, object]) -> None:
    run = dg.DagsterRun(job_name=OBSERVATIONS_TO_ALERTS.name, run_id="r", **chosen)  # type: ignore[arg-type]
    assert [table.name for table in tables_written_by(run)] == ["fused_tracks", "tracks"]


def test_states_are_requested_at_a_runs_start_and_once_more_after_its_alerts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[list[str]] = []

    def prefetch(_self: LakeResource, tables: tuple[Table, ...]) -> None:
        requested.append([table.name for table in tables])

    monkeypatch.setattr(LakeResource, "prefetch", prefetch)
    lake = LakeResource(uri=str(tmp_path), home=str(tmp_path), spark=SparkResource(remote="local"))

    @dg.op(name="tracks")
    def health(lake: LakeResource) -> None:
        lake.prefetch_for_next_run()
        lake.prefetch_for_next_run()

    @dg.job(name=OBSERVATIONS_TO_ALERTS.name, resource_defs={"lake": lake})
    def job() -> None:
        health()

    assert job.execute_in_process().success
    assert requested == [["tracks"], ["tracks"]]
