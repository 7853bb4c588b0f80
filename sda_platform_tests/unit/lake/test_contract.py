"""The contract check names the column, the rule, how many rows break it, and which."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.contract import schema_differences, validated, violations
from sda_platform.lake.quick_contract import keeps_contract
from sda_platform.lake.table import Column, Table
from sda_platform.registry import TABLES
from sda_platform_tests.support.delta_tables import rows_of


def told(*rows: dict[str, object]) -> list[str]:
    good = {"observation_id": "good", "elevation_rad": 0.5}
    return [str(v) for v in violations(OBSERVATIONS, rows_of(OBSERVATIONS, [good, *rows]))]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"elevation_rad": 1.6}, "elevation_rad: 1 rows break less_than_or_equal_to(1.5707963267948966)"),
        ({"range_m": 0.0}, "range_m: 1 rows break greater_than(0)"),
        ({"range_m": 1e9}, "range_m: 1 rows break less_than(1000000000.0)"),
        ({"source_kind": "lidar"}, "source_kind: 1 rows break isin(['isl', 'optical', 'radar'])"),
        ({"record_number": -2}, "record_number: 1 rows break greater_than_or_equal_to(-1)"),
        ({"segment_name": None}, "segment_name: 1 rows break not null"),
    ],
)
def test_a_broken_rule_names_column_rule_and_row(row: dict[str, object], problem: str) -> None:
    (found,) = told({"observation_id": "bad", **row})
    column = problem.split(":", 1)[0]
    assert found.startswith(problem.split("isin")[0])
    assert found.endswith(f"such as {{'observation_id': 'bad', '{column}': {row[column]!r}}}")


def test_values_on_the_bounds_and_absent_values_keep_the_contract() -> None:
    assert told({"elevation_rad": None, "record_number": -1}, {"source_kind": "isl", "range_m": 1e-9}) == []


def test_not_a_number_is_outside_every_range() -> None:
    (found,) = {v.split(" break")[0] for v in told({"range_m": float("nan")})}
    assert found == "range_m: 1 rows"


def test_many_broken_rows_are_counted_and_a_few_are_shown() -> None:
    (found,) = told(*({"observation_id": f"bad-{n}", "range_m": -1.0} for n in range(10)))
    assert found.startswith("range_m: 10 rows break")
    assert found.count("observation_id") == 3


def test_a_missing_a_surplus_and_a_changed_column_are_named() -> None:
    schema = ALERT_DELIVERIES.arrow_schema
    assert schema_differences(ALERT_DELIVERIES, schema) == []
    changed = schema.remove(schema.get_field_index("outcome")).append(pa.field("extra", pa.int64()))
    index = changed.get_field_index("sequence")
    changed = changed.set(index, pa.field("sequence", pa.string()))
    assert schema_differences(ALERT_DELIVERIES, changed) == [
        "sequence: declared int64, stored string",
        "outcome: declared string, stored nothing",
        "extra: declared nothing, stored int64",
    ]


RULED = [(table, column) for table in TABLES for column in table.columns if column.rules or not column.nullable]


def values_of(column: Column) -> st.SearchStrategy[Any]:
    """Values about the bounds of the column's rules, and others that no rule allows."""
    facts = {rule.name: rule.statistics for rule in column.rules}
    bounds = [facts[name][bound] for name in facts for bound in ("min_value", "max_value") if bound in facts[name]]
    kind = column.data_type.simpleString()
    if kind == "double":
        near = [
            float(x) for bound in (*bounds, 0) for x in (bound, math.nextafter(bound, -9e9), math.nextafter(bound, 9e9))
        ]
        return st.sampled_from([*near, math.nan, math.inf, -math.inf, None])
    if kind in ("bigint", "int"):
        return st.sampled_from([*(b + d for b in (*bounds, 0) for d in (-1, 0, 1)), None])
    if kind == "string":
        return st.sampled_from([*facts.get("isin", {}).get("allowed_values", ()), "another", "", None])
    if kind == "array<double>":
        element = st.sampled_from([0.0, 1.0, -1.0, 1e-9, math.nan, math.inf])
        size = facts.get("covariance", {}).get("size", 0)
        length = facts.get("numbers", {}).get("length", size * (size + 1) // 2)
        whole = st.sampled_from([[x] * (length * n) for x in (0.0, 1.0, -1.0) for n in (1, 2)])
        return st.one_of(
            st.none(), whole, st.lists(element, max_size=3), st.lists(element, min_size=length, max_size=length)
        )
    return st.none() if kind != "array<string>" else st.sampled_from([None, [], ["text"]])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(RULED).flatmap(lambda pair: st.tuples(st.just(pair), st.lists(values_of(pair[1]), max_size=4))))
def test_the_quick_check_decides_as_pandera_does(drawn: tuple[tuple[Table, Column], list[Any]]) -> None:
    (table, column), values = drawn
    rows = pa.table({column.name: pa.array(values, table.arrow_schema.field(column.name).type)})
    assert keeps_contract(table, rows) is not bool(validated(table, rows))


# A whole segment has record number -1. Sources state the others, and any number is kept as it is.
_ANY_NUMBER = {"record_number", "element_set_number", "revolution_at_epoch", "source_priority"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_counts_and_numbers_are_never_negative(table: Table) -> None:
    counted = [
        column for column in table.columns
        if isinstance(column.data_type, T.IntegralType) and not column.name.endswith("_ns")
    ]  # fmt: skip
    for column in counted:
        negative = pa.table({column.name: pa.array([-1], table.arrow_schema.field(column.name).type)})
        assert bool(validated(table, negative)) != (column.name in _ANY_NUMBER), column.name
