"""The order of element sets, and the merge of sorted sources that is the catalogue's oracle."""

import random
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.orbits.element_order import rank
from sda_platform_tests.support.element_merge import merge_sorted_sources, reason_against
from sda_platform_tests.support.element_versions import NOW_NS, SOURCES, row, rows


def merged(found: list[dict[str, Any]], chance: random.Random) -> dict[int, tuple[dict[str, Any], list[Any]]]:
    """The merge of ``found`` as dealt out to five sources."""
    sources: list[list[dict[str, Any]]] = [[] for _ in SOURCES]
    for each in found:
        chance.choice(sources).append(each)
    ordered = [sorted(source, key=lambda r: r["norad_id"]) for source in sources]
    return {best["norad_id"]: (dict(best), list(losers)) for best, losers in merge_sorted_sources(ordered, NOW_NS)}


@given(rows, st.randoms(use_true_random=False))
def test_the_merge_depends_on_no_order_of_arrival_and_loses_no_object__CM4_CM6_CM14(
    found: list[dict[str, Any]], chance: random.Random
) -> None:
    once = merged(found, chance)
    shuffled = chance.sample(found, len(found))
    again = merged(shuffled, chance)
    assert {k: best for k, (best, _) in again.items()} == {k: best for k, (best, _) in once.items()}
    assert set(once) == {each["norad_id"] for each in found}, (
        "the ids that come out are the union of those that went in"
    )
    assert sum(1 + len(losers) for _, losers in once.values()) == len(found)
    for best, losers in once.values():
        assert all(rank(best, NOW_NS) > rank(loser, NOW_NS) for loser in losers)
        assert all(reason_against(loser, best, NOW_NS) for loser in losers)


@pytest.mark.parametrize(
    ("loser", "winner", "reason"),
    [
        (row(1, 100), row(1, 200), "older epoch"),
        (row(1, 20_000), row(1, 200), "its epoch is ahead"),
        (row(1, 100, source_priority=10), row(1, 100, source_priority=20), "lower source priority"),
        (row(1, 100, element_set_number=7), row(1, 100, element_set_number=8), "lower set number"),
        (row(1, 100, originator="A"), row(1, 100, originator="B"), "originator later in the alphabet wins"),
        (row(1, 100, record_number=1), row(1, 100, record_number=2), "equal rank, decided by segment and record"),
    ],
)
def test_a_loser_has_the_first_reason_of_the_order__CM6(
    loser: dict[str, Any], winner: dict[str, Any], reason: str
) -> None:
    assert rank(loser, NOW_NS) < rank(winner, NOW_NS)
    assert reason_against(loser, winner, NOW_NS) == reason


def test_of_sets_that_are_all_ahead_the_first_is_taken() -> None:
    ahead = [row(1, 20_000), row(1, 30_000)]
    ((best, _),) = merge_sorted_sources([ahead], NOW_NS)
    assert best["epoch_time_ns"] == 20_000 * 10**9


def test_an_unsorted_source_is_refused__CM17() -> None:
    with pytest.raises(ValueError, match="sorted by object: 1 follows 2"):
        list(merge_sorted_sources([[row(2), row(1)]], NOW_NS))


def test_a_merge_of_five_sources_is_complete_and_sorted__CM4_CM6() -> None:
    """Each source lacks some objects and has some twice."""
    chance = random.Random(7)
    sources = [
        sorted(
            (
                row(number, chance.randrange(9_000), originator=source, segment_sha256=source, record_number=place)
                for place, number in enumerate(chance.choices(range(1, 3001), k=2500))
            ),
            key=lambda r: r["norad_id"],
        )
        for source in SOURCES
    ]
    found = list(merge_sorted_sources(sources, NOW_NS))
    everything = sorted((r for s in sources for r in s), key=lambda r: r["norad_id"])
    expected = [max(g, key=lambda r: rank(r, NOW_NS)) for _, g in groupby(everything, key=lambda r: r["norad_id"])]
    assert [best for best, _ in found] == expected
    assert sum(len(losers) for _, losers in found) == len(everything) - len(expected)
