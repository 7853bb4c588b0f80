"""The merge by columns equals the merge row by row."""

import random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.orbits.columnar_merge import best_rows
from sda_platform.orbits.element_order import rank
from sda_platform_tests.support.element_versions import NOW_NS, rows


def merged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ties = [
        np.array([r["source_priority"] for r in found], np.int64),
        np.array([r["element_set_number"] or 0 for r in found], np.int64),
        np.array([r["originator"] or "" for r in found], np.str_),
        np.array([r["segment_sha256"] for r in found], np.str_),
        np.array([r["record_number"] for r in found], np.int64),
    ]
    ids = np.array([r["norad_id"] for r in found], np.int64)
    epochs = np.array([r["epoch_time_ns"] for r in found], np.int64)
    return [found[position] for position in best_rows(ids, epochs, [tie.__getitem__ for tie in ties], NOW_NS)]


@given(rows, st.randoms(use_true_random=False))
def test_the_merge_by_columns_equals_the_order_row_by_row__CM3_CM6(
    found: list[dict[str, Any]], chance: random.Random
) -> None:
    expected = {
        number: max((r for r in found if r["norad_id"] == number), key=lambda r: rank(r, NOW_NS))
        for number in sorted({r["norad_id"] for r in found})
    }
    assert merged(found) == list(expected.values())
    assert merged(chance.sample(found, len(found))) == list(expected.values())
