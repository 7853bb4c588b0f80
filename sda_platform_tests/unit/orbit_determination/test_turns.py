"""Whose turn it is to be refined: at most so many, objects of interest first, and every object some time."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.orbit_determination.turns import TOGETHER_NS, Turn

_NUMBERS = st.sets(st.integers(1, 60), min_size=1, max_size=40)


def due(*numbers: int) -> pa.Table:
    return pa.table({"norad_id": pa.array(sorted(numbers), pa.int64())})


def taken(turn: Turn, waiting: pa.Table, first: list[int], at_once: int) -> tuple[list[int], Turn]:
    chosen, after = turn.next(waiting, first, at_once, turn.at_ns + TOGETHER_NS)
    return chosen["norad_id"].to_pylist(), after


def test_without_objects_of_interest_tracks_take_turns_by_number_and_round_again() -> None:
    chosen, turn = taken(Turn(), due(*range(1, 11)), [], 4)
    assert chosen == [1, 2, 3, 4]
    assert taken(turn, due(*range(1, 11)), [], 8)[0] == [5, 6, 7, 8, 9, 10, 1, 2]


def test_three_places_of_four_are_for_objects_of_interest_while_others_wait() -> None:
    everyone, first = due(*range(1, 21)), list(range(11, 21))
    chosen, turn = taken(Turn(), everyone, first, 8)
    assert chosen == [11, 12, 13, 14, 15, 16, 1, 2]
    assert taken(turn, everyone, first, 8)[0] == [17, 18, 19, 20, 11, 12, 3, 4]
    assert taken(turn, due(*first, 5), first, 8)[0] == [17, 18, 19, 20, 11, 12, 13, 5], "what others leave"
    assert taken(turn, due(*range(1, 11), 11), first, 8)[0] == [11, 3, 4, 5, 6, 7, 8, 9], "and the reverse"


def test_no_turn_comes_within_ten_minutes_of_the_last() -> None:
    turn = Turn(at_ns=5)
    assert turn.next(due(1), [], 2, 4 + TOGETHER_NS) == (due(), turn)
    assert taken(turn, due(1), [], 2) == ([1], Turn(5 + TOGETHER_NS, 0, 1))
    assert taken(turn, due(), [], 2) == ([], turn), "nor does one pass by without a track"


def test_the_counts_of_a_commit_carry_the_turn() -> None:
    assert Turn(1, 2, 3).counts() == {"turn_ns": 1, "turn_first_number": 2, "turn_number": 3}
    assert Turn.of(None) == Turn()


@given(_NUMBERS, _NUMBERS, st.integers(2, 20))
def test_every_object_gets_its_turn_however_many_come_first(waiting: set[int], first: set[int], at_once: int) -> None:
    """All stay due. Each kind has at least a fixed share of the places, so a round of it ends."""
    turn, missing = Turn(), set(waiting)
    for _ in range(len(waiting)):
        chosen, turn = taken(turn, due(*waiting), sorted(first), at_once)
        assert len(chosen) == len(set(chosen)) == min(at_once, len(waiting))
        missing -= set(chosen)
    assert not missing
