"""The write door on the real engine: one plan, one commit, whatever is repeated or races."""

import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.fusion.tables import TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import data_files, delta_log
from sda_platform.lake.commit import WrittenRows, append, stamped, with_spark
from sda_platform.lake.compilation import COMPILED, INTERPRETED
from sda_platform.lake.errors import CommitConflict, InvariantError, SchemaMismatch
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.restoration import remove_strays, restore_rows
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.recovery.verification import broken_chain
from sda_platform.replay.digest import digest
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.observation_commits import catalogue, ids, improved, log_of, observations, planned
from sda_platform_tests.support.sampling import sampled


def test_appending_twice_with_one_plan_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(OBSERVATIONS, tmp_path)
    plan = planned(log)
    receipt = append(log, plan, observations(spark, "a", "b"), counts={"valid": 2}, watermarks={"radar": 7})
    assert (receipt.rows_written, receipt.commit.version) == (2, 0)
    with pytest.raises(CommitConflict, match="run run committed sequence 1 first; plan again"):
        append(log, plan, observations(spark, "a", "b"))
    assert (ids(log), log.version()) == (["a", "b"], 0)
    stored = log.head().commit
    assert stored is not None
    assert (stored.manifest.counts, stored.manifest.watermarks) == ({"valid": 2}, {"radar": 7})


