"""The registry: inputs are declared once, and everything that needs them follows from the declaration."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from sda_platform import own_tables
from sda_platform.definitions import build_defs, defs
from sda_platform.formats.registry import ZONES
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableSnapshot, TableWindow
from sda_platform.lake.table import Table, in_flow_order
from sda_platform.orchestration.declarations import DECLARED, served_by, table_asset, tables_of
from sda_platform.orchestration.jobs import (
    CATALOG_TO_ALERTS,
    JOBS,
    OBSERVATIONS_TO_ALERTS,
    ORBIT_DETERMINATION,
    SENSOR_TASKING,
)
from sda_platform.orchestration.table_checks import unbalanced_commits
from sda_platform.orchestration.zone_asset import zone_key
from sda_platform.recovery.repair import recover
from sda_platform.registry import FEEDS, TABLES, listed_tables
from sda_platform_tests.support.delta_tables import commit, commit_file, genesis_window, lake_at, next_window

GUIDE = Path(__file__).parents[2] / "docs/how-to/add-a-table.md"
EDGES = [(source, reader) for reader in TABLES for source in reader.inputs]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_graph_shows_the_declared_inputs(table: Table) -> None:
    node = defs.get_repository_def().asset_graph.get(dg.AssetKey(table.name))
    declared = {dg.AssetKey(source.name) for source in (*table.consumes, *table.reads)}
    assert set(node.parent_keys) == declared | {zone_key(zone) for zone in table.zones}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns_come_from_declared_inputs(table: Table) -> None:
    named = {source for columns in table.lineage.values() for source, _ in columns}
    assert named <= {source.name for source in table.inputs}


def test_a_table_reads_every_zone() -> None:
    assert set(ZONES) == {zone for zones in FEEDS.values() for zone in zones}


def test_sources_come_before_the_tables_that_use_them() -> None:
    order = [table.name for table in TABLES]
    assert all(order.index(s.name) < order.index(t.name) for t in TABLES for s in (*t.consumes, *t.reads)), (
        "recovery takes the tables from the end"
    )


def test_every_table_has_an_asset_and_a_job_of_its_own_declaration() -> None:
    assert set(DECLARED) == {table.name for table in TABLES}
    assert {table.name for job in JOBS for table in tables_of(job)} == set(DECLARED)


def test_a_trial_table_is_served_only_by_the_job_that_it_declares() -> None:
    before = {job: [t.name for t in served_by(job)] for job in (OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS)}
    trial = replace(FUSED_TRACKS, name="trial", consumes=(FUSED_TRACKS,), reads=(), feedback=tuple)

    @table_asset(trial, jobs=[ORBIT_DETERMINATION])
    def asset() -> dg.MaterializeResult[None]:
        """A table that only this test has."""
        return dg.MaterializeResult()

    try:
        assert in_flow_order((*TABLES, trial)).index(trial) > in_flow_order((*TABLES, trial)).index(FUSED_TRACKS)
        assert {job: [t.name for t in served_by(job)] for job in before} == before
        assert trial in tables_of(ORBIT_DETERMINATION)
        assert asset.op.pool == ORBIT_DETERMINATION.pool
    finally:
        del DECLARED[trial.name]


def test_a_new_table_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is that of the guide, so the guide is true, also where somebody has followed it already."""
    (text,) = re.findall(
        r"sda_platform/own_tables`, a module `sensor_days`:\n\n```python\n(.*?)```", GUIDE.read_text(), re.DOTALL
    )
    (tmp_path / "trial_days.py").write_text(text.replace("sensor_days", "trial_days"))
    monkeypatch.setattr(own_tables, "__path__", [*own_tables.__path__, str(tmp_path)])
    try:
        (table,) = (table for table in listed_tables() if table not in TABLES)
        graph = build_defs().get_repository_def().asset_graph
        node = graph.get(dg.AssetKey("trial_days"))
        assert [key.to_user_string() for key in node.parent_keys] == ["observations"]
        assert "data_is_fresh" in {key.name for key in graph.asset_check_keys if key.asset_key == node.key}
        assert (node.group_name, node.is_executable, table in served_by(SENSOR_TASKING)) == ("ingest", True, True)
        lake = lake_at(tmp_path / "lake")
        commit(lake, OBSERVATIONS, [{"observation_id": "a"}, {"observation_id": "b"}])
        commit(lake, table, [{"observation_count": 1}], windows=[genesis_window(OBSERVATIONS)])
        assert unbalanced_commits(lake, table, lake.log(table).commits()) == [
            "trial_days: 1 observations are counted, 2 were consumed"
        ]
    finally:
        DECLARED.pop("trial_days", None)
        sys.modules.pop("sda_platform.own_tables.trial_days", None)


@pytest.mark.parametrize(("source", "reader"), EDGES, ids=[f"{s.name}-{r.name}" for s, r in EDGES])
def test_a_lost_commit_that_a_reader_has_read_is_refused_on_every_edge_spec_98(
    source: Table, reader: Table, tmp_path: Path
) -> None:
    lake = lake_at(tmp_path / "lake")
    commit(lake, source)
    if source in reader.consumed:
        commit(lake, reader, windows=[genesis_window(source)])
    else:
        commit(lake, reader, snapshots=(TableSnapshot(source.name, 0, 1),))
    commit_file(lake, source, 0).write_bytes(b"")
    found = {f.examination.table: f for f in recover(lake, TABLES, {}, repair=True)}
    assert found[source.name].outcome == "damaged"
    assert f"consumed by {reader.name}" in (found[source.name].refused or "")


def test_both_tables_of_a_feedback_recover_from_a_power_loss_that_took_a_commit_of_each(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    commit(lake, FUSED_TRACKS)
    commit(lake, TIME_TAG_BIASES, windows=[read(lake, genesis_window(FUSED_TRACKS))])
    biases = read(lake, genesis_window(TIME_TAG_BIASES))
    commit(lake, FUSED_TRACKS, windows=[biases])
    commit(lake, TIME_TAG_BIASES, windows=[read(lake, next_window(genesis_window(FUSED_TRACKS)))])
    commit(lake, FUSED_TRACKS, windows=[biases])
    for table, version in ((FUSED_TRACKS, 2), (TIME_TAG_BIASES, 1)):
        commit_file(lake, table, version).write_bytes(b"")
    found = {f.examination.table: f for f in recover(lake, TABLES, {}, repair=True)}
    assert found[FUSED_TRACKS.name].outcome == "repaired", found[FUSED_TRACKS.name].refused
    assert found[TIME_TAG_BIASES.name].outcome == "repaired", found[TIME_TAG_BIASES.name].refused


def read(lake: Lake, window: TableWindow) -> TableWindow:
    """``window`` as a reader records it, with the hash of the newest commit that it read."""
    table = next(each for each in TABLES if each.name == window.table)
    return replace(window, upto_sha256=lake.log(table).head().manifest_sha256)
