"""The judge of read modes, on histories of a few calls."""

import pytest

from sda_platform.ground.read_routing import ReadMode
from sda_platform_tests.models.read_promises import Call, broken_promises

LEADER, SESSION, PREFIX, BOUNDED = ReadMode.LEADER, ReadMode.SESSION, ReadMode.PREFIX, ReadMode.BOUNDED


def written(key: str, value: str, start_s: float, end_s: float | None, by: str = "w") -> Call:
    return Call(by, SESSION, "write", key, value, start_s, end_s)


def read(mode: ReadMode, key: str, value: str | None, start_s: float) -> Call:
    return Call("s", mode, "read", key, value, start_s, start_s + 0.1)


BEFORE = [written("cause", "c", 0, 1), written("effect", "e", 2, None)]


@pytest.mark.parametrize(
    ("mode", "reads", "is_broken"),
    [
        (PREFIX, [read(PREFIX, "effect", "e", 3), read(PREFIX, "cause", None, 4)], True),
        (PREFIX, [read(PREFIX, "effect", None, 3), read(PREFIX, "cause", None, 4)], False),
        (PREFIX, [read(PREFIX, "effect", "e", 3), read(PREFIX, "effect", None, 4)], True),
        (SESSION, [read(SESSION, "effect", "e", 3), read(SESSION, "cause", "c", 4)], False),
        (SESSION, [written("own", "o", 3, 4, by="s"), read(SESSION, "own", None, 5)], True),
        (PREFIX, [written("own", "o", 3, 4, by="s"), read(PREFIX, "own", None, 5)], False),
        (SESSION, [written("own", "o", 3, None, by="s"), read(SESSION, "own", None, 5)], False),
        (SESSION, [read(SESSION, "effect", "never written", 3)], True),
        (BOUNDED, [read(BOUNDED, "cause", None, 1.4)], False),
        (BOUNDED, [read(BOUNDED, "cause", None, 1.6)], True),
        (LEADER, [read(LEADER, "cause", None, 1.1)], True),
        (LEADER, [read(LEADER, "effect", None, 3), read(LEADER, "cause", "c", 3)], False),
    ],
)
def test_a_history_is_broken_where_a_read_misses_what_it_must_know__RT10_RT20(
    mode: ReadMode, reads: list[Call], is_broken: bool
) -> None:
    assert bool(broken_promises([*BEFORE, *reads], mode, bound_s=0.5)) is is_broken