def test_of_two_planners_one_wins_and_the_other_plans_again(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(OBSERVATIONS, tmp_path)
    append(log, planned(log), observations(spark, "a"))
    first, second = planned(log, "first"), planned(log, "second")
    append(log, first, observations(spark, "b"))
    with pytest.raises(CommitConflict, match="run first committed sequence 2 first"):
        append(log, second, observations(spark, "c"))
    append(log, planned(log, "second"), observations(spark, "c"))
    assert ids(log) == ["a", "b", "c"]
    assert broken_chain(log.commits()) == []
    assert log.rows(["observation_id", COMMIT_SEQUENCE]).sort_by("observation_id").column(
        COMMIT_SEQUENCE
    ).to_pylist() == [1, 2, 3]


def test_rows_are_the_same_through_the_connection_and_through_data_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(RAW_RECORDS, [{"record_number": n, "payload": bytes([n]), "range_m": n / 7} for n in range(50)])
    stored, bounds = [], []
    for way, least_bytes in (("files", 0), ("direct", 2**40)):
        monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", least_bytes)
        lake = Lake(str(tmp_path / way), MissionClock(0, 0, 0.0), lambda: spark)
        log = lake.log(RAW_RECORDS)
        receipts = [lake.append(planned(log), rows) for _ in range(2)]
        assert [receipt.rows_written for receipt in receipts] == [50, 50]
        lake.append(planned(log), lake.frame(RAW_RECORDS, rows))  # one that the engine reads
        lake.clear_staging()
        order = [(name, "ascending") for name in (COMMIT_SEQUENCE, "record_number")]
        stored.append(log.rows().sort_by(order))
        assert spark.read.format("delta").load(log.uri).toArrow().sort_by(order).equals(stored[-1])
        newest = pa.table(DeltaTable(log.uri).get_add_actions(flatten=True)).to_pylist()[0]
        bounds.append({name: value for name, value in newest.items() if name.partition(".")[0] in ("min", "max")})
    assert stored[0].equals(stored[1])
    assert bounds[0] == bounds[1]
    assert list((tmp_path / "files" / "_staging").iterdir()) == []
    assert not (tmp_path / "direct" / "_staging").exists()


def test_rows_that_are_replaced_through_data_files_are_those_of_the_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = []
    for way, least_bytes in (("files", 0), ("direct", 2**40)):
        monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", least_bytes)
        lake = Lake(str(tmp_path / way), MissionClock(0, 0, 0.0), lambda: spark)
        log = lake.log(TRACKS)
        for numbers in ((1, 2), (2, 3), (4,)):
            tracks = [{"norad_id": n, "kept_orbit": [n / 3] * 44 if n == 2 else None} for n in numbers]
            lake.replace(planned(log), rows_of(TRACKS, tracks))
        assert sequences(log) == {1: 1, 2: 2, 3: 2, 4: 3}
        assert spark.read.format("delta").load(log.uri).count() == 4
        stored.append(log.rows().sort_by("norad_id"))
    assert stored[0].equals(stored[1])


def test_data_files_of_a_commit_that_lost_its_sequence_are_no_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", 0)
    lake = Lake(str(tmp_path), MissionClock(0, 0, 0.0), lambda: spark)
    log = lake.log(OBSERVATIONS)
    batches = [rows_of(OBSERVATIONS, [{"observation_id": name, "sensor_time_ns": 5}]) for name in "abc"]
    lake.append(planned(log), batches[0])
    first, second = planned(log, "first"), planned(log, "second")
    lake.append(first, batches[1])
    with pytest.raises(CommitConflict, match="run first committed sequence 2 first"):
        lake.append(second, batches[2])
    assert ids(log) == ["a", "b"]
    assert spark.read.format("delta").load(log.uri).count() == 2
    lake.append(planned(log, "second"), batches[2])
    assert ids(log) == ["a", "b", "c"]


def test_a_statement_that_the_engine_executes_twice_adds_its_files_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also after the files were merged in between: Delta would take files again that it has removed."""
    log = log_of(OBSERVATIONS, tmp_path)
    append(log, planned(log), observations(spark, "a"))
    plan = planned(log)
    rows = stamped(plan, rows_of(OBSERVATIONS, [{"observation_id": "b", "sensor_time_ns": 5}]))
    files = data_files.write(OBSERVATIONS, log.uri, rows, "one")
    written = WrittenRows(spark.createDataFrame([], OBSERVATIONS.schema), files)
    execute = with_spark(log, plan, written, "append")
    execute(plan.manifest("nonce"))
    DeltaTable(log.uri).optimize.compact()
    execute(plan.manifest("nonce"))
    assert ids(log) == ["a", "b"]


def test_the_log_bounds_what_files_are_passed_over_by_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(OBSERVATIONS, tmp_path)
    append(log, planned(log), observations(spark, "a", "b").coalesce(1))
    (stats,) = pa.table(DeltaTable(log.uri).get_add_actions(flatten=True)).to_pylist()
    assert (stats["num_records"], stats["min.sensor_time_ns"], stats["max.commit_sequence"]) == (2, 5, 1)
    bounded = {name.partition(".")[2] for name, value in stats.items() if name.startswith("max.") and value is not None}
    assert bounded <= set(OBSERVATIONS.bounded_columns)
    assert not {"observation_id", "range_m"} & bounded


def test_an_empty_commit_still_carries_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(OBSERVATIONS, tmp_path)
    receipt = append(log, planned(log), observations(spark))
    assert (receipt.rows_written, log.head().sequence, ids(log)) == (0, 1, [])


def test_an_engine_that_begins_at_the_platforms_checkpoint_has_all_rows_and_still_refuses_a_repeated_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(str(tmp_path / "lake"), MissionClock(0, 0, 0.0), lambda: spark)
    log = lake.log(OBSERVATIONS)
    for number in range(12):
        lake.append(planned(log), observations(spark, f"{number:02}"))
    files = Path(log.uri) / "_delta_log"
    assert [file.name for file in files.glob("*.checkpoint.parquet")] == [f"{9:020d}.checkpoint.parquet"]
    for version in range(9):
        for name in (f"{version:020d}.json", f".{version:020d}.json.crc", f"{version:020d}.crc"):
            (files / name).unlink(missing_ok=True)
    # At another place, so that the engine has nothing of it in memory.
    moved = Path(shutil.move(tmp_path / "lake", tmp_path / "moved"))
    for checksum in (moved / OBSERVATIONS.name / "_delta_log").glob("*.crc"):
        checksum.unlink()
    log = log_of(OBSERVATIONS, moved)
    assert spark.read.format("delta").load(log.uri).count() == 12
    repeated = replace(planned(log), sequence=7)
    # The commit itself is gone from the log; its transaction is in the checkpoint, so Delta skips the repeated one.
    with pytest.raises(InvariantError, match="success for sequence 7, but the log does not have it"):
        append(log, repeated, observations(spark, "again"))
    append(log, planned(log), observations(spark, "new"))
    assert ids(log) == [*(f"{number:02}" for number in range(12)), "new"]


def test_rows_of_another_shape_are_refused_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(OBSERVATIONS, tmp_path)
    with pytest.raises(
        SchemaMismatch, match=r"rows for observations differ from its model: .*range_m: declared double, found string"
    ):
        append(log, planned(log), observations(spark, "a").withColumn("range_m", F.lit("far")))
    assert log.version() == -1


def test_column_descriptions_are_stored_in_the_table_and_later_commits_keep_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    appended, replaced = log_of(OBSERVATIONS, tmp_path), log_of(ORBITAL_CATALOG, tmp_path)
    for number in range(2):
        append(appended, planned(appended), observations(spark, str(number)))
        improved(spark, replaced, (1, 10 + number, 0))
        for log in (appended, replaced):
            stored = spark.read.format("delta").load(log.uri).schema
            described = {column.name: column.description for column in log.table.columns if column.description}
            assert {name: stored[name].metadata["comment"] for name in described} == described


def test_what_a_commit_wrote_is_on_disk_before_anybody_hears_of_it_spec_97(
    spark: SparkSession, tmp_path: Path, synced: Counter[str]
) -> None:
    for log in (log_of(OBSERVATIONS, tmp_path), log_of(ORBITAL_CATALOG, tmp_path)):
        if log.table is OBSERVATIONS:
            append(log, planned(log), observations(spark, "a", "b"))
        else:
            improved(spark, log, (1, 10, 0))
        data_files = [Path(file).name for file in DeltaTable(log.uri).file_uris()]
        log_files = [file.name for file in Path(log.uri, "_delta_log").iterdir() if file.is_file()]
        assert {*data_files, *log_files, "_delta_log", log.table.name, tmp_path.name} <= set(synced)
        synced.clear()


def test_the_files_that_arrow_wrote_are_on_disk_before_anybody_hears_of_the_commit_spec_97(
    spark: SparkSession, tmp_path: Path, synced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", 0)
    lake = Lake(str(tmp_path / "lake"), MissionClock(0, 0, 0.0), lambda: spark)
    for table, directories in ((OBSERVATIONS, {"lake", tmp_path.name}), (TRACKS, {"lake"})):
        for _ in range(2):
            rows, log = rows_of(table, [{"norad_id": 1}]), lake.log(table)
            if table.replaces_rows:
                lake.replace(planned(log), rows)
            else:
                lake.append(planned(log), rows)
            version = log.version()
            new = {
                file.name
                for file in delta_log.added_files(log.uri, delta_log.commit_file(log.uri, version).read_text())
            }
            wanted = {f"{version:020d}.json", f"{version:020d}.crc", "_delta_log", table.name, *directories}
            assert len(new) == 1 and new | wanted <= set(synced)
            assert synced[new.pop()] == 1
            synced.clear()
            directories = {"lake"}


def sequences(log: TableLog) -> dict[int, int]:
    rows = log.rows(["norad_id", COMMIT_SEQUENCE])
    return dict(zip(rows.column("norad_id").to_pylist(), rows.column(COMMIT_SEQUENCE).to_pylist(), strict=True))


def test_overwriting_twice_with_one_plan_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    log = log_of(ORBITAL_CATALOG, tmp_path)
    plan = planned(log)
    improved(spark, log, (1, 10, 0), plan=plan)
    version = log.version()
    with pytest.raises(CommitConflict):
        improved(spark, log, (1, 99, 0), plan=plan)
    assert (catalogue(log), log.version()) == ({1: "10/0"}, version)


def test_an_overwrite_that_was_overtaken_is_refused_and_takes_no_row_back__D1(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(ORBITAL_CATALOG, tmp_path)
    improved(spark, log, (1, 10, 0))
    overtaken = planned(log, "overtaken")
    improved(spark, log, (2, 10, 0))
    with pytest.raises(CommitConflict, match="run run committed sequence 2 first"):
        improved(spark, log, (3, 10, 0), plan=overtaken)
    assert (catalogue(log), broken_chain(log.commits())) == ({1: "10/0", 2: "10/0"}, [])


def test_rows_that_do_not_change_keep_their_sequence_and_are_not_counted__D1(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(ORBITAL_CATALOG, tmp_path)
    written = [
        improved(spark, log, *sets).rows_written
        for sets in ([(1, 10, 0), (2, 10, 0)], [(2, 11, 0), (3, 10, 0)], [(1, 9, 0)])
    ]
    assert written == [2, 2, 0]
    assert sequences(log) == {1: 1, 2: 2, 3: 2}
    assert [c.rows_written for c in log.commits()] == written[::-1]
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark)
    lake.reads_unverified = True
    reader = replace(OBSERVATIONS, consumes=(ORBITAL_CATALOG,))
    changed = lake.new_rows(lake.plan(reader), ORBITAL_CATALOG, ["norad_id"])
    assert sorted(changed.column("norad_id").to_pylist()) == [1, 2, 3]
    assert sorted(log.rows_of((1, 3), ["norad_id"]).column("norad_id").to_pylist()) == [2, 3]


def test_a_commit_in_part_writes_only_the_files_again_that_have_a_changed_row__D1(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By the engine: one commit each, with rows changed and removed; without any, no file changes."""
    table = replace(REFINED_EPHEMERIDES, consumes=(), reads=())
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark)
    lake.reads_unverified = True
    log, files = lake.log(table), []
    for changed, removed in (((1, 2), ()), ((3, 4), ()), ((2,), (3,)), ((), ())):
        rows, gone = (rows_of(table, [{"norad_id": number} for number in part]) for part in (changed, removed))
        lake.replace(planned(log), rows, removed=gone)
        files.append(frozenset(log.live_files()["path"].to_pylist()))
    assert sequences(log) == {1: 1, 2: 3, 4: 2}
    assert [c.rows_written for c in log.commits()] == [0, 1, 2, 2]
    assert (broken_chain(log.commits()), log.version()) == ([], 3)
    assert files[0] <= files[1] and files[2] == files[3]
    with pytest.raises(CommitConflict):
        lake.replace(replace(planned(log), sequence=3), rows_of(table, [{"norad_id": 1}]))


