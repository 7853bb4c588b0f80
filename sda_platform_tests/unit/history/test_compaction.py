"""Compaction without an engine: what it merges, what it leaves alone, and what becomes of one that is killed."""

import json
import random
import time
from dataclasses import replace
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.history.compaction import StoppedForAlerts, compact, mergeable
from sda_platform.history.footers import table_layout
from sda_platform.history.lifecycle import POLICY
from sda_platform.history.maintenance import maintain_all
from sda_platform.history.parquet_profile import encoding_of, file_format
from sda_platform.history.pruning import Condition, may_match
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import delta_log, hadoop_checksums
from sda_platform.lake.bypasses import bypasses
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.merge_process import MergeRequest, merge
from sda_platform.lake.merging import MergeFailed, in_own_process
from sda_platform.recovery.examination import Depth, examine
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of

MB = 2**20
_MOST_LOOKS = 1_000_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path)


def write(lake: Lake, commits: int, rows: int = 2) -> None:
    """Observations in commits of some rows, one file each."""
    for number in range(commits):
        commit(lake, OBSERVATIONS, [observation(number * rows + each) for each in range(rows)])


def observation(number: int) -> dict[str, Any]:
    return {
        "observation_id": f"observation-{number:06d}", "source_id": f"radar-{number % 3}", "sensor_time_ns": number,
        "record_number": number, "range_m": 7.0 * number,
    }  # fmt: skip


def sorted_rows(log: TableLog) -> pa.Table:
    return log.rows().sort_by([("commit_sequence", "ascending"), ("observation_id", "ascending")])


def files(*each: tuple[int, int, int]) -> pa.Table:
    """Files by first and last commit sequence and size, MiB."""
    firsts, lasts, sizes = zip(*each, strict=True)
    columns = {"min.commit_sequence": firsts, "max.commit_sequence": lasts, "size_bytes": [s * MB for s in sizes]}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("stored", "spans"),
    [
        pytest.param(files((3, 3, 1), (1, 1, 1), (2, 2, 1)), [(1, 3)], id="neighbours_in_sequence_however_listed"),
        pytest.param(files((1, 1, 60), (2, 2, 60), (3, 3, 60)), [(1, 2)], id="no_more_than_the_target_and_none_alone"),
        pytest.param(files((1, 9, 64), (10, 10, 1), (11, 12, 3)), [(10, 12)], id="a_healthy_file_stays"),
        pytest.param(
            files((1, 2, 9), (3, 5, 70), (6, 6, 9), (7, 7, 9), (8, 9, 200), (10, 10, 1)), [(6, 7)], id="between_healthy"
        ),
        pytest.param(files((1, 9, 70), (4, 4, 1), (5, 5, 1)), [], id="files_within_a_healthy_one_stay"),
        pytest.param(files((1, 4, 9), (2, 3, 9), (5, 5, 9)), [(1, 5)], id="overlapping_small_files"),
        pytest.param(files((1, 1, 1)).drop_columns(["min.commit_sequence"]), [None], id="without_bounds_all"),
    ],
)
def test_small_files_of_neighbouring_commits_become_one__DL6_F2(
    stored: pa.Table, spans: list[tuple[int, int] | None]
) -> None:
    assert list(mergeable(stored, 64 * MB, 128 * MB)) == spans


@pytest.mark.parametrize("seed", range(20))
def test_every_small_file_is_in_one_span_at_most_and_no_healthy_one_is__DL6_F2(seed: int) -> None:
    chance, sequence, stored = random.Random(seed), 0, list[tuple[int, int, int]]()
    for _ in range(chance.randint(2, 60)):
        first = sequence + 1
        sequence = first + chance.randint(0, 3)
        stored.append((first, sequence, chance.choice([1, 5, 30, 63, 64, 100, 300])))
    spans = [span for span in mergeable(files(*stored), 64 * MB, 128 * MB) if span is not None]
    for before, after in pairwise(spans):
        assert before[1] < after[0]
    for span in spans:
        within = [size for first, last, size in stored if first <= span[1] and last >= span[0]]
        assert len(within) > 1 and max(within) < 64 and sum(within) <= 128


def test_a_compaction_is_committed_by_spans_and_is_none_of_the_platforms_commits__DL2_I13(lake: Lake) -> None:
    write(lake, 8)
    log = lake.log(OBSERVATIONS)
    before, head = sorted_rows(log), log.head()
    size = max(log.live_files().column("size_bytes").to_pylist())
    assert compact(lake, OBSERVATIONS, target_bytes=4 * size + 3) == 8
    bounds = log.file_bounds().sort_by("min.commit_sequence")
    assert bounds.column("min.commit_sequence").to_pylist() == [1, 5]
    assert bounds.column("max.sensor_time_ns").to_pylist() == [7, 15]
    assert [name for name, _ in log.operations()][:2] == ["OPTIMIZE", "OPTIMIZE"]
    assert sorted_rows(log).equals(before)
    assert (log.head().sequence, log.head().version) == (head.sequence, head.version + 2)
    assert [each for each in bypasses(log, 0) if "changed rows" in each] == []
    changes = [action["dataChange"] for _, text in list(log.versions())[:2] for _, action in
               delta_log.actions(text, "add", "remove")]  # fmt: skip
    assert set(changes) == {False}
    assert log.rows_of((2, 3)).num_rows == 2
    assert (compact(lake, OBSERVATIONS), compact(lake, OBSERVATIONS)) == (2, 0)


