"""The files that a search for duplicates reads, counted: a time far from the rest of a batch costs few of them."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.ingest.checks import observations_balance
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.selections import Near
from sda_platform.lake.time_spans import MAX_SPANS, time_spans
from sda_platform.recovery.review import NEWEST_AGAIN
from sda_platform.recovery.verification import duplicate_keys
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at
from sda_platform_tests.support.segments import START_NS

DAY_NS = 86_400 * 10**9
DAYS = 60
FAR_FUTURE_NS = START_NS + 30_000 * DAY_NS
STRAY = {"1970": 1, "far future": FAR_FUTURE_NS, "a month ago": START_NS - 30 * DAY_NS}
# What the commits before the newest wrote, as far as a check of the newest reviews them too.
REVIEWED_BEFORE = [(f"o{day}", START_NS - day * DAY_NS) for day in range(1, NEWEST_AGAIN)]
Times = list[int | None]


def column(times: Times) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(times, pa.int64())])


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=200))
def test_the_intervals_hold_every_time_and_are_few_ascending_and_apart(times: Times) -> None:
    spans = time_spans(column(times))
    known = [time for time in times if time is not None]
    assert all(any(first <= time <= last for first, last in spans) for time in known)
    assert len(spans) <= MAX_SPANS
    assert {edge for span in spans for edge in span} <= set(known)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@given(st.lists(st.none() | st.integers(0, 100), min_size=1, max_size=20))
def test_a_stored_row_is_in_reach_if_its_time_is_one_of_the_batch_null_included(times: Times) -> None:
    table = pa.table({"t": pa.array(times, pa.int64())})
    found = ds.dataset(table).to_table(filter=Near("t", column(times)).expression())
    assert found.num_rows == len(times)


def test_a_batch_without_any_time_reads_nothing() -> None:
    table = ds.dataset(pa.table({"t": pa.array([1, 2], pa.int64())}))
    assert table.to_table(filter=Near("t", column([])).expression()).num_rows == 0


@pytest.fixture(scope="module")
def sixty_days() -> Iterator[Path]:
    """A table with a file for each of the last sixty days, and one that holds the two strays of the extremes."""
    with tempfile.TemporaryDirectory() as place:
        lake = lake_at(Path(place))
        commit(lake, OBSERVATIONS, [observation("o-1970", 1), observation("o-future", FAR_FUTURE_NS)])
        for day in range(DAYS, 0, -1):
            commit(lake, OBSERVATIONS, [observation(f"o{day}", START_NS - day * DAY_NS)])
        yield Path(place)


@pytest.fixture
def lake(sixty_days: Path, tmp_path: Path) -> Lake:
    """A copy of that table for one test."""
    shutil.copytree(sixty_days, tmp_path, dirs_exist_ok=True)
    return lake_at(tmp_path)


def observation(name: str, time_ns: int) -> dict[str, object]:
    return {"observation_id": name, "sensor_time_ns": time_ns}


def files_read(monkeypatch: pytest.MonkeyPatch, search: Callable[[], object]) -> int:
    """The most data files of `observations` that one of the reads of ``search`` by time opens."""
    counts = [0]
    rows = TableLog.rows

    def counted(
        log: TableLog,
        columns: object = None,
        where: ds.Expression | None = None,
        version: object = None,
        **files: object,
    ) -> pa.Table:
        if log.table is OBSERVATIONS and (where is None or "sensor_time_ns" in str(where)):
            counts.append(sum(1 for _ in DeltaTable(log.uri).to_pyarrow_dataset().get_fragments(where)))
        return rows(log, columns, where, version, **files)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(TableLog, "rows", counted)
        search()
    return max(counts)


@pytest.mark.parametrize("stray", STRAY)
def test_a_stray_time_costs_its_own_files_and_not_the_history__V06(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, stray: str
) -> None:
    new = [("n1", START_NS), ("n2", STRAY[stray] + 1)]
    commit(lake, RAW_RECORDS, [{**observation(*each), "error_kind": None} for each in [*REVIEWED_BEFORE, *new]])
    commit(lake, OBSERVATIONS, [observation(*each) for each in new], windows=[genesis_window(RAW_RECORDS)])
    log = lake.log(OBSERVATIONS)
    commits = log.commits(NEWEST_AGAIN)
    assert files_read(monkeypatch, lambda: duplicate_keys(log, commits)) <= NEWEST_AGAIN + 3
    assert files_read(monkeypatch, lambda: observations_balance(lake, log, commits)) <= NEWEST_AGAIN + 3
    assert duplicate_keys(log, commits) == []
    assert observations_balance(lake, log, commits) == []


@pytest.mark.parametrize("again", [("o-1970", 1), ("o-future", FAR_FUTURE_NS), ("o30", START_NS - 30 * DAY_NS)])
def test_a_duplicate_at_a_stray_time_is_found_across_intervals__V06(lake: Lake, again: tuple[str, int]) -> None:
    rows = [observation("n1", START_NS), observation("n2", START_NS - 50 * DAY_NS), observation(*again)]
    commit(lake, OBSERVATIONS, rows)
    log = lake.log(OBSERVATIONS)
    (problem,) = duplicate_keys(log, log.commits())
    assert f"1 keys occur more than once, such as ('{again[0]}',)" in problem


def test_what_was_stored_long_ago_is_expected_no_second_time__V06(lake: Lake) -> None:
    delivered = [("n1", START_NS), ("o-1970", 1), ("o30", START_NS - 30 * DAY_NS)]
    commit(lake, RAW_RECORDS, [{**observation(*each), "error_kind": None} for each in [*REVIEWED_BEFORE, *delivered]])
    commit(lake, OBSERVATIONS, [observation("n1", START_NS)], windows=[genesis_window(RAW_RECORDS)])
    log = lake.log(OBSERVATIONS)
    assert observations_balance(lake, log, log.commits(NEWEST_AGAIN)) == []


def test_the_rows_of_a_commit_cost_its_own_files_however_many_the_table_has(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        commit(lake, RAW_RECORDS, [{**observation(f"n{number}", START_NS + number), "error_kind": None}])
    described, log, many = [], lake.log(RAW_RECORDS), 5

    def counted(by: str) -> Callable[..., ds.Dataset]:
        found = getattr(TableLog, by)

        def dataset(*arguments: Any) -> ds.Dataset:
            files = found(*arguments)
            described.append((by, sum(1 for _ in files.get_fragments())))
            return files

        return dataset

    for by in ("dataset", "dataset_of"):
        monkeypatch.setattr(TableLog, by, counted(by))
    for span in ((46, 48), (49, 50), (5, 8)):
        assert log.rows_of(span).num_rows == log.some_rows_of(span, many).num_rows == span[1] - span[0]
    assert described == [*[("dataset_of", 2)] * 2, *[("dataset_of", 1)] * 2, *[("dataset", 3)] * 2]