def test_a_key_that_changes_twice_in_one_commit_is_an_invariant_error(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark)
    rows = rows_of(ORBITAL_CATALOG, [{"norad_id": 1}, {"norad_id": 1}])
    with pytest.raises(
        InvariantError, match=r"orbital_catalog: rows that change have a key \(norad_id\) more than once"
    ):
        lake.replace(planned(lake.log(ORBITAL_CATALOG)), rows)
    assert lake.head(ORBITAL_CATALOG).sequence == 0


def test_only_a_better_element_set_changes_the_catalogue(spark: SparkSession, tmp_path: Path) -> None:
    """By epoch, then source: a re-landed, an older and a less trusted set change nothing."""
    log = log_of(ORBITAL_CATALOG, tmp_path)
    assert improved(spark, log, (1, 10, 5), (2, 10, 5), (2, 9, 9)).rows_written == 2
    assert improved(spark, log, (1, 10, 5), (2, 9, 9)).rows_written == 0
    assert improved(spark, log, (1, 10, 4)).rows_written == 0
    assert catalogue(log) == {1: "10/5", 2: "10/5"}
    assert improved(spark, log, (1, 10, 6), (2, 11, 0), (3, 1, 0)).rows_written == 3
    assert catalogue(log) == {1: "10/6", 2: "11/0", 3: "1/0"}
    assert broken_chain(log.commits()) == []


