"""A transform on Spark makes the rows that it makes in this process, whatever its inputs are and however cut."""

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.lake import executors
from sda_platform.lake.arrow_frames import frame_of
from sda_platform.lake.correction_log import corrected, fact_schema
from sda_platform.lake.executors import Given, Stored, apply
from sda_platform.lake.lake import Lake
from sda_platform.lake.selections import Above, NotNull, OneOf, Selection
from sda_platform_tests.support.delta_tables import commit, row
from sda_platform_tests.support.segments import START_NS

KEY = "event_id"
TABLE = CONJUNCTION_CANDIDATES
SELECTIONS: dict[str, Selection | None] = {
    "everything": None,
    "some events": OneOf(KEY, pa.array([f"e{number}" for number in range(0, 40, 3)])),
    "no event": OneOf(KEY, pa.array([], pa.string())),
    "from a time on": Above("tca_time_ns", START_NS + 10),
    "one of two": Above("tca_time_ns", START_NS + 5, START_NS + 20) | OneOf("norad_id_1", pa.array([7, 8])),
    "both of two": OneOf("norad_id_1", pa.array(range(12))) & Above("tca_time_ns", START_NS + 5),
    "with a value": NotNull("relative_speed_km_s"),
}


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lake:
    """Forty events, committed in two parts."""
    lake = Lake(str(tmp_path), MissionClock(START_NS, 0, 0.0), lambda: spark)
    lake.reads_unverified = True
    for part in (range(25), range(25, 40)):
        facts = [fact(number, 1.0, None if number % 4 else 7.5) for number in part]
        commit(lake, TABLE, [{**each, "sequence": 0, "op": "insert"} for each in facts])
    return lake


def fact(number: int, miss_km: float, speed_km_s: float | None) -> dict[str, object]:
    pair = {"norad_id_1": number, "norad_id_2": 100 + number}
    times = {"tca_time_ns": START_NS + number}
    values = {"miss_distance_km": miss_km, "relative_speed_km_s": speed_km_s}
    return row(TABLE, event_id=f"e{number}", **pair, **times, **values)


def with_name(rows: pa.Table) -> pa.Table:
    """The key under another name, which `prepare` adds."""
    return rows.append_column("name", rows[KEY])


@pytest.mark.parametrize("where", SELECTIONS.values(), ids=SELECTIONS)
def test_both_executors_make_the_same_entries(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, where: Selection | None
) -> None:
    plan = lake.plan(TABLE)
    facts = [fact(number, 1.0 if number % 2 else 2.0, None) for number in range(0, 50, 5)]
    fresh = pa.Table.from_pylist(facts, TABLE.arrow_schema).select(fact_schema(TABLE).names)
    transform = partial(corrected, TABLE, as_of_ns=7)
    stored = Stored(TABLE, "name", where=where, prepare=with_name)
    given = with_name(fresh)

    def made(rows: Given) -> list[dict[str, object]]:
        found = apply(lake, plan, transform, stored, rows, work=0)
        entries = found if isinstance(found, pa.Table) else found.toArrow()
        assert entries.schema.names == TABLE.content_schema.names
        return list(entries.sort_by([(KEY, "ascending"), ("sequence", "ascending")]).to_pylist())

    here = made(Given(given, "name"))
    assert here
    assert made(Given(frame_of(spark, given), "name")) == here, "a frame, fetched"
    monkeypatch.setattr(executors, "MOST_IN_PROCESS", -1)
    assert made(Given(given, "name")) == here
    assert made(Given(frame_of(spark, given).repartition(5), "name")) == here


def test_some_columns_are_read_alike(lake: Lake) -> None:
    plan = lake.plan(TABLE)
    columns = [KEY, "norad_id_1"]
    stored = Stored(TABLE, KEY, columns, Above("norad_id_1", 30))
    here, there = stored.arrow(lake, plan), stored.frame(lake, plan).toArrow()
    assert here.column_names == there.column_names == columns
    assert here.sort_by(KEY).to_pylist() == there.sort_by(KEY).to_pylist()
    assert here.num_rows == 9