def test_a_healthy_file_is_not_written_again__DL6_F2(lake: Lake) -> None:
    write(lake, 3, rows=2_000)
    compact(lake, OBSERVATIONS)
    (large,) = lake.log(OBSERVATIONS).live_files().to_pylist()
    for number in range(3):
        commit(lake, OBSERVATIONS, [observation(10_000 + number)])
    assert compact(lake, OBSERVATIONS, healthy_bytes=large["size_bytes"]) == 3
    paths = lake.log(OBSERVATIONS).live_files().column("path").to_pylist()
    assert len(paths) == 2 and large["path"] in paths


def test_merged_files_have_the_bounds_encodings_and_codec_of_their_table__DL1_A5_DL3(lake: Lake) -> None:
    write(lake, 4, rows=1_000)
    log = lake.log(OBSERVATIONS)
    counted = set(log.file_bounds().column_names)
    compact(lake, OBSERVATIONS)
    assert set(log.file_bounds().column_names) == counted, "the log has bounds of the same columns as before"
    (bounds,) = log.file_bounds().to_pylist()
    assert (bounds["num_records"], bounds["min.sensor_time_ns"], bounds["max.sensor_time_ns"]) == (4_000, 0, 3_999)
    assert (bounds["min.commit_sequence"], bounds["max.commit_sequence"]) == (1, 4)
    layout = {column.name: column for column in table_layout(log).columns}
    assert {codec for column in layout.values() for codec in column.codecs} == {"ZSTD"}
    for column in OBSERVATIONS.columns:
        chosen, found = encoding_of(OBSERVATIONS, column), layout[column.name].encodings
        assert ("RLE_DICTIONARY" if chosen == "DICTIONARY" else chosen) in found, column.name
        assert chosen == "DICTIONARY" or "RLE_DICTIONARY" not in found, column.name
    kept = may_match(log.file_bounds(), Condition("sensor_time_ns", ">", 4_000))
    assert not kept.any()


def test_row_groups_have_the_rows_of_the_format(lake: Lake) -> None:
    write(lake, 4, rows=50)
    log = lake.log(OBSERVATIONS)
    request = MergeRequest(log.uri, [(1, 4)], MB, file_format(OBSERVATIONS, bytes_per_row=2**24 / 80))
    assert merge(MergeRequest.from_json(request.to_json())) == 4
    (file,) = DeltaTable(log.uri).file_uris()
    groups = pq.ParquetFile(file).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [80, 80, 40]