def test_the_catalogue_does_not_depend_on_the_order_in_which_sets_arrive(spark: SparkSession, tmp_path: Path) -> None:
    batches = [[(1, 10, 5), (2, 7, 2)], [(1, 11, 0), (2, 7, 1)]]
    found = []
    for n, order in enumerate((batches, batches[::-1])):
        log = log_of(ORBITAL_CATALOG, tmp_path / str(n))
        for sets in order:
            improved(spark, log, *sets)
        found.append(
            log.rows([c.name for c in ORBITAL_CATALOG.columns if c.name != COMMIT_SEQUENCE]).sort_by("norad_id")
        )
    assert isinstance(found[0], pa.Table)
    assert found[0].equals(found[1])


def test_a_commit_costs_one_job_of_the_engine_however_it_writes(spark: SparkSession, tmp_path: Path) -> None:
    """Neither the transaction's version nor the files that an overwrite replaces are looked up in the log."""
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark)
    appended = partial(lake.append, rows=rows_of(OBSERVATIONS, [{"observation_id": "a", "sensor_time_ns": 5}]))
    replaced = partial(lake.replace, changed=rows_of(ORBITAL_CATALOG, [{"norad_id": 1}]))
    for table, write in ((OBSERVATIONS, appended), (ORBITAL_CATALOG, replaced)):
        write(planned(lake.log(table)))  # the first creates the table
        for _ in range(2):
            before = jobs_of(spark)
            write(planned(lake.log(table)))
            assert (table.name, jobs_of(spark) - before) == (table.name, 1)


