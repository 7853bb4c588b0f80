"""Dagster's history ends, and every store is listed with its size."""

import re
import time
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.definitions import build_defs
from sda_platform.history import assets, dagster_history
from sda_platform.history.dagster_history import purge_runs
from sda_platform.history.growth import yearly_bytes
from sda_platform.history.moments import vector_of
from sda_platform.history.process_logs import bound_logs
from sda_platform.history.stores import leases_and_tags, stores
from sda_platform.history.tags import Tags
from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.landing.zone import LandingZone
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.segments import put
from sda_platform_tests.unit.history.lakes import TABLES, add, elements

DAY_MS = 24 * 3_600_000


def test_old_runs_go_and_the_latest_materialization_of_each_asset_stays() -> None:
    @dg.asset
    def rare() -> None:
        """An asset that is materialized seldom."""

    @dg.op
    def nothing() -> None:
        """Do nothing."""

    @dg.job
    def often() -> None:
        nothing()

    instance = dg.DagsterInstance.ephemeral()
    first, second = (dg.materialize([rare], instance=instance).run_id for _ in range(2))
    other = often.execute_in_process(instance=instance).run_id
    now_ms = int(instance.get_run_records(limit=1)[0].create_timestamp.timestamp() * 1000)
    assert purge_runs(instance, now_ms=now_ms + (RETENTION.operations_days - 1) * DAY_MS) == 0
    assert {first, second, other} == {run.run_id for run in instance.get_runs()}
    assert purge_runs(instance, now_ms=now_ms + (RETENTION.operations_days + 1) * DAY_MS) == 2
    assert [run.run_id for run in instance.get_runs()] == [second]


def test_the_last_run_of_a_pool_stays_because_sensors_read_how_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dagster_history, "_PAGE", 1)

    @dg.op
    def refused() -> None:
        raise ValueError

    @dg.job(tags={POOL_TAG: Pool.ALERTS})
    def failing() -> None:
        refused()

    instance = dg.DagsterInstance.ephemeral()
    *_, last = (failing.execute_in_process(instance=instance, raise_on_error=False).run_id for _ in range(4))
    later_ms = time.time_ns() // 1_000_000 + (RETENTION.operations_days + 1) * DAY_MS
    assert [purge_runs(instance, now_ms=later_ms) for _ in range(2)] == [3, 0]
    assert [run.run_id for run in instance.get_runs()] == [last]


def test_of_runs_that_succeeded_only_the_newest_stay_and_failed_ones_keep_their_days_A7() -> None:
    @dg.op
    def work(context: dg.OpExecutionContext) -> None:
        if "fails" in context.run.tags:
            raise ValueError

    @dg.job
    def job() -> None:
        work()

    instance, tags = dg.DagsterInstance.ephemeral(), {"fails": "yes"}
    failed = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False).run_id
    succeeded = [job.execute_in_process(instance=instance).run_id for _ in range(5)]
    now_ms, few = time.time_ns() // 1_000_000, Retention(succeeded_runs=2)
    assert [purge_runs(instance, now_ms=now_ms, retention=few) for _ in range(2)] == [3, 0]
    assert {run.run_id for run in instance.get_runs()} == {failed, *succeeded[-2:]}


