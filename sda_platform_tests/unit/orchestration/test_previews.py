"""What a person reads of a table in the UI: previews that are shown in place, rules in signs."""

import pyarrow as pa
import pytest

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.table import Table
from sda_platform.orchestration.materialization import PREVIEW_ROWS, column_schema, markdown_table
from sda_platform.registry import TABLES

SHOWN_IN_PLACE = 1000  # characters; the UI puts a link instead of longer Markdown
EVENT = "3f2a6c1e-9a7b-5c7d-8e21-0c4b7a9d1e55"


def long_list(element: pa.DataType) -> list[float] | list[int] | list[str]:
    """More elements of this type than a preview shows."""
    if pa.types.is_floating(element):
        return [1.5] * 21
    return [1_730_419_200_000_000_000] * 21 if pa.types.is_integer(element) else [EVENT] * 9


def full_rows(table: Table) -> pa.Table:
    """Five rows with a long value in every column: of a choice the longest."""
    values = {
        "string": "x" * 60,
        "int64": 1_730_419_200_000_000_000,
        "int32": 1,
        "double": -1.234567890123e-5,
        "bool": True,
    }
    some_bytes = bytes(range(64))
    row = {
        f.name: values.get(str(f.type), some_bytes if pa.types.is_binary(f.type) else None) for f in table.arrow_schema
    }
    choices = {
        c.name: rule.statistics["allowed_values"] for c in table.columns for rule in c.rules if rule.name == "isin"
    }
    row |= {name: max(allowed, key=lambda each: len(str(each))) for name, allowed in choices.items()}
    lists = {f.name: long_list(f.type.value_type) for f in table.arrow_schema if pa.types.is_list(f.type)}
    return pa.Table.from_pylist([{**row, **lists}] * PREVIEW_ROWS, schema=table.arrow_schema)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_preview_of_any_table_shows_at_least_a_row_and_every_telling_column(table: Table) -> None:
    header, rule, *rows = markdown_table(full_rows(table)).splitlines()
    assert 1 <= len(rows) <= PREVIEW_ROWS
    told = {column.name for column in table.columns} - {"commit_sequence", "as_of_ns"}
    assert {line.count("|") for line in (header, rule, *rows)} == {len(told) + 1}


def test_a_preview_of_alerts_stays_short_enough_to_be_shown_in_place() -> None:
    assert len(markdown_table(full_rows(CONJUNCTION_ALERTS))) < SHOWN_IN_PLACE


def test_a_preview_speaks_to_a_person() -> None:
    rows = pa.table(
        {
            "commit_sequence": [4],
            "as_of_ns": [1_730_419_200_000_000_000],
            "event_id": [EVENT],
            "tca_time_ns": [1_730_419_200_123_000_000],
            "object_name_2": ["COSMOS|2251\nDEB"],
            "collision_probability": [1.23456789e-4],
            "track_id_2": pa.array([None], pa.string()),
            "observation_ids": [[EVENT, EVENT]],
        }
    )
    assert markdown_table(rows).splitlines() == [
        "| event_id | tca_time_ns | object_name_2 | collision_probability | observation_ids |",
        "|---|---|---|---|---|",
        "| 3f2a6c1e | 2024-11-01 00:00:00.123Z | COSMOS\\|2251␊DEB | 0.000123457 | 2 values |",
    ]


def test_a_columns_rules_are_written_in_signs() -> None:
    rules = {column.name: column.constraints.other for column in column_schema(CONJUNCTION_ALERTS).columns}
    assert rules["collision_probability"] == ["≥ 0", "≤ 1"]
    assert rules["risk"] == ["red or yellow"]
    assert rules["relative_speed_km_s"] == ["≥ 0", "< 20"]
