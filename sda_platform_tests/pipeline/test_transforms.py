"""Transforms on the real engine: what they say does not depend on files, partitions or arrival."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.dead_letters.rejected import rejected_records
from sda_platform.ingest.in_process import first_deliveries
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.ingest.transforms import new_observations
from sda_platform.lake.correction_log import content, corrections, current_rows
from sda_platform_tests.support.delta_tables import rows_of

CONTENT = ["norad_id_1", "miss_distance_km"]
COLUMNS = "event_id string, sequence bigint, op string, as_of_ns bigint, norad_id_1 bigint, miss_distance_km double"


class Journal:
    """A journal of events that is corrected again and again."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.entries: list[tuple[object, ...]] = []

    def now(self, **facts: float | None) -> list[tuple[object, ...]]:
        """Correct the journal so that it states ``facts`` (event: miss distance); returns the new entries."""
        journal = self.spark.createDataFrame(self.entries, COLUMNS)
        rows = [(event, 1, miss) for event, miss in facts.items()]
        fresh = self.spark.createDataFrame(rows, "event_id string, norad_id_1 bigint, miss_distance_km double")
        made = corrections(journal, fresh, key="event_id", content=CONTENT, as_of_ns=len(self.entries))
        new = sorted(tuple(r) for r in made.select("event_id", "sequence", "op", "as_of_ns", *CONTENT).collect())
        self.entries += new
        return [(event, sequence, op, miss) for event, sequence, op, _, _, miss in new]

    def current_rows(self) -> dict[str, float | None]:
        journal = self.spark.createDataFrame(self.entries, COLUMNS)
        return {r["event_id"]: r["miss_distance_km"] for r in current_rows(journal, "event_id").collect()}


@pytest.fixture
def journal(spark: SparkSession) -> Journal:
    return Journal(spark)


def test_a_journal_inserts_corrects_withdraws_and_takes_back__DP3_F7_I17(journal: Journal) -> None:
    assert journal.now(x=1.0, y=2.0) == [("x", 0, "insert", 1.0), ("y", 0, "insert", 2.0)]
    assert journal.now(x=1.0, y=2.5) == [("y", 0, "retract", 2.0), ("y", 1, "insert", 2.5)]
    assert journal.now(y=2.5) == [("x", 0, "retract", 1.0)]
    assert journal.current_rows() == {"y": 2.5}
    assert journal.now(x=1.0, y=2.5) == [("x", 1, "insert", 1.0)], "it returns with the next sequence"
    assert journal.now(x=3.0, y=2.5) == [("x", 1, "retract", 1.0), ("x", 2, "insert", 3.0)]
    assert journal.current_rows() == {"x": 3.0, "y": 2.5}


def test_equal_facts_say_nothing_even_where_they_are_absent_or_not_a_number(journal: Journal) -> None:
    facts = {"x": 1.0, "y": None, "z": float("nan")}
    assert len(journal.now(**facts)) == 3
    assert journal.now(**facts) == []


def test_nothing_known_and_nothing_new_is_no_entry(journal: Journal) -> None:
    assert journal.now() == []


def raw(spark: SparkSession, *rows: tuple[str, str, int, str | None]) -> DataFrame:
    """Raw records (observation, segment, record, error)."""
    facts = (
        {"observation_id": o, "segment_sha256": s, "record_number": n, "error_kind": e, "error": e, "sensor_time_ns": n}
        for o, s, n, e in rows
    )
    return spark.createDataFrame(rows_of(RAW_RECORDS, facts))


def test_an_observation_is_kept_once_however_often_in_whatever_order_it_came(spark: SparkSession) -> None:
    rows = [
        ("a", "s2", 0, None),
        ("a", "s1", 7, None),
        ("b", "s1", 1, None),
        ("a", "s1", 3, None),
        ("c", "s1", 2, "bad"),
    ]
    known = raw(spark, ("b", "s0", 0, None))
    ids = known.toArrow().column("observation_id")
    found = []
    for order, partitions in ((rows, 1), (rows[::-1], 3), (rows[2:] + rows[:2], 5)):
        kept = new_observations(raw(spark, *order).repartition(partitions), known)
        found.append(kept.toArrow())
        found.append(first_deliveries(raw(spark, *order).toArrow(), ids))
    facts = ["observation_id", "segment_sha256", "record_number"]
    assert [[tuple(row.values()) for row in each.select(facts).to_pylist()] for each in found] == [[("a", "s1", 3)]] * 6
    columns = [c.name for c in OBSERVATIONS.columns if c.name != "commit_sequence"]
    assert [each.column_names for each in found] == [columns] * 6


def test_every_error_and_nothing_else_is_a_dead_letter(spark: SparkSession) -> None:
    rows = raw(spark, ("a", "s1", 0, None), ("b", "s1", 1, "bad_json"), ("c", "s1", 2, "nobody's kind"))
    letters = rejected_records(rows, "raw_records", 7).sort("record_number").collect()
    columns = (
        "schema_version",
        "stage",
        "record_number",
        "error_kind",
        "error_class",
        "rejected_time_ns",
        "retry_count",
    )
    assert [tuple(letter[name] for name in columns) for letter in letters] == [
        (2, "raw_records", 1, "bad_json", "permanent", 7, 0),
        (2, "raw_records", 2, "nobody's kind", "permanent", 7, 0),
    ]


def test_a_candidates_content_is_compared_whole() -> None:
    said = content(CONJUNCTION_CANDIDATES)
    assert said == [
        "norad_id_1", "norad_id_2", "tca_time_ns", "miss_distance_km", "relative_speed_km_s", "elements_epoch_1_ns",
        "elements_epoch_2_ns",
    ]  # fmt: skip
