"""What the kernel leaves in a log, and what others do to it between its steps, as Spark and delta-rs see it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sda_platform import failpoints
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.history.lifecycle import POLICY
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.commit import append
from sda_platform.lake.errors import CommitConflict
from sda_platform.lake.log import TableLog
from sda_platform.lake.planning import Plan
from sda_platform.recovery.repair import recover
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.observation_commits import catalogue, ids, improved, log_of, observations, planned
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.sampling import sampled


def optimize_and_vacuum(spark: SparkSession, log: TableLog) -> None:
    """What maintenance does, without its waiting time."""
    name = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(name, "false")
    spark.sql(f"OPTIMIZE delta.`{log.uri}`").collect()
    spark.sql(f"VACUUM delta.`{log.uri}` RETAIN 0 HOURS").collect()
    spark.conf.unset(name)


def at(point: str, strike: Callable[[], None]) -> None:
    """Have ``strike`` called once, at ``point``."""

    def watch(reached: str) -> None:
        if reached == point:
            failpoints.watch(None)
            strike()

    failpoints.watch(watch)


def spark_ids(spark: SparkSession, log: TableLog) -> list[str]:
    rows = spark.read.format("delta").load(log.uri).select("observation_id").collect()
    return sorted(row.observation_id for row in rows)


# Every step of every kind of table is the campaign's, on its simulated disk (`foreign_commits`).
@pytest.mark.parametrize("point", sampled(["commit.sent", "commit.synced"], "commit.sent"))
def test_optimize_and_vacuum_may_come_between_any_two_steps_spec_22_101(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    log = log_of(OBSERVATIONS, tmp_path)
    for name in ("a", "b"):
        append(log, planned(log), observations(spark, name))
    plan = planned(log)
    at(point, lambda: optimize_and_vacuum(spark, log))
    receipt = append(log, plan, observations(spark, "c"))
    assert receipt.commit.sequence == 3
    optimize_and_vacuum(spark, log)
    with pytest.raises(CommitConflict):
        append(log, plan, observations(spark, "c"))
    assert ids(log) == spark_ids(spark, log) == ["a", "b", "c"]
    assert broken_chain(log.commits()) == []


def test_maintenance_may_come_before_an_overwrite_is_repeated_spec_101(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(ORBITAL_CATALOG, tmp_path)
    improved(spark, log, (1, 10, 0))
    at("commit.landed", lambda: optimize_and_vacuum(spark, log))
    assert improved(spark, log, (1, 11, 0), (2, 10, 0)).rows_written == 2
    assert improved(spark, log, (1, 11, 0), (2, 10, 0)).rows_written == 0
    assert catalogue(log) == {1: "11/0", 2: "10/0"}


@pytest.mark.parametrize("point", sampled(["commit.planned", "commit.landed"], "commit.landed"))
def test_optimize_and_vacuum_may_come_between_any_two_steps_of_an_overwrite__D1(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    log = log_of(ORBITAL_CATALOG, tmp_path)
    improved(spark, log, (1, 10, 0))
    improved(spark, log, (2, 10, 0))
    plan = planned(log)
    at(point, lambda: optimize_and_vacuum(spark, log))
    assert improved(spark, log, (2, 11, 0), plan=plan).commit.sequence == 3
    optimize_and_vacuum(spark, log)
    with pytest.raises(CommitConflict):
        improved(spark, log, (3, 10, 0), plan=planned_before(log, plan))
    assert catalogue(log) == {1: "10/0", 2: "11/0"}
    assert broken_chain(log.commits()) == []


def planned_before(log: TableLog, plan: Plan) -> Plan:
    """``plan`` once more, over files that are still there."""
    return replace(plan, base_version=log.version())


def test_the_maintenance_job_compacts_tables_and_changes_no_row(platform: Platform, spark: SparkSession) -> None:
    log = platform.lake.log(OBSERVATIONS)
    for number in range(POLICY.small_files + 1):
        commit(platform.lake, OBSERVATIONS, [{"observation_id": f"{number:03d}"}])
    before = log.rows().sort_by("observation_id")
    platform.run("maintenance", ops={"compact_and_expire": {"config": {"tables": [OBSERVATIONS.name]}}})
    assert len(DeltaTable(log.uri).file_uris()) == 1
    assert log.rows().sort_by("observation_id").equals(before)
    append(log, planned(log), observations(spark, "d"))
    assert (log.head().sequence, broken_chain(log.commits())) == (POLICY.small_files + 2, [])


def empty(log: Path, _data: Path) -> None:
    (log / f"{1:020d}.json").write_text("")


def halve(log: Path, _data: Path) -> None:
    newest = log / f"{1:020d}.json"
    newest.write_bytes(newest.read_bytes()[:100])


def lose(log: Path, _data: Path) -> None:
    (log / f"{1:020d}.json").unlink()


def lose_all_but_hadoops_checksum(log: Path, _data: Path) -> None:
    for ending in ("json", "crc"):
        (log / f"{1:020d}.{ending}").unlink()


def zero_the_data(_log: Path, data: Path) -> None:
    data.write_bytes(bytes(data.stat().st_size))


@pytest.mark.parametrize(
    "strike", sampled([empty, halve, lose, lose_all_but_hadoops_checksum, zero_the_data], halve, lose, zero_the_data)
)
def test_spark_goes_on_where_a_recovery_left_the_log_f_power(
    spark: SparkSession, tmp_path: Path, strike: Callable[[Path, Path], None]
) -> None:
    """Whatever stayed of the lost commit, Hadoop's hidden checksum included, must not touch the one made anew."""
    lake = lake_at(tmp_path)
    log = lake.log(OBSERVATIONS)
    append(log, planned(log), observations(spark, "a"))
    append(log, planned(log), observations(spark, "b"))
    (newest,) = set(DeltaTable(log.uri).file_uris()) - set(DeltaTable(log.uri, version=0).file_uris())
    strike(Path(log.uri, "_delta_log"), Path(log.uri, Path(newest).name))
    (found,) = recover(lake, (OBSERVATIONS,), {}, repair=True)
    assert (found.outcome, found.refused, log.head().sequence) == ("repaired", None, 1)
    append(log, planned(log), observations(spark, "b"))
    assert ids(log) == spark_ids(spark, log) == ["a", "b"]


@pytest.mark.parametrize("strike", sampled([empty, lose, lose_all_but_hadoops_checksum], lose_all_but_hadoops_checksum))
def test_an_overwrite_after_a_recovery_replaces_the_files_of_the_commit_made_anew_f_power(
    spark: SparkSession, tmp_path: Path, strike: Callable[[Path, Path], None]
) -> None:
    """The checksum file of the lost commit names other files. An engine without memory reads those that it finds."""
    lake = lake_at(tmp_path / "0")
    log = lake.log(ORBITAL_CATALOG)
    improved(spark, log, (1, 10, 0))
    improved(spark, log, (2, 10, 0))
    strike(Path(log.uri, "_delta_log"), Path())
    (found,) = recover(lake, (ORBITAL_CATALOG,), {}, repair=True)
    assert (found.outcome, found.refused, log.head().sequence) == ("repaired", None, 1)
    for moves in range(1, 4):
        log = log_of(ORBITAL_CATALOG, Path(shutil.move(tmp_path / f"{moves - 1}", tmp_path / f"{moves}")))
        improved(spark, log, (2, 10 + moves, 0))
        assert catalogue(log) == {1: "10/0", 2: f"{10 + moves}/0"}
        assert spark.read.format("delta").load(log.uri).count() == len(log.rows(["norad_id"])) == 2
