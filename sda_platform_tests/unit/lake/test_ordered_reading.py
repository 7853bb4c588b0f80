"""A whole table is read in bounded parts, about in the order of a column."""

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.lake.ordered_reading import in_order
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.small_catalogue import sets_of

_COLUMNS = ("norad_id", "epoch_time_ns", "record_number", "covariance_source")
_STEP = 1000


def _read(home: Path, epochs: list[list[int]], rows: int) -> list[list[int]]:
    """The epochs in each table that is read of commits with these."""
    lake, number = lake_at(home / "lake"), 0
    for of_commit in epochs:
        sets = []
        for epoch_ns in of_commit:
            sets += sets_of([25544], epoch_time_ns=epoch_ns, record_number=number, segment_sha256=f"{number:064x}")
            number += 1
        commit(lake, ELEMENT_SETS, sets)
    where = pc.field("record_number") != 3
    tables = list(in_order(lake.log(ELEMENT_SETS), "epoch_time_ns", _COLUMNS[:3], where, step=_STEP, rows=rows))
    found = pa.concat_tables(tables)
    every = [epoch_ns for of_commit in epochs for epoch_ns in of_commit]
    assert sorted(found["record_number"].to_pylist()) == [n for n in range(number) if n != 3]
    assert all(every[row["record_number"]] == row["epoch_time_ns"] for row in found.to_pylist())
    return [each["epoch_time_ns"].to_pylist() for each in tables]


def test_files_that_follow_each_other_give_whole_steps_that_ascend__44(tmp_path: Path) -> None:
    chance = random.Random(1)
    commits = [[chance.randrange(500 * n, 500 * n + 700) for _ in range(6)] for n in range(-4, 12)]
    chance.shuffle(commits)
    tables = _read(tmp_path, commits, 12)
    assert len(tables) > 3
    assert all(12 <= len(each) <= 48 for each in tables[:-1])
    steps = [{epoch_ns // _STEP for epoch_ns in each} for each in tables]
    assert all(max(before) < min(after) for before, after in pairwise(steps))


def test_files_that_all_overlap_are_read_in_bounded_parts__44(tmp_path: Path) -> None:
    chance = random.Random(2)
    tables = _read(tmp_path, [[chance.randrange(100_000) for _ in range(10)] for _ in range(12)], 5)
    assert all(len(each) <= 29 for each in tables), "four times as many, and less than another batch"
    assert len(tables) > 3


@pytest.mark.parametrize("rows", [1, 1000])
def test_a_table_without_files_has_no_rows(tmp_path: Path, rows: int) -> None:
    log = lake_at(tmp_path / "lake").log(ELEMENT_SETS)
    assert list(in_order(log, "epoch_time_ns", _COLUMNS, pc.field("record_number") > 0, step=1, rows=rows)) == []
