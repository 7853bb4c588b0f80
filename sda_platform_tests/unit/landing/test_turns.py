"""Intake takes turns between sources: a large file of one partner delays that partner only."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from sda_platform.formats.segments import Origin
from sda_platform.landing.intake import in_turns
from sda_platform.landing.segments import PendingSegment
from sda_platform_tests.support.segments import described

SEGMENTS, BYTES = 40, 8000
TURN = BYTES // 32


def waiting(
    source: str | None, second: float, size: int = 10, priority: str | None = None, records: int = 0
) -> PendingSegment:
    origins = None if source is None else (Origin(1, source),)
    meta = replace(described(b"", seconds=second), bytes=size, records=records, origins=origins, priority=priority)
    return PendingSegment("radar", f"{source}-{second}", meta)


def order(*found: PendingSegment) -> list[str]:
    return [each.name for each in in_turns(found, sources(found), max_segments=SEGMENTS, max_bytes=BYTES)]


def sources(found: Iterable[PendingSegment]) -> set[str]:
    return {each.source for each in found}


def batch(found: list[PendingSegment], sound: set[str] | None = None) -> list[PendingSegment]:
    """What one batch takes, as `intake.take` does; all sources are sound, or those."""
    taken: list[PendingSegment] = []
    size = 0
    for each in in_turns(found, sources(found) if sound is None else sound, max_segments=SEGMENTS, max_bytes=BYTES):
        size += max(each.meta.bytes, each.meta.records * 96) if each.meta else 0
        if taken and (len(taken) >= SEGMENTS or size > BYTES):
            break
        taken.append(each)
    return taken


def test_within_their_turns_segments_are_taken_when_they_are_due() -> None:
    found = [waiting("a", 3), waiting("b", 2), waiting(None, 1), waiting("a", 4, priority="emergency")]
    assert order(*found) == ["a-4", "None-1", "b-2", "a-3"]


def test_a_source_alone_takes_whole_batches() -> None:
    found = [waiting("a", second, size=BYTES // 10) for second in range(30)]
    assert [each.name for each in batch(found)] == [f"a-{second}" for second in range(10)]


def test_while_others_wait_a_source_has_a_turn_of_a_batch() -> None:
    bomb = [waiting("bomb", second / 100, size=100) for second in range(30)]
    live = [waiting("live", 5.0 + second) for second in range(3)]
    assert [each.source for each in batch([*bomb, *live])] == ["bomb"] * 3 + ["live"] * 3


def test_a_source_of_which_the_last_batch_had_no_sound_records_has_an_eighth_of_a_turn() -> None:
    bomb = [waiting("bomb", second / 100, size=10) for second in range(30)]
    live = [waiting("live", 5.0 + second, size=40) for second in range(9)]
    assert Counter(each.source for each in batch([*bomb, *live], {"live"})) == {"bomb": 4, "live": 7}
    assert Counter(each.source for each in batch([*bomb, *live], {"live", "bomb"})) == {"bomb": 25, "live": 7}
    assert len(batch(bomb, set())) == 30, "alone it waits for nobody"


@pytest.mark.parametrize(
    ("is_sound", "size", "records", "batch_bytes", "taken"),
    [
        (True, 7_999, 0, 256_000, 2),
        (True, 8_000, 0, 256_000, 1),
        (False, 999, 0, 256_000, 2),
        (False, 1_000, 0, 256_000, 1),
        (True, 1, 10, 32 * 961, 2),  # a record counts as 96 bytes
        (True, 1, 10, 32 * 960, 1),
    ],
)
def test_a_turn_is_a_thirty_second_or_an_eighth_of_it_to_the_byte(
    is_sound: bool, size: int, records: int, batch_bytes: int, taken: int
) -> None:
    found = [*(waiting("a", second, size, records=records) for second in (0, 1)), waiting("live", 5)]
    sound = {"a", "live"} if is_sound else {"live"}
    order = in_turns(found, sound, max_segments=SEGMENTS, max_bytes=batch_bytes)
    assert Counter(each.source for each in order) == {"a": taken, "live": 1}


@pytest.mark.parametrize(("size", "records", "taken"), [(50, 0, 5), (50, 1, 3), (16, 1, 3), (16, 10, 1)])
def test_small_records_cost_more_than_their_bytes(size: int, records: int, taken: int) -> None:
    bomb = [waiting("bomb", second / 100, size, records=records) for second in range(30)]
    assert [each.source for each in batch([*bomb, waiting("live", 5.0)])] == ["bomb"] * taken + ["live"]


def test_a_batch_of_one_source_is_bounded_by_its_records_too() -> None:
    found = [waiting("a", second, 16, records=10) for second in range(30)]
    assert len(batch(found)) == BYTES // (10 * 96)


def test_a_segment_that_is_larger_than_a_turn_is_taken_alone() -> None:
    assert order(waiting("bomb", 0, size=900), waiting("bomb", 1, size=900), waiting("live", 2)) == ["bomb-0", "live-2"]


def test_many_small_segments_of_one_source_come_after_the_first_turns_of_others() -> None:
    bomb = [waiting("bomb", second / 100, size=1) for second in range(500)]
    live = [waiting("live", 5.0 + second, size=1) for second in range(20)]
    taken = [each.source for each in batch([*bomb, *live])]
    assert taken[:20] == ["bomb"] * 10 + ["live"] * 10
    assert taken.count("live") == 20


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_taken_in_the_end_and_others_wait_little_for_a_bomb(seed: int) -> None:
    """Played with and without a bomb of six times their bytes: the others take at most twice as many batches."""
    chance = Random(seed)
    others = [waiting(f"s{chance.randrange(4)}", chance.uniform(0, 60), chance.randrange(1, 60)) for _ in range(60)]
    bomb = [waiting("bomb", chance.uniform(0, 30), chance.randrange(1, 400)) for _ in range(60)]

    def batches(found: list[PendingSegment]) -> dict[str, int]:
        """The number of the batch of each segment."""
        left, numbers = list(found), dict[str, int]()
        while left:
            taken = batch(left)
            numbers |= dict.fromkeys((each.name for each in taken), max(numbers.values(), default=-1) + 1)
            left = [each for each in left if each.name not in numbers]
        return numbers

    alone, beside = batches(others), batches([*others, *bomb])
    assert len(beside) == 120
    assert max(beside[each.name] for each in others) <= 2 * max(alone.values()) + 1
