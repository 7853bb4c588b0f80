"""The element set in force: the latest epoch that has come, whatever the order of the rows."""

import numpy as np
import pytest

from sda_platform.arrays import IntArray
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS, terms_in_force

HOUR_NS = 3600 * 10**9
IDS = np.array([7, 7, 7, 7, 3, 3])
EPOCHS = np.array([0, 6, 12, 6, 20, 30]) * HOUR_NS
RANK = np.array([10, 0, 0, 20, 0, 0])


def found(order: IntArray, start_h: float, end_h: float) -> list[tuple[int, int, int]]:
    start_ns, end_ns = (round(hours * HOUR_NS) for hours in (start_h, end_h))
    terms = terms_in_force(IDS[order], EPOCHS[order], [RANK[order]], start_ns, end_ns)
    return list(zip(order[terms.row].tolist(), terms.from_ns.tolist(), terms.until_ns.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_each_set_is_in_force_from_its_epoch_to_the_next_one_in_any_order_A1(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(IDS))
    switch = [hours * HOUR_NS - EPOCH_TOLERANCE_NS for hours in (6, 12, 30)]
    assert found(order, -100, 100) == [
        (4, ALWAYS_NS, switch[2]),
        (5, switch[2], FOREVER_NS),
        (0, ALWAYS_NS, switch[0]),
        (3, switch[0], switch[1]),
        (2, switch[1], FOREVER_NS),
    ]


@pytest.mark.parametrize(
    ("start_h", "end_h", "rows"),
    [(1, 2, [4, 0]), (6, 7, [4, 3]), (5, 7, [4, 0, 3]), (13, 19, [4, 2]), (40, 41, [5, 2])],
)
def test_a_window_has_the_sets_that_are_in_force_in_it_A1(start_h: float, end_h: float, rows: list[int]) -> None:
    assert [row for row, _, _ in found(np.arange(len(IDS)), start_h, end_h)] == rows


def test_no_sets_have_no_terms_A1() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(terms_in_force(none, none, [none], 0, 1).row) == 0