def test_every_store_has_a_retention_and_leases_and_tags_are_shown(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    add(lake, ELEMENT_SETS, elements(7, 100))
    add(lake, ORBITAL_CATALOG, elements(7, 100))
    Tags(lake.uri).create(lake, TABLES, vector_of(lake, TABLES), "kept", until_ms=DAY_MS)
    listed = {each.name: each for each in stores(lake, tuple(TABLES.values()), tmp_path, str(tmp_path / "landing"))}
    assert all(each.kept and each.removed_by for each in listed.values())
    assert (listed["rows of tables"].files, listed["tags"].files, listed["Delta logs"].files) == (2, 2, 2)
    segments = listed["consumed segments"]
    assert (segments.most_days, segments.oldest_days, segments.is_late) == (RETENTION.evidence_days, None, False)
    with VersionLeases(lake.uri).held(vector_of(lake, TABLES).snapshots.values(), "query"):
        lease, tag = leases_and_tags(lake)
    assert "(query) until" in lease
    assert "element_sets=0, orbital_catalog=0" in lease
    assert tag == "tag kept, until 1970-01-02T00:00:00.000Z: now"


def test_the_growth_of_what_is_kept_for_ever_is_that_of_its_appends__DL6_F5(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    log = lake.log(ELEMENT_SETS)
    for number in range(3):
        add(lake, ELEMENT_SETS, elements(7, number, str(number)))
        add(lake, ORBITAL_CATALOG, elements(7, number, str(number)))
    assert yearly_bytes([log]) is None, "all within an hour"
    sizes = sorted(Path(log.uri).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    for number, file in enumerate(sorted(Path(log.uri, "_delta_log").glob("*.json"))):
        file.write_text(re.sub(r'"timestamp":\d+', f'"timestamp":{number * DAY_MS}', file.read_text()))
    expected = pytest.approx(365.25 * sum(file.stat().st_size for file in sizes[1:]) / 2)
    assert yearly_bytes([log]) == expected
    DeltaTable(log.uri).optimize.compact()
    assert yearly_bytes([log, lake.log(ORBITAL_CATALOG)]) == expected, "neither adds rows"
    rows = next(stores(lake, tuple(TABLES.values()), tmp_path, str(tmp_path / "landing")))
    assert rows.yearly_bytes == expected


def test_the_maintenance_job_needs_no_engine_where_nothing_is_to_be_compacted(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, spark_remote="sc://127.0.0.1:1")
    lake = lake_at(tmp_path / "lake")
    add(lake, ELEMENT_SETS, elements(7, 100))
    for epoch in (100, 200):
        add(lake, ORBITAL_CATALOG, elements(7, epoch))
    chosen = {"ops": {"compact_and_expire": {"config": {"tables": [ORBITAL_CATALOG.name]}}}}
    for config in (chosen, {}):
        job = build_defs(settings=settings).resolve_job_def("maintenance")
        result = job.execute_in_process(instance=dg.DagsterInstance.ephemeral(), run_config=config)
        assert result.success
    (output,) = (e for e in result.all_events if e.event_type_value == "STEP_OUTPUT")
    assert output.step_output_data.metadata["compacted_tables"].value == 0


def test_a_large_process_log_is_begun_anew_and_the_writer_goes_on(tmp_path: Path) -> None:
    large, small = tmp_path / "engine.log", tmp_path / "daemon.log"
    small.write_text("short\n")
    with large.open("ab", buffering=0) as writer:
        for text in (b"first" * 10, b"second" * 10):
            writer.write(text)
            assert bound_logs(tmp_path, 20) == 1
        writer.write(b"third")
    assert large.read_bytes() == b"third"
    assert (tmp_path / "engine.log.1").read_bytes() == b"second" * 10
    assert (small.read_text(), bound_logs(tmp_path / "absent", 20)) == ("short\n", 0)


def test_the_report_shows_every_store_and_warns_of_what_the_maintenance_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path)
    lake = lake_at(tmp_path / "lake")
    add(lake, ELEMENT_SETS, elements(7, 100))
    zone = LandingZone(settings.landing_uri, ELEMENT_SETS.zones[0])
    put(zone, "../archive/old", b"bytes")

    def report() -> tuple[dg.AssetMaterialization, dg.AssetCheckEvaluation]:
        job = build_defs(settings=settings).resolve_job_def("retention_report")
        result = job.execute_in_process(
            instance=dg.DagsterInstance.ephemeral(), asset_selection=[dg.AssetKey(["history", "retention"])]
        )
        (check,) = result.get_asset_check_evaluations()
        (made,) = result.asset_materializations_for_node("history__retention")
        return made, check

    made, check = report()
    assert check.passed
    assert "| consumed segments | 365 days, then an empty mark of each |" in str(made.metadata["stores"].value)
    assert made.metadata["consumed_segments_mb"].value == 5e-6
    monkeypatch.setattr(assets, "retention_of", lambda _settings: Retention(evidence_days=-4))
    made, check = report()
    assert (check.passed, check.description) == (False, "consumed segments: 0 days old, kept -4")
