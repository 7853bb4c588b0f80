"""The maintenance with the real engine: what it sets, what it leaves alone, and a log that it cut."""

import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sda_platform.archive.lifecycle import POLICY
from sda_platform.archive.maintenance import maintain_all
from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import properties
from sda_platform.lake.commit import append
from sda_platform.lake.lake import Lake
from sda_platform.lake.retention import RETENTION
from sda_platform.recovery.examination import Depth, examine
from sda_platform_tests.pipeline.test_commits import ids, observations, planned
from sda_platform_tests.support.delta_tables import commit

DAY_MS = 24 * 3_600_000


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(str(tmp_path), MissionClock(0, 0, 0.0), lambda: spark, "run")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_the_engine_sets_the_properties_and_the_examination_accepts_them_spec_114_hole_33_34(
    spark: SparkSession, lake: Lake
) -> None:
    log = lake.log(OBSERVATIONS)
    append(log, planned(log), observations(spark, "a"))
    assert properties.differences(log.properties()) == []
    assert {examine(log, depth).is_sound for depth in Depth} == {True}
    spark.sql(f"ALTER TABLE delta.`{log.uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert "delta.enableDeletionVectors is true, not false" in examine(log, Depth.NEWEST).problems[0]
    stored = log.properties()
    for statement in properties.correction(log.uri, stored).split("; "):
        spark.sql(statement)
    assert {examine(log, depth).is_sound for depth in Depth} == {True}


def test_small_files_are_compacted_once_and_an_idle_table_is_left_alone_spec_53__D2_DL6_F2(
    spark: SparkSession, lake: Lake
) -> None:
    log = lake.log(OBSERVATIONS)
    for number in range(POLICY.small_files + 1):
        commit(lake, OBSERVATIONS, [{"observation_id": f"{number:03d}"}])
    before, reports = log.rows().sort_by("observation_id"), list[str]()
    done = maintain_all(lake, (OBSERVATIONS,), now_ms=now_ms(), is_manual=True, report=reports.append)
    assert (done["compacted_tables"], done["compacted_files"]) == (1, POLICY.small_files + 1)
    assert next(log.operations())[0] == "OPTIMIZE"
    assert log.rows().sort_by("observation_id").equals(before)
    maintained = log.version()
    for night in range(1, 7):
        maintain_all(lake, (OBSERVATIONS,), now_ms=now_ms() + night * DAY_MS, is_manual=True)
    assert log.version() == maintained
    append(log, planned(log), observations(spark, "c"))
    assert (log.head().sequence, log.row_count()) == (POLICY.small_files + 2, POLICY.small_files + 2)


def test_the_engine_works_on_with_a_log_that_was_cut_spec_46_53(spark: SparkSession, lake: Lake) -> None:
    log = lake.log(OBSERVATIONS)
    for number in range(120):
        commit(lake, OBSERVATIONS, [{"observation_id": f"{number:03d}", "sensor_time_ns": number}])
        if number in (15, 110):
            DeltaTable(log.uri).create_checkpoint()
    after_ms = now_ms() + (RETENTION.log_h + 24) * 3_600_000
    maintain_all(lake, (OBSERVATIONS,), now_ms=after_ms, is_manual=True)
    assert min(Path(log.uri, "_delta_log").glob("[0-9]*.json")).stem == f"{15:020d}"
    append(log, planned(log), observations(spark, "after"))
    assert spark.read.format("delta").load(log.uri).where("commit_sequence > 0").count() == 121
    assert (len(ids(log)), log.head().sequence) == (121, 121)
    assert examine(log, Depth.COLUMNS).problems == []