def test_a_merged_file_keeps_checksums_and_a_damaged_byte_is_found__DL1(lake: Lake) -> None:
    write(lake, 3, rows=200)
    compact(lake, OBSERVATIONS)
    log = lake.log(OBSERVATIONS)
    assert examine(log, Depth.COLUMNS).is_sound
    (file,) = (Path(uri) for uri in DeltaTable(log.uri).file_uris())
    content = file.read_bytes()
    for position in (len(content) // 3, len(content) - 9):
        damaged = bytearray(content)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        assert not examine(log, Depth.COLUMNS).is_sound
    file.write_bytes(content)
    assert file.with_name(hadoop_checksums.name_of(file.name)).exists()
    assert examine(log, Depth.COLUMNS).is_sound


def test_columns_that_were_added_later_are_null_in_the_rows_of_before(lake: Lake) -> None:
    log, rows = lake.log(OBSERVATIONS), [rows_of(OBSERVATIONS, [{"commit_sequence": n}]) for n in (1, 2)]
    write_deltalake(log.uri, rows[0].drop_columns(["reprocess_count"]))
    write_deltalake(log.uri, rows[1], mode="append", schema_mode="merge")
    before = sorted_rows(log)
    assert compact(lake, OBSERVATIONS) == 2
    assert sorted_rows(log).equals(before)


@pytest.mark.parametrize("seed", range(3))
def test_no_row_is_lost_or_doubled_by_appends_beside_a_compaction(lake: Lake, seed: int) -> None:
    write(lake, 12)
    chance, log = random.Random(seed), lake.log(OBSERVATIONS)
    appended = iter(range(1_000, 1_000 + chance.randint(1, 6)))

    def append_one() -> bool:
        """Each look for alerts appends; the merge began on an earlier version."""
        for number in appended:
            commit(lake_at(lake.uri), OBSERVATIONS, [observation(number)])
            break
        return False

    assert compact(lake, OBSERVATIONS, append_one) == 12
    for number in appended:
        commit(lake, OBSERVATIONS, [observation(number)])
    ids = sorted(log.rows(["observation_id"]).column(0).to_pylist())
    assert len(ids) == len(set(ids)) == log.row_count() == log.head().sequence + 12
    sequences = log.rows(["commit_sequence"]).column(0).unique().to_pylist()
    assert sorted(sequences) == list(range(1, log.head().sequence + 1))


def test_one_that_is_killed_in_the_middle_changes_no_row_and_is_repeated_without_harm__DL6_I18(lake: Lake) -> None:
    write(lake, 6, rows=500)
    log, directory = lake.log(OBSERVATIONS), Path(lake.log(OBSERVATIONS).uri)
    before, names = sorted_rows(log), set(directory.iterdir())

    def has_begun_a_file() -> bool:
        """Return as soon as the process has begun to write a file, which is the worst moment."""
        return any(set(directory.iterdir()) != names for _ in range(_MOST_LOOKS))

    with pytest.raises(StoppedForAlerts):
        compact(lake, OBSERVATIONS, has_begun_a_file)
    assert sorted_rows(lake_at(lake.uri).log(OBSERVATIONS)).equals(before)
    assert list(directory.glob("*#*")) == []
    assert compact(lake, OBSERVATIONS) in (0, 6), "the kill may have come after the commit"
    assert log.live_files().num_rows == 1
    assert sorted_rows(log).equals(before)


@pytest.mark.parametrize(
    ("most_stops", "answers", "stops"),
    [
        pytest.param(9, "0 1 0", 1, id="one_alert_comes_while_it_runs"),
        pytest.param(2, "0 1 0 1 0 1", 2, id="alerts_come_again_and_again_and_it_is_completed_beside_them"),
    ],
)
def test_a_compaction_stops_for_alerts_and_is_repeated_after_them__DL6_I18(
    lake: Lake, most_stops: int, answers: str, stops: int
) -> None:
    write(lake, POLICY.small_files + 1)
    log, looks = lake.log(OBSERVATIONS), chain(answers.split(), repeat(answers[-1]))
    before = sorted_rows(log)
    done = maintain_all(
        lake,
        [OBSERVATIONS],
        now_ms=time.time_ns() // 1_000_000,
        policy=replace(POLICY, stops_for_alerts=most_stops),
        is_manual=True,
        alerts_wait=lambda: next(looks) == "1",
    )
    assert (done["stops_for_alerts"], done["compacted_files"]) == (stops, POLICY.small_files + 1)
    assert sorted_rows(log).equals(before)


def test_one_that_alerts_stop_before_it_began_leaves_nothing(lake: Lake) -> None:
    write(lake, 3)
    directory = Path(lake.log(OBSERVATIONS).uri)
    names = set(directory.rglob("*"))
    with pytest.raises(StoppedForAlerts):
        compact(lake, OBSERVATIONS, lambda: True)
    assert set(directory.rglob("*")) == names


def test_what_a_killed_merge_had_not_written_to_its_end_is_removed_by_the_next(lake: Lake) -> None:
    write(lake, 2)
    unfinished = Path(lake.log(OBSERVATIONS).uri, "part-00000-x-c000.zstd.parquet#1")
    unfinished.write_bytes(b"PAR1")
    assert compact(lake, OBSERVATIONS) == 2
    assert not unfinished.exists()


def test_a_table_whose_rows_are_replaced_is_compacted_as_a_whole(lake: Lake) -> None:
    for number in range(3):
        commit(lake, ORBITAL_CATALOG, [{"norad_id": number}])
    log = lake.log(ORBITAL_CATALOG)
    before = log.rows().sort_by("norad_id")
    assert compact(lake, ORBITAL_CATALOG) == 3
    assert log.live_files().num_rows == 1
    assert log.rows().sort_by("norad_id").equals(before)


def test_a_merge_that_fails_names_the_table_and_the_reason(lake: Lake, tmp_path: Path) -> None:
    request = MergeRequest(str(tmp_path / "absent"), [None], MB, file_format(OBSERVATIONS, 64.0))
    with pytest.raises(MergeFailed, match=r"the files of .*absent were not merged: .*(?i:no such file|not found)"):
        in_own_process(request, lambda: False)


def test_a_compaction_writes_a_checkpoint_of_delta_that_is_due(lake: Lake) -> None:
    write(lake, 12)
    log = lake.log(OBSERVATIONS)
    assert delta_log.checkpointed_version(log.uri) == -1
    compact(lake, OBSERVATIONS)
    assert delta_log.checkpointed_version(log.uri) == log.version()
    assert json.loads(delta_log.commit_file(log.uri, log.version()).read_text().split("\n")[0])["commitInfo"]
