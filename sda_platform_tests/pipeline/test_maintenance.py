"""The maintenance with the real engine: what it sets, what it leaves alone, and a log that it cut."""

import time
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from sda_platform.clock import MissionClock
from sda_platform.history.compaction import compact
from sda_platform.history.footers import table_layout
from sda_platform.history.lifecycle import POLICY
from sda_platform.history.maintenance import maintain_all
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import properties
from sda_platform.lake.commit import append
from sda_platform.lake.lake import Lake
from sda_platform.lake.merge_process import Encoding
from sda_platform.lake.retention import RETENTION
from sda_platform.recovery.examination import Depth, examine
from sda_platform_tests.support.delta_tables import commit, rows_of
from sda_platform_tests.support.observation_commits import ids, observations, planned
from sda_platform_tests.support.parquet_encodings import UNREADABLE, candidates, write_encoded

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


def test_the_engine_reads_compacted_files_and_skips_them_by_their_bounds__DL1_A5_DL3(
    spark: SparkSession, lake: Lake
) -> None:
    log = lake.log(OBSERVATIONS)
    for number in range(4):
        content = rows_of(OBSERVATIONS, [observation(number * 1_000 + each) for each in range(1_000)])
        append(log, planned(log), spark.createDataFrame(content).drop("commit_sequence"))
    before, bounds = log.rows().sort_by("observation_id"), log.file_bounds()
    assert compact(lake, OBSERVATIONS) == bounds.num_rows
    assert set(log.file_bounds().column_names) == set(bounds.column_names), "bounds of the columns that Spark bounds"
    columns = {column.name: column.encodings for column in table_layout(log).columns}
    for name in ("sensor_time_ns", "commit_sequence", "record_number"):
        assert "DELTA_BINARY_PACKED" in columns[name]
    assert "DELTA_BYTE_ARRAY" in columns["observation_id"]
    assert "RLE_DICTIONARY" in columns["source_id"]
    assert log.rows().sort_by("observation_id").equals(before)
    stored = spark.read.format("delta").load(log.uri)
    assert stored.orderBy("observation_id").toArrow().select(before.column_names).equals(before)
    assert stored.where("sensor_time_ns > 3999").inputFiles() == []
    append(log, planned(log), observations(spark, "after"))
    assert stored.count() == log.row_count() == 4_001


def test_no_row_is_lost_or_doubled_by_commits_of_the_engine_beside_a_compaction(
    spark: SparkSession, lake: Lake
) -> None:
    log = lake.log(OBSERVATIONS)
    for number in range(12):
        append(log, planned(log), observations(spark, f"before-{number}"))
    beside = iter(range(3))

    def append_one() -> bool:
        """Each look for alerts lets the engine append."""
        for number in beside:
            append(log, planned(log), observations(spark, f"beside-{number}"))
            break
        return False

    assert compact(lake, OBSERVATIONS, append_one) == 12
    for number in beside:
        append(log, planned(log), observations(spark, f"beside-{number}"))
    assert len(ids(log)) == len(set(ids(log))) == log.head().sequence == 15
    assert spark.read.format("delta").load(log.uri).where("commit_sequence > 0").count() == 15
    assert examine(log, Depth.COLUMNS).problems == []


def test_the_engine_refuses_a_compacted_file_of_which_a_byte_changed(spark: SparkSession, lake: Lake) -> None:
    log = lake.log(OBSERVATIONS)
    for number in range(3):
        commit(lake, OBSERVATIONS, [observation(number * 100 + each) for each in range(100)])
    compact(lake, OBSERVATIONS)
    (file,) = (Path(uri) for uri in DeltaTable(log.uri).file_uris())
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)
    with pytest.raises(Exception, match=r"(?i)checksum"):
        spark.read.format("delta").load(log.uri).toArrow()


@pytest.mark.parametrize("encoding", sorted(get_args(Encoding)))
def test_the_pinned_engine_reads_every_encoding_but_those_that_the_profile_leaves_out__DL1_I8(
    spark: SparkSession, tmp_path: Path, encoding: Encoding
) -> None:
    """If this fails for one that was left out, Spark reads it now: measure, and add it to the profile."""
    readable = set()
    for column in OBSERVATIONS.columns:
        if encoding not in candidates(column) or column.data_type.simpleString() in readable:
            continue
        rows = rows_of(OBSERVATIONS, [observation(n) for n in range(100)]).select([column.name])
        file = tmp_path / f"{column.name}.parquet"
        write_encoded(rows, str(file), {column.name: encoding})
        if _engine_reads(spark, file, rows):
            readable.add(column.data_type.simpleString())
    assert bool(readable) == (encoding not in UNREADABLE)


def _engine_reads(spark: SparkSession, file: Path, rows: pa.Table) -> bool:
    try:
        found = spark.read.parquet(str(file)).collect()
    except Exception as error:
        assert "Unsupported encoding" in str(error), error
        return False
    return [row[0] for row in found] == list(rows.column(0).to_pylist())


def observation(number: int) -> dict[str, Any]:
    return {
        "observation_id": f"observation-{number:06d}", "source_id": f"radar-{number % 3}", "sensor_time_ns": number,
        "record_number": number, "range_m": 7.0 * number,
    }  # fmt: skip


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
