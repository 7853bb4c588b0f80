"""The journal of candidates on the engine: which event an approach continues, over withdrawal, span and rebuilding."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from sda_platform.conjunction.identity import SLOT_NS
from sda_platform.conjunction.planning import Screening
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.conjunction.transforms import candidate_corrections
from sda_platform_tests.support.segments import START_NS

SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
FOUND = (
    "norad_id_1 bigint, norad_id_2 bigint, tca_time_ns bigint, miss_distance_km double, relative_speed_km_s double, "
    "slot_ns bigint, elements_epoch_1_ns bigint, elements_epoch_2_ns bigint"
)
NAMED = "event_id string, norad_id_1 bigint, norad_id_2 bigint, tca_time_ns bigint"
# The middle of a slot, so that a move by seconds stays in it.
TCA_NS = (START_NS // SLOT_NS + 20) * SLOT_NS + SLOT_NS // 2
Entry = tuple[str, int, str, int]


class Journal:
    """The candidates of one lake, screened again and again."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.rows: list[dict[str, Any]] = []
        self.by_message: list[tuple[str, int, int, int]] = []

    def screened(self, *tcas_ns: int, start_ns: int = START_NS, pair: tuple[int, int] = (1, 2)) -> list[Entry]:
        """Screen a day from ``start_ns``, find these approaches of a pair, and commit; the new entries."""
        journal = self.spark.createDataFrame(self.rows, CONJUNCTION_CANDIDATES.schema)
        found = self.spark.createDataFrame([(*pair, tca, 1.0, 10.0, SLOT_NS, 7, 8) for tca in tcas_ns], FOUND)
        named = self.spark.createDataFrame(self.by_message, NAMED)
        screening = Screening(start_ns, start_ns + DAY_NS, None)
        made = candidate_corrections(found, journal, named, screening, as_of_ns=len(self.rows)).collect()
        entries = sorted((row.asDict() for row in made), key=lambda r: (r["event_id"], r["sequence"], r["op"]))
        self.rows += [{**entry, "commit_sequence": len(self.rows) + 1} for entry in entries]
        return [(e["event_id"], e["sequence"], e["op"], e["tca_time_ns"]) for e in entries]


@pytest.fixture
def journal(spark: SparkSession) -> Journal:
    return Journal(spark)


def test_an_event_that_was_withdrawn_and_returns_a_second_off_keeps_its_id__E14(journal: Journal) -> None:
    ((event_id, *_),) = journal.screened(TCA_NS)
    assert journal.screened() == [(event_id, 0, "retract", TCA_NS)]
    assert journal.screened(TCA_NS + SECOND_NS) == [(event_id, 1, "insert", TCA_NS + SECOND_NS)]


def test_an_event_keeps_its_id_across_the_border_of_a_slot_and_a_new_lake_names_it_by_the_new_slot__E14(
    journal: Journal, spark: SparkSession
) -> None:
    border_ns = TCA_NS + SLOT_NS // 2
    ((event_id, *_),) = journal.screened(border_ns - SECOND_NS)
    moved = journal.screened(border_ns + SECOND_NS)
    assert [entry[:3] for entry in moved] == [(event_id, 0, "retract"), (event_id, 1, "insert")]
    ((anew, *_),) = Journal(spark).screened(border_ns + SECOND_NS)
    assert anew != event_id


def test_a_lake_that_is_built_anew_at_another_start_gives_the_same_ids__E14(
    journal: Journal, spark: SparkSession
) -> None:
    times = [TCA_NS, TCA_NS + 2 * SLOT_NS, TCA_NS + 5 * SLOT_NS]
    journal.screened(*(time - 3 * SECOND_NS for time in times))
    old = {entry[0] for entry in journal.screened(*times)}
    new = {entry[0] for entry in Journal(spark).screened(*times, start_ns=START_NS + 3600 * SECOND_NS, pair=(2, 1))}
    assert new == old


def test_an_event_that_moves_into_the_span_goes_on__E14(journal: Journal) -> None:
    """Its last TCA lay before the span, so that the screening does not cover it; its next entry has the next number."""
    ((event_id, *_),) = journal.screened(TCA_NS)
    again = journal.screened(TCA_NS + 2 * SECOND_NS, start_ns=TCA_NS + SECOND_NS)
    assert [entry[:3] for entry in again] == [(event_id, 0, "retract"), (event_id, 1, "insert")]
    assert journal.screened(start_ns=TCA_NS + 3 * SECOND_NS) == [], "what lies before the span is left alone"


def test_two_approaches_near_one_event_are_two_events__E14(journal: Journal) -> None:
    ((event_id, *_),) = journal.screened(TCA_NS)
    entries = journal.screened(TCA_NS + SECOND_NS, TCA_NS + 8 * 60 * SECOND_NS)
    inserted = {tca_ns: event for event, _, op, tca_ns in entries if op == "insert"}
    assert inserted[TCA_NS + SECOND_NS] == event_id
    assert len(set(inserted.values())) == 2


def test_a_screening_continues_the_event_that_a_message_named_first__41(journal: Journal) -> None:
    border_ns = TCA_NS + SLOT_NS // 2
    journal.by_message = [("stated", 2, 1, border_ns - SECOND_NS)]
    assert journal.screened(border_ns + SECOND_NS) == [("stated", 0, "insert", border_ns + SECOND_NS)]
