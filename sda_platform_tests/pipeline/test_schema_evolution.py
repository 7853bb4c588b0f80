"""A lake that an earlier version of the platform wrote continues: columns that came since are added, and old rows have
none of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sda_platform.catalog.error_history import rated
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.catalog.transforms import improvements
from sda_platform.clock import MissionClock
from sda_platform.dead_letters.rejected import read_dead_letters
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.contract import schema_differences
from sda_platform.lake.errors import SchemaMismatch
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform_tests.support.delta_tables import commit, rows_of

VERSION_1 = ("error_class", "source_id", "segment_format", "rejected_time_ns", "retry_count")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark, "run")
    lake.reads_unverified = True
    return lake


def older(table: Table, *without: str) -> Table:
    """``table`` as it was before it had these columns."""
    before = replace(table)
    before.__dict__["columns"] = tuple(c for c in table.columns if c.name not in without)
    return before


def planned(lake: Lake, table: Table) -> Plan:
    return lake.plan_landing(table, lake.head(table), [SegmentRef("radar", "next", "0" * 64, 1, 1)])


@pytest.fixture(params=["by the engine", "in files"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How Arrow rows reach the table."""
    if request.param == "in files":
        monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", 0)


@pytest.mark.usefixtures("way")
def test_arrow_rows_add_columns_and_old_rows_have_none_of_them(lake: Lake) -> None:
    commit(lake, older(OBSERVATIONS, "reprocess_count"), [{"observation_id": "a"}])
    rows = rows_of(OBSERVATIONS, [{"observation_id": "b", "reprocess_count": 2}])

    lake.append(planned(lake, OBSERVATIONS), rows)

    log = lake.log(OBSERVATIONS)
    found = log.rows(["observation_id", "reprocess_count"]).sort_by("observation_id")
    assert found.to_pylist() == [
        {"observation_id": "a", "reprocess_count": None},
        {"observation_id": "b", "reprocess_count": 2},
    ]
    stored = lake.session.read.format("delta").load(log.uri).select(found.column_names)
    assert stored.toArrow().sort_by("observation_id").equals(found)
    described = {column.name: column.description for column in OBSERVATIONS.columns}
    assert stored.schema["reprocess_count"].metadata["comment"] == described["reprocess_count"]


def test_dead_letters_of_version_1_stay_readable_next_to_those_of_version_2__DP5_Q3(lake: Lake) -> None:
    facts = {"feed": "radar", "error_kind": "bad_length", "payload": b"x"}
    commit(lake, older(DEAD_LETTERS, *VERSION_1), [{**facts, "schema_version": 1, "segment_sha256": "first"}])
    assert [c.name for c in lake.log(DEAD_LETTERS).absent_columns()] == list(VERSION_1)
    newer = {"error_class": "permanent", "retry_count": 2, "rejected_time_ns": 7, "source_id": "radar-7"}
    rows = rows_of(DEAD_LETTERS, [{**facts, **newer, "schema_version": 2, "segment_sha256": "second"}])
    plan = planned(lake, DEAD_LETTERS)

    lake.append(plan, lake.frame(DEAD_LETTERS, rows))

    log = lake.log(DEAD_LETTERS)
    assert (log.head().sequence, log.absent_columns()) == (2, [])
    assert schema_differences(DEAD_LETTERS, log.rows().schema) == []
    (old, new), unknown = read_dead_letters(log.rows())
    assert (old.segment_sha256, old.retry_count, old.error_class, unknown) == ("first", 0, "permanent", 0)
    assert (new.segment_sha256, new.retry_count, new.source) == ("second", 2, "radar-7")


def test_a_table_that_has_not_got_a_column_yet_is_read_as_if_it_were_null(lake: Lake) -> None:
    commit(lake, older(OBSERVATIONS, "reprocess_count"), [{"observation_id": "a"}])
    plan = lake.plan(replace(DEAD_LETTERS, consumes=(OBSERVATIONS,), reads=()))
    assert [r["reprocess_count"] for r in lake.window(plan, OBSERVATIONS).collect()] == [None]
    assert lake.new_rows(plan, OBSERVATIONS, ["reprocess_count"]).column(0).to_pylist() == [None]


def test_an_overwrite_adds_columns_too(lake: Lake) -> None:
    commit(lake, older(ORBITAL_CATALOG, "object_name"), [{"norad_id": n, "epoch_time_ns": 1} for n in (1, 3)])
    fresh = rows_of(ELEMENT_SETS, [{"norad_id": n, "epoch_time_ns": 5, "object_name": "us"} for n in (1, 2)])
    plan = planned(lake, ORBITAL_CATALOG)
    known = lake.current_rows(plan)
    changed = improvements(fresh, known, as_of_ns=plan.as_of_ns)

    lake.replace(plan, rated(changed, known.slice(0, 0), known.slice(0, 0)))

    stored = lake.log(ORBITAL_CATALOG).rows(["norad_id", "object_name", COMMIT_SEQUENCE]).sort_by("norad_id")
    names, sequences = stored.column("object_name").to_pylist(), stored.column(COMMIT_SEQUENCE).to_pylist()
    assert (names, sequences) == (["us", "us", None], [2, 2, 1])


def test_a_column_that_must_not_be_null_cannot_come_late(lake: Lake) -> None:
    commit(lake, older(DEAD_LETTERS, "stage"), [{"feed": "radar"}])
    rows = lake.frame(DEAD_LETTERS, rows_of(DEAD_LETTERS, [{"feed": "radar"}]))
    with pytest.raises(SchemaMismatch, match="its rows so far have no stage, which must not be null"):
        lake.append(planned(lake, DEAD_LETTERS), rows)
    assert lake.head(DEAD_LETTERS).sequence == 1
