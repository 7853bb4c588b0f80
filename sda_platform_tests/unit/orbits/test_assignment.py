"""Assignment: everybody's best where no one minds, the least total cost where they do, never one object twice."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.orbits.tracking.assignment import assign

pairs = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 4)), st.integers(-50, -1).map(float), min_size=1, max_size=14
)


def _total(chosen: tuple[int, ...], costs: dict[tuple[int, int], float]) -> float:
    return sum(costs[cluster, candidate] for cluster, candidate in enumerate(chosen) if candidate >= 0)


@settings(max_examples=150, deadline=None)
@given(pairs, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_the_total_cost_is_the_least_of_all_ways_and_no_object_is_seen_twice(
    costs: dict[tuple[int, int], float], slots: list[int]
) -> None:
    cluster, candidate = (np.array(part, dtype=np.int64) for part in zip(*costs, strict=True))
    exclusion_group = np.array(slots, dtype=np.int64)
    found = assign(cluster, candidate, np.array(list(costs.values())), exclusion_group)
    choices = [[-1, *(c for u, c in costs if u == number)] for number in range(6)]
    allowed = [
        way
        for way in itertools.product(*choices)
        if len({(slots[u], c) for u, c in enumerate(way) if c >= 0}) == sum(c >= 0 for c in way)
    ]
    assert tuple(found.candidate.tolist()) in allowed
    assert _total(tuple(found.candidate.tolist()), costs) == min(_total(way, costs) for way in allowed)


def test_two_that_want_one_object_are_sorted_out_by_what_the_other_could_have() -> None:
    cluster, candidate = np.array([0, 0, 1, 1]), np.array([7, 8, 7, 8])
    cost = np.array([-10.0, -9.0, -9.5, -1.0])
    alone = assign(cluster, candidate, cost, np.array([0, 1]))
    assert alone.candidate.tolist() == [7, 7], "different slots: each its best"
    together = assign(cluster, candidate, cost, np.array([0, 0]))
    assert together.candidate.tolist() == [8, 7], "not first come, first served"
    assert together.runner_up.tolist() == [7, 8]
    nothing = assign(cluster[:0], candidate[:0], cost[:0], np.array([0, 0]))
    assert nothing.candidate.tolist() == [-1, -1]
