"""The planner passes over no file with a matching row, and the report shows how much of a table its queries read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.archive.layout_report import JUDGED_FROM_FILES, LayoutJudgement, Scan, judge_layouts
from sda_platform.archive.pruning import ROWS, Combination, Condition, Predicate, all_of, may_match, predicate_of
from sda_platform.archive.query_conditions import conditions_in
from sda_platform.archive.query_log import MOST_RECORDED, LoggedQuery, QueryLog
from sda_platform.cli.main import main
from sda_platform.definitions import build_defs
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.unit.archive.lakes import TABLES

MB = 2**20
VALUES = st.one_of(st.none(), st.integers(-3, 3))
FILES = st.lists(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4), min_size=1, max_size=5)
CONDITIONS = st.one_of(
    st.builds(Condition, st.sampled_from("ab"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(-4, 4)),
    st.builds(Condition, st.sampled_from("ab"), st.just("in"), st.lists(st.integers(-4, 4), min_size=1, max_size=3)),
    st.builds(Condition, st.sampled_from("ab"), st.sampled_from(["is null", "is not null"])),
)
PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    CONDITIONS,
    lambda parts: st.builds(Combination, st.sampled_from(["and", "or"]), st.lists(parts, max_size=3).map(tuple)),
    max_leaves=5,
)


def bounds_of(files: Sequence[Sequence[tuple[int | None, int | None]]]) -> pa.Table:
    """What a log would hold of these files."""
    units = []
    for rows in files:
        unit: dict[str, Any] = {ROWS: len(rows)}
        for name, column in zip("ab", zip(*rows, strict=True), strict=True):
            present = [value for value in column if value is not None]
            unit |= {f"null_count.{name}": len(column) - len(present)}
            unit |= {f"min.{name}": min(present, default=None), f"max.{name}": max(present, default=None)}
        units.append(unit)
    schema = pa.schema([(name, pa.int64()) for name in units[0]])
    return pa.Table.from_pylist(units, schema)


def as_sql(predicate: Predicate) -> str:
    if isinstance(predicate, Condition):
        value = f"({', '.join(map(str, predicate.value))})" if predicate.op == "in" else predicate.value
        return f"{predicate.column} {predicate.op}" + ("" if predicate.op.startswith("is") else f" {value}")
    parts = f" {predicate.op} ".join(f"({as_sql(part)})" for part in predicate.parts)
    return parts or str(predicate.op == "and").lower()


@given(FILES, PREDICATES)
@settings(max_examples=100, deadline=None)
def test_no_file_with_a_matching_row_is_passed_over__DL3_I1_DL3_I2_DL3_I3(
    files: list[list[tuple[int | None, int | None]]], predicate: Predicate
) -> None:
    rows = pa.table(
        {"file": [n for n, f in enumerate(files) for _ in f], **{
            name: pa.array([row[n] for f in files for row in f], pa.int64()) for n, name in enumerate("ab")
        }}
    )  # fmt: skip
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        found = connection.execute(f"SELECT DISTINCT file FROM rows WHERE {as_sql(predicate)}").fetchall()
    kept = may_match(bounds_of(files), predicate)
    assert {number for (number,) in found} <= set(np.flatnonzero(kept).tolist())
    assert predicate_of(predicate.to_dict()) == predicate


def test_bounds_pass_over_what_cannot_match__DL3_I2() -> None:
    bounds = bounds_of([[(1, 5), (2, 5)], [(3, None), (4, None)]])

    def kept(*conditions: Condition) -> list[bool]:
        return [bool(each) for each in may_match(bounds, all_of(*conditions))]

    assert kept(Condition("a", "<", 3)) == [True, False]
    assert kept(Condition("a", "in", [0, 4])) == [False, True]
    assert kept(Condition("b", "!=", 5)) == [False, False], "nulls are not other than five"
    assert kept(Condition("b", "is null")) == [False, True]
    assert kept(Condition("a", ">=", 2), Condition("b", "=", 5)) == [True, False]
    assert kept(Condition("unknown", "=", 5)) == [True, True]
    assert kept(Condition("a", "=", "text")) == [True, True]


def test_floats_are_never_passed_over_because_their_bounds_leave_out_nan__DL3_I1() -> None:
    bounds = pa.table({"min.x": [1.0], "max.x": [2.0], "null_count.x": [0], ROWS: [3]})
    assert may_match(bounds, Condition("x", ">", 5.0)).all()


def test_the_conditions_of_a_query_are_read_from_its_text() -> None:
    sql = """
        WITH late AS (SELECT * FROM observations o WHERE 5 <= o.sensor_time_ns AND abs(range_m) > 3
                      AND (record_number = 1 OR record_number IN (2, 3)) AND received_time_ns BETWEEN 1 AND 2)
        SELECT count(*) FROM late WHERE EXISTS (SELECT 1 FROM tracks WHERE norad_id = 7 OR abs(norad_id) = 8)"""
    assert {each.table: str(each.predicate) for each in conditions_in(sql, TABLES)} == {
        "observations": "(sensor_time_ns >= 5 and (record_number = 1 or record_number in [2, 3]) and "
        "(received_time_ns >= 1 and received_time_ns <= 2))",
        "tracks": "and",
    }
    assert conditions_in("FROM active.conjunction_alerts", TABLES) == []
    assert conditions_in("no SQL", TABLES) == []


def test_recorded_queries_are_bounded_and_survive_a_damaged_line(tmp_path: Path) -> None:
    log, query = QueryLog(str(tmp_path)), LoggedQuery("tracks", Condition("norad_id", "=", 7), "recorded")
    log.record([query] * MOST_RECORDED)
    log.record([LoggedQuery("tracks", all_of(), "recorded")])
    assert (len(log.read()), log.read()[-1].predicate) == (MOST_RECORDED, all_of())
    (tmp_path / "_queries.jsonl").write_text('{"table": "tr\n[]\n{"table": "tracks", "predicate": {"op": "like"}}\n')
    assert log.read() == []


def judged(lake: Lake) -> LayoutJudgement:
    (found,) = judge_layouts(lake, [OBSERVATIONS])
    return found


def write(lake: Lake, times_ns: Sequence[Sequence[int]]) -> None:
    """One file a commit, with observations at these times."""
    for number, times in enumerate(times_ns):
        rows = [{"observation_id": f"{number}-{n}", "sensor_time_ns": t} for n, t in enumerate(times)]
        commit(lake, OBSERVATIONS, rows)


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Twelve files, each of its own stretch of time."""
    lake = lake_at(tmp_path_factory.mktemp("lake") / "lake #1 é")
    write(lake, [range(100 * n, 100 * n + 100, 9) for n in range(12)])
    return lake