@pytest.mark.parametrize("checksum", sampled(["absent", "damaged"], "damaged"))
def test_without_a_sound_checksum_file_a_commit_asks_the_log(
    spark: SparkSession, tmp_path: Path, checksum: str
) -> None:
    lake = Lake(str(tmp_path / "lake"), MissionClock(1, 0, 0.0), lambda: spark)
    for name in ("a", "b"):
        lake.append(planned(lake.log(OBSERVATIONS)), observations(spark, name))
        improved(spark, lake.log(ORBITAL_CATALOG), (1, ord(name), 0))
    moved = Path(shutil.move(tmp_path / "lake", tmp_path / "moved"))  # the engine has nothing of it in memory
    appended, replaced = log_of(OBSERVATIONS, moved), log_of(ORBITAL_CATALOG, moved)
    for file in list(moved.glob("*/_delta_log/*.crc")):
        if checksum == "absent" or file.name.startswith("."):  # Hadoop's own checksums of the files
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:100] + bytes(100))
    with pytest.raises(CommitConflict):
        append(appended, replace(planned(appended), sequence=2), observations(spark, "again"))
    append(appended, planned(appended), observations(spark, "c"))
    improved(spark, replaced, (1, 200, 0), (2, 200, 0))
    assert (ids(appended), catalogue(replaced)) == (["a", "b", "c"], {1: "200/0", 2: "200/0"})


def test_an_overwrite_replaces_the_files_that_another_writer_left_without_a_checksum(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(ORBITAL_CATALOG, tmp_path)
    improved(spark, log, (1, 10, 0), (2, 10, 0))
    DeltaTable(log.uri).optimize.compact()
    write_deltalake(log.uri, rows_of(ORBITAL_CATALOG, [{"norad_id": 3, "object_name": "3"}]), mode="append")
    improved(spark, log, (1, 11, 0))
    assert catalogue(log) == {1: "11/0", 2: "10/0", 3: "3"}
    assert len(log.rows(["norad_id"])) == 3


def jobs_of(spark: SparkSession) -> int:
    """How many jobs the engine has run so far."""
    return int(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def test_statements_of_few_rows_are_interpreted_and_larger_ones_compiled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark)
    log = lake.log(OBSERVATIONS)
    rows = rows_of(OBSERVATIONS, [{"observation_id": "a", "sensor_time_ns": 5}])

    def appended() -> dict[str, str]:
        lake.append(planned(log), lake.frame(OBSERVATIONS, rows))
        return {name: str(spark.conf.get(name)) for name in COMPILED}

    assert appended() == INTERPRETED
    monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", 1)
    assert appended() == COMPILED
    first, second = (log.rows_of((n, n + 1)).drop_columns([COMMIT_SEQUENCE]) for n in range(2))
    assert first.equals(second)


def test_rows_that_were_damaged_are_restored_and_the_next_commit_follows_spec_80(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What `sda lake reconcile --apply` writes: the rows of one commit, and the removal of rows of no commit."""
    lake, log = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark), log_of(OBSERVATIONS, tmp_path)
    for names in ("ab", "cd"):
        append(log, planned(log), observations(spark, *names))
    second, head = log.rows_of((1, 2)), log.head()
    DeltaTable(log.uri).update(updates={"sensor_time_ns": "9"}, predicate="observation_id = 'c'")
    DeltaTable(log.uri).delete("observation_id = 'd'")
    place = second.column_names.index(COMMIT_SEQUENCE)
    stray = second.set_column(place, COMMIT_SEQUENCE, pa.array([99, 99], pa.int64()))
    write_deltalake(log.uri, stray, mode="append")
    restore_rows(lake, OBSERVATIONS, 2, second)
    remove_strays(lake, OBSERVATIONS, 2)
    assert digest(OBSERVATIONS, log.rows_of((1, 2))) == digest(OBSERVATIONS, second)
    assert (ids(log), log.head().sequence) == (["a", "b", "c", "d"], head.sequence)
    append(log, planned(log), observations(spark, "e"))
    assert ids(log) == ["a", "b", "c", "d", "e"]
    assert broken_chain(log.commits()) == []
