"""Correction logs on Arrow rows: the entries that change what holds, and what holds after them."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.correction_log import INSERT, RETRACT, corrected, current_rows, fact_schema, last_rows
from sda_platform_tests.support.delta_tables import row

KEY = "event_id"
NOTHING = CONJUNCTION_CANDIDATES.content_schema.empty_table()
NAN = float("nan")
States = dict[str, float]


def facts(misses_km: States) -> pa.Table:
    schema = fact_schema(CONJUNCTION_CANDIDATES)
    rows = [row(CONJUNCTION_CANDIDATES, event_id=event, miss_distance_km=miss) for event, miss in misses_km.items()]
    return pa.Table.from_pylist([{name: each[name] for name in schema.names} for each in rows], schema)


def correct(entries: pa.Table, **misses_km: float) -> pa.Table:
    return corrected(CONJUNCTION_CANDIDATES, entries, facts(misses_km), as_of_ns=entries.num_rows)


def shown(entries: pa.Table) -> list[tuple[str, int, str, float]]:
    return [(each[KEY], each["sequence"], each["op"], each["miss_distance_km"]) for each in entries.to_pylist()]


def holds(entries: pa.Table) -> States:
    return {each[KEY]: each["miss_distance_km"] for each in current_rows(entries, KEY).to_pylist()}


def test_a_log_inserts_corrects_withdraws_and_takes_back__DP3_F7_I17() -> None:
    log = correct(NOTHING, x=1.0, y=2.0)
    assert shown(log) == [("x", 0, INSERT, 1.0), ("y", 0, INSERT, 2.0)]
    for misses_km, expected in (
        ({"x": 1.0, "y": 2.5}, [("y", 0, RETRACT, 2.0), ("y", 1, INSERT, 2.5)]),
        ({"y": 2.5}, [("x", 0, RETRACT, 1.0)]),
        ({"x": 1.0, "y": 2.5}, [("x", 1, INSERT, 1.0)]),
        ({"x": 3.0, "y": 2.5}, [("x", 1, RETRACT, 1.0), ("x", 2, INSERT, 3.0)]),
        ({"x": 3.0, "y": 2.5}, []),
    ):
        made = correct(log, **misses_km)
        assert shown(made) == expected
        log = pa.concat_tables([log, made])
        assert holds(log) == misses_km


def test_equal_facts_give_no_entry_even_where_they_are_not_numbers() -> None:
    log = correct(NOTHING, x=1.0, y=NAN)
    assert correct(log, x=1.0, y=NAN).num_rows == 0
    assert shown(correct(log, x=1.0, y=2.0))[0][:3] == ("y", 0, RETRACT)


def test_of_two_entries_with_one_sequence_the_retract_is_the_later() -> None:
    log = correct(NOTHING, x=1.0)
    withdrawn = pa.concat_tables([correct(log), log])
    assert last_rows(withdrawn, KEY).column("op").to_pylist() == [RETRACT]
    assert holds(withdrawn) == {}


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.floats(0, 5, width=16)), max_size=6), st.randoms())
def test_a_log_states_what_it_was_last_corrected_to_in_whatever_order_it_is_read__DP3_I17(
    states: list[States], dice: object
) -> None:
    log = NOTHING
    for misses_km in states:
        made = correct(log, **misses_km)
        log = pa.concat_tables([log, made])
        order = list(range(log.num_rows))
        dice.shuffle(order)  # type: ignore[attr-defined]  # a random.Random of hypothesis
        assert holds(log.take(pa.array(order, pa.int64()))) == misses_km
        for event in {each[KEY] for each in log.to_pylist()}:
            ops = [op for name, _, op, _ in shown(log) if name == event]
            assert ops == [(INSERT, RETRACT)[n % 2] for n in range(len(ops))]


def test_equal_lists_and_absent_values_give_no_entry_and_one_number_in_a_list_does() -> None:
    def tracks(**covariances: list[float] | None) -> pa.Table:
        found = [row(FUSED_TRACKS, fit_id=name, covariance=values) for name, values in covariances.items()]
        return pa.Table.from_pylist(found, FUSED_TRACKS.arrow_schema).select(fact_schema(FUSED_TRACKS).names)

    first = {"a": [1.0, NAN], "b": None, "c": [], "d": [1.0, 2.0], "e": [1.0]}
    log = corrected(FUSED_TRACKS, FUSED_TRACKS.content_schema.empty_table(), tracks(**first), as_of_ns=1)
    assert log.num_rows == len(first)
    assert corrected(FUSED_TRACKS, log, tracks(**first), as_of_ns=2).num_rows == 0
    changed = first | {"b": [], "c": None, "d": [1.0, 2.5], "e": [1.0, 1.0]}
    made = corrected(FUSED_TRACKS, log, tracks(**changed), as_of_ns=2)
    assert [(each["fit_id"], each["op"], each["covariance"]) for each in made.to_pylist()] == [
        (name, op, values[name]) for name in "bcde" for op, values in ((RETRACT, first), (INSERT, changed))
    ]
