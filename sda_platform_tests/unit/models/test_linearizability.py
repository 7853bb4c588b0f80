"""The checker of linearizability, on histories that are known to be right or wrong."""

import random
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform_tests.models.linearizability import Operation, is_linearizable, unlinearizable_keys


def read(start: float, end: float, value: object) -> Operation:
    return Operation("k", "read", start, end, value)


def write(start: float, end: float | None, value: object) -> Operation:
    return Operation("k", "write", start, end, value)


def cas(start: float, end: float | None, expected: object, value: object, succeeded: bool = True) -> Operation:
    return Operation("k", "compare_and_set", start, end, value, expected, succeeded)


@pytest.mark.parametrize(
    "history",
    [
        [write(0, 1, 1), read(2, 3, 1)],
        [write(0, 4, 1), read(1, 2, None), read(2.5, 3, 1)],
        [write(0, None, 1), read(5, 6, None), read(7, 8, 1)],
        [write(0, 5, 1), write(1, 4, 2), read(6, 7, 1)],
        [cas(0, 1, None, 1), cas(2, 3, None, 2, succeeded=False), read(4, 5, 1)],
        [cas(0, None, None, 1), cas(1, 2, 1, 2), read(3, 4, 2)],
    ],
    ids=["in order", "concurrent", "unknown outcome takes effect late", "either order", "one wins", "lost answer"],
)
def test_these_histories_are_linearizable__OR30(history: list[Operation]) -> None:
    assert is_linearizable(history)


@pytest.mark.parametrize(
    "history",
    [
        [write(0, 1, 1), read(2, 3, None)],
        [write(0, 1, 1), write(2, 3, 2), read(4, 5, 1)],
        [write(0, 9, 1), read(1, 2, 1), read(3, 4, None)],
        [cas(0, 1, None, 1), cas(2, 3, None, 2)],
        [write(0, 1, 1), read(2, 3, 2), write(4, 5, 2)],
        [write(0, None, 1), read(2, 3, 1), read(4, 5, None)],
    ],
    ids=["stale read", "lost update", "value goes back", "two owners", "read from the future", "goes back, unknown"],
)
def test_these_histories_are_not__OR30(history: list[Operation]) -> None:
    assert not is_linearizable(history)


def test_keys_are_judged_one_by_one() -> None:
    good, bad = Operation("good", "write", 0, 1, 1), Operation("bad", "read", 0, 1, 5)
    assert unlinearizable_keys([good, bad]) == ["bad"]


@pytest.mark.parametrize("seed", range(30))
def test_a_real_register_is_linearizable_and_one_planted_stale_read_is_found__OR30(seed: int) -> None:
    chance = random.Random(seed)
    value, now, history = 0, 0.0, []
    for _ in range(60):
        start, moment = now, now + chance.random()
        end = moment + chance.random()
        if chance.random() < 0.5:
            value = chance.randrange(10**6)
            history.append(write(start, end if chance.random() < 0.9 else None, value))
        else:
            history.append(read(start, end, value))
        # The next call may begin before this one has ended, and takes effect after it.
        now = moment + 1e-6
    assert is_linearizable(history, 0)
    history.append(read(now + 10, now + 11, -1))
    assert not is_linearizable(history, 0)


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to five operations on one register, with values and times from small ranges, so that they meet."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, 6))
        end = draw(st.one_of(st.none(), st.integers(start, 8)))
        kind = draw(st.sampled_from(["read", "write", "compare_and_set"]))
        value, expected, succeeded = draw(st.integers(0, 2)), draw(st.integers(0, 2)), draw(st.booleans())
        if kind == "read":
            found.append(read(start, start + 1 if end is None else end, value))
        else:
            found.append(write(start, end, value) if kind == "write" else cas(start, end, expected, value, succeeded))
    return found


def explained(order: Sequence[Operation]) -> bool:
    """Whether a register gives these answers in this order."""
    value: object = 0
    for each in order:
        matches = each.kind == "write" or each.expected == value
        if each.kind == "read":
            if each.value != value:
                return False
        elif each.end is not None and each.kind == "compare_and_set" and matches != each.succeeded:
            return False
        elif matches:
            value = each.value
    return True


def by_trying_every_order(history: Sequence[Operation]) -> bool:
    """The definition: some of the unknown operations and all others have an order that real time allows."""
    unknown = [n for n, each in enumerate(history) if each.end is None]
    for mask in range(2 ** len(unknown)):
        left_out = {n for place, n in enumerate(unknown) if mask >> place & 1}
        chosen = [each for n, each in enumerate(history) if n not in left_out]
        for order in permutations(chosen):
            in_time = all(
                later.end is None or later.end >= earlier.start
                for place, earlier in enumerate(order)
                for later in order[place + 1 :]
            )
            if in_time and explained(order):
                return True
    return False


@given(histories())
def test_the_search_agrees_with_trying_every_order__OR30(history: list[Operation]) -> None:
    assert is_linearizable(history, 0) == by_trying_every_order(history)
