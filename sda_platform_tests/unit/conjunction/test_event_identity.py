"""The correction log of candidates: which event an approach continues, over withdrawal, span and rebuilding."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.conjunction.identity import SLOT_NS
from sda_platform.conjunction.planning import Screening
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.conjunction.transforms import REVIEWED_BEFORE_NS, candidate_corrections
from sda_platform_tests.support.segments import START_NS

SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
FOUND = (
    "norad_id_1", "norad_id_2", "tca_time_ns", "miss_distance_km", "relative_speed_km_s", "slot_ns",
    "elements_epoch_1_ns", "elements_epoch_2_ns",
)  # fmt: skip
DOUBLES = ("miss_distance_km", "relative_speed_km_s")
FOUND_SCHEMA = pa.schema([(name, pa.float64() if name in DOUBLES else pa.int64()) for name in FOUND])
NAMED_SCHEMA = pa.schema([("event_id", pa.string()), *((name, pa.int64()) for name in FOUND[:3])])
# The middle of a slot, so that a move by seconds stays in it.
TCA_NS = (START_NS // SLOT_NS + 20) * SLOT_NS + SLOT_NS // 2
Entry = tuple[str, int, str, int]


class Candidates:
    """The candidates of one lake, screened again and again."""

    def __init__(self) -> None:
        self.entries = CONJUNCTION_CANDIDATES.content_schema.empty_table()
        self.by_message: list[dict[str, Any]] = []

    def screened(self, *tcas_ns: int, start_ns: int = START_NS, pair: tuple[int, int] = (1, 2)) -> list[Entry]:
        """Screen a day from ``start_ns``, find these approaches of a pair, and commit; the new entries."""
        rows = [dict(zip(FOUND, (*pair, tca, 1.0, 10.0, SLOT_NS, 7, 8), strict=True)) for tca in tcas_ns]
        made = candidate_corrections(
            pa.Table.from_pylist(rows, FOUND_SCHEMA),
            self.entries.filter(pc.greater(self.entries["tca_time_ns"], start_ns - REVIEWED_BEFORE_NS)),
            pa.Table.from_pylist(self.by_message, NAMED_SCHEMA),
            screening=Screening(start_ns, start_ns + DAY_NS, None),
            as_of_ns=self.entries.num_rows,
        )
        self.entries = pa.concat_tables([self.entries, made])
        return [(e["event_id"], e["sequence"], e["op"], e["tca_time_ns"]) for e in made.to_pylist()]


@pytest.fixture
def candidates() -> Candidates:
    return Candidates()


def test_an_event_that_was_withdrawn_and_returns_a_second_off_keeps_its_id__E14(candidates: Candidates) -> None:
    ((event_id, *_),) = candidates.screened(TCA_NS)
    assert candidates.screened() == [(event_id, 0, "retract", TCA_NS)]
    assert candidates.screened(TCA_NS + SECOND_NS) == [(event_id, 1, "insert", TCA_NS + SECOND_NS)]


def test_an_event_keeps_its_id_across_the_border_of_a_slot_and_a_new_lake_names_it_by_the_new_slot__E14(
    candidates: Candidates,
) -> None:
    border_ns = TCA_NS + SLOT_NS // 2
    ((event_id, *_),) = candidates.screened(border_ns - SECOND_NS)
    moved = candidates.screened(border_ns + SECOND_NS)
    assert [entry[:3] for entry in moved] == [(event_id, 0, "retract"), (event_id, 1, "insert")]
    ((anew, *_),) = Candidates().screened(border_ns + SECOND_NS)
    assert anew != event_id


def test_a_lake_that_is_built_anew_at_another_start_gives_the_same_ids__E14(candidates: Candidates) -> None:
    times = [TCA_NS, TCA_NS + 2 * SLOT_NS, TCA_NS + 5 * SLOT_NS]
    candidates.screened(*(time - 3 * SECOND_NS for time in times))
    old = {entry[0] for entry in candidates.screened(*times)}
    new = {entry[0] for entry in Candidates().screened(*times, start_ns=START_NS + 3600 * SECOND_NS, pair=(2, 1))}
    assert new == old


def test_an_event_that_moves_into_the_span_goes_on__E14(candidates: Candidates) -> None:
    """Its last TCA lay before the span, so that the screening does not cover it; its next entry has the next number."""
    ((event_id, *_),) = candidates.screened(TCA_NS)
    again = candidates.screened(TCA_NS + 2 * SECOND_NS, start_ns=TCA_NS + SECOND_NS)
    assert [entry[:3] for entry in again] == [(event_id, 0, "retract"), (event_id, 1, "insert")]
    assert candidates.screened(start_ns=TCA_NS + 3 * SECOND_NS) == [], "what lies before the span is left alone"


def test_two_approaches_near_one_event_are_two_events__E14(candidates: Candidates) -> None:
    ((event_id, *_),) = candidates.screened(TCA_NS)
    entries = candidates.screened(TCA_NS + SECOND_NS, TCA_NS + 8 * 60 * SECOND_NS)
    inserted = {tca_ns: event for event, _, op, tca_ns in entries if op == "insert"}
    assert inserted[TCA_NS + SECOND_NS] == event_id
    assert len(set(inserted.values())) == 2


def test_a_screening_continues_the_event_that_a_message_named_first__41(candidates: Candidates) -> None:
    border_ns = TCA_NS + SLOT_NS // 2
    candidates.by_message = [
        {"event_id": "stated", "norad_id_1": 2, "norad_id_2": 1, "tca_time_ns": border_ns - SECOND_NS}
    ]
    assert candidates.screened(border_ns + SECOND_NS) == [("stated", 0, "insert", border_ns + SECOND_NS)]