def test_files_in_order_of_time_are_passed_over__DL3_A8_DL3_F6(ordered: Lake) -> None:
    found = judged(ordered)
    assert (len(found.sizes), len(found.scans), found.problems) == (12, 100, [])
    assert found.mean_ratio < 0.3
    assert found.row_group_ratio == pytest.approx(found.mean_ratio), "each file has one row group"
    assert {(scan.row_groups_total, scan.files_total) for scan in found.scans} == {(12, 12)}


def test_files_that_all_span_all_times_are_red__DL3_I11(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    write(lake, [[0, 1000 + n] for n in range(JUDGED_FROM_FILES)])
    assert judged(lake).problems == ["observations: queries keep 100% of 10 files on average"]


def test_the_plan_keeps_every_file_that_a_query_finds_rows_in__DL3_I1(ordered: Lake) -> None:
    log = ordered.log(OBSERVATIONS)
    bounds, rows = log.file_bounds(), log.rows([COMMIT_SEQUENCE, "sensor_time_ns"])
    sequences = np.asarray(bounds.column(f"min.{COMMIT_SEQUENCE}"))
    for begin in range(-50, 1300, 50):
        query = all_of(Condition("sensor_time_ns", ">=", begin), Condition("sensor_time_ns", "<", begin + 60))
        times = rows.column("sensor_time_ns")
        found = rows.filter(pc.and_(pc.greater_equal(times, begin), pc.less(times, begin + 60)))
        needed = set(found.column(COMMIT_SEQUENCE).to_pylist())
        assert needed <= set(sequences[may_match(bounds, query)].tolist())
        assert len(needed) >= may_match(bounds, query).sum() - 1


def test_recorded_queries_come_first(ordered: Lake) -> None:
    first = LoggedQuery(OBSERVATIONS.name, Condition("sensor_time_ns", "<", 100), "recorded")
    QueryLog(ordered.uri).record([first, LoggedQuery("tracks", all_of(), "recorded")])
    found = judged(ordered)
    assert (found.recorded, len(found.scans), found.scans[0].files_kept) == (1, 100, 1)


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ([100 * MB] * 3 + [MB] * 50, ""),
        ([MB] * 51, "t: 51 files below 64 MB, together 53 MB"),
        ([60 * MB] * 9, "t: 9 files below 64 MB, together 566 MB"),
        ([600 * MB], "t: 1 files above 512 MB"),
        ([3], ""),
    ],
)
def test_sizes_are_healthy_and_small_files_fit_in_one_file(sizes: list[int], problem: str) -> None:
    found = LayoutJudgement("t", sizes, [Scan(LoggedQuery("t", all_of(), "generated"), len(sizes), 0, None, None)])
    assert "; ".join(found.problems) == problem


def test_the_report_is_an_asset_with_a_check_of_each_rule(ordered: Lake) -> None:
    settings = Settings(home=Path(ordered.uri).parent / "home", lake=ordered.uri)
    job = build_defs(settings=settings).resolve_job_def("archive_reports")
    chosen = [dg.AssetKey(["archive", "layout_report"])]
    result = job.execute_in_process(instance=dg.DagsterInstance.ephemeral(), asset_selection=chosen)
    checks = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert checks == {"queries_pass_over_files": True, "file_sizes_are_healthy": True}
    (made,) = result.asset_materializations_for_node("archive__layout_report")
    assert "| observations | 12 | 0.1 | 100 | " in str(made.metadata["tables"].value)


def test_a_query_of_a_person_is_recorded_and_planned(ordered: Lake) -> None:
    runner, options = CliRunner(), {"SDA_LAKE": ordered.uri, "SDA_HOME": f"{ordered.uri}/../home"}
    before = len(QueryLog(ordered.uri).read())
    sql = "SELECT count(*) AS n FROM observations WHERE sensor_time_ns BETWEEN 0 AND 99"
    assert runner.invoke(main, ["query", sql], env=options).exit_code == 0
    (newest,) = QueryLog(ordered.uri).read()[before:]
    assert str(newest.predicate) == "(sensor_time_ns >= 0 and sensor_time_ns <= 99)"
    (shown,) = json.loads(
        runner.invoke(main, ["layout", "observations", "--queries", str(before + 1), "--json"], env=options).stdout
    )
    of_this_table = sum(each.table == OBSERVATIONS.name for each in QueryLog(ordered.uri).read())
    assert (shown["files"], shown["recorded_queries"], shown["problems"]) == (12, of_this_table, [])
    assert "row groups kept" in runner.invoke(main, ["layout", "all", "--queries", "9"], env=options).stdout
