"""The life of a track: rules with hysteresis, and what holds for every history of windows."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.fusion.track_states import (
    COASTING,
    CONFIRMED,
    LOST,
    NEW,
    LifeRules,
    born,
    life_of,
    passed,
    seen,
)
from sda_platform.units import SECOND_NS

RULES = LifeRules()
MINUTE = 60 * SECOND_NS
HOUR = 60 * MINUTE
WINDOW = MINUTE // 2
RANK = {LOST: 0, NEW: 1, COASTING: 2, CONFIRMED: 3}

histories = st.lists(st.integers(0, 2000).map(lambda n: n * WINDOW), min_size=1, max_size=40, unique=True).map(sorted)


def state(windows: list[int], now: float) -> str:
    return life_of([n * WINDOW for n in windows], round(now * WINDOW)).state


@pytest.mark.parametrize(
    ("windows", "now", "expected"),
    [
        ([0], 0, NEW),
        ([0, 1], 1, NEW),
        ([0, 1, 2], 2, CONFIRMED),
        ([0, 3, 7], 7, CONFIRMED),
        ([0, 20, 40], 40, NEW),  # lost in between, twice
        ([0], 21, LOST),
        ([0, 1, 2], 6, CONFIRMED),
        ([0, 1, 2], 7, COASTING),
        ([0, 1, 2, 20], 20, COASTING),  # one stray window brings no one back
        ([0, 1, 2, 20, 21], 21, CONFIRMED),
        ([0, 1, 2], 2 + 2880, COASTING),
        ([0, 1, 2], 2 + 2881, LOST),
        ([0, 1, 2, 3000], 3000, NEW),
    ],
)
def test_the_states_of_a_track(windows: list[int], now: float, expected: str) -> None:
    assert state(windows, now) == expected


def test_a_state_is_dated_to_its_beginning_not_to_the_evaluation() -> None:
    life = life_of([0, WINDOW, 2 * WINDOW], 10 * HOUR)
    assert (life.state, life.since_ns) == (COASTING, 2 * WINDOW + 2 * MINUTE)
    assert life_of([0, WINDOW, 2 * WINDOW], 3 * MINUTE).since_ns == 2 * WINDOW, "confirmed with its third window"


@given(histories, st.integers(0, 3 * 24 * 60).map(lambda m: m * MINUTE))
def test_evaluations_in_between_change_nothing(history: list[int], later: int) -> None:
    life = life_of(history, history[-1])
    looked = passed(passed(life, history[-1] + later // 2, RULES), history[-1] + later, RULES)
    assert looked == life_of(history, history[-1] + later)


@given(histories, st.integers(0, 3 * 24 * 60).map(lambda m: m * MINUTE))
def test_time_alone_never_makes_a_track_better(history: list[int], later: int) -> None:
    life = life_of(history, history[-1])
    assert RANK[passed(life, history[-1] + later, RULES).state] <= RANK[life.state]
    assert passed(life, history[-1] + later, RULES).since_ns >= life.since_ns


@given(histories, st.integers(0, 200).map(lambda n: n * WINDOW))
def test_windows_together_are_windows_one_by_one(history: list[int], later: int) -> None:
    life = born(history[0])
    for time_ns in history[1:]:
        life = seen(life, [time_ns], RULES)
    assert passed(life, history[-1] + later, RULES) == life_of(history, history[-1] + later)


@given(histories)
def test_no_track_is_confirmed_without_three_windows_close_together(history: list[int]) -> None:
    life = born(history[0])
    for time_ns in history[1:]:
        before, life = life, seen(life, [time_ns], RULES)
        if life.state == CONFIRMED and before.state == NEW:
            assert life.streak >= RULES.confirming_windows
        if life.state == CONFIRMED and passed(before, time_ns, RULES).state == COASTING:
            assert life.streak >= RULES.returning_windows


@given(histories)
def test_a_track_does_not_flutter(history: list[int]) -> None:
    """It changes no more often than every second window: hysteresis."""
    lives = [life_of(history[: n + 1], history[n]) for n in range(len(history))]
    returns = sum(a.state == COASTING and b.state == CONFIRMED for a, b in pairwise(lives))
    assert returns <= len(history) / RULES.returning_windows


def test_a_track_that_was_never_seen_is_refused() -> None:
    with pytest.raises(ValueError, match="never seen"):
        life_of([], 0)
