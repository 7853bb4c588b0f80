"""The planner passes over no file with a matching row."""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.history.pruning import ROWS, Combination, Condition, Predicate, all_of, may_match
from sda_platform.history.query_conditions import necessary_conditions
from sda_platform.history.query_text import parsed_query
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.unit.history.lakes import TABLES

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
    assert conditions_in(sql) == {
        "observations": "((sensor_time_ns >= 5 and (record_number = 1 or record_number in [2, 3]) and "
        "(received_time_ns >= 1 and received_time_ns <= 2)))",
        "tracks": "(and)",
    }
    assert conditions_in("FROM active.conjunction_alerts") == {}


def conditions_in(sql: str) -> dict[str, str]:
    with duckdb.connect() as connection:
        found = necessary_conditions(parsed_query(connection, sql), TABLES)
    return {name: str(predicate) for name, predicate in found.items()}


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
