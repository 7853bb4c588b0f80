"""The cell list finds exactly the pairs that a comparison of all finds, of any list of objects."""

from typing import Any

import numpy as np
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.screening.interpolated_paths import hermite_basis
from sda_platform.orbits.screening.near_pairs import SLACK_KM, near_pairs

STEPS, STEP_S, THRESHOLD_KM = 4, 30.0, 20.0
BASIS = (hermite_basis((np.arange(STEPS) + 0.5) / STEPS), np.zeros((STEPS, 6)))
"""Objects at rest within an interval: what may pass is what is near."""


def objects(seed: int, count: int, width_km: float) -> tuple[FloatArray, FloatArray]:
    """Ends of paths (6, 3, count) in a cube around the Earth's centre, and reaches, of which some are large."""
    rng = np.random.default_rng(seed)
    ends = np.zeros((6, 3, count))
    ends[0] = ends[3] = rng.uniform(-width_km, width_km, (3, count))
    ends[0][:, rng.random(count) < 0.02] = np.nan
    reach_km = rng.choice([40.0, 50.0, 300.0, 900.0], count, p=[0.5, 0.49, 0.007, 0.003])
    return ends, reach_km


def expected(first: Any, second: Any, identity: tuple[IntArray, IntArray]) -> set[tuple[int, int]]:
    """The pairs by identity that are within reach of each other and, at rest, within the threshold and the errors."""
    (r_1, reach_1), (r_2, reach_2) = ((ends[0].T.astype(np.float32), reach) for ends, reach in (first, second))
    distance_km = np.linalg.norm(r_1[:, None] - r_2[None], axis=-1)
    near = distance_km <= THRESHOLD_KM + SLACK_KM + reach_1[:, None] + reach_2[None]
    pairs = np.stack(np.nonzero(near), axis=-1)
    named = {(int(identity[0][a]), int(identity[1][b])) for a, b in pairs}
    both = {*identity[0].tolist()} & {*identity[1].tolist()}
    return {(a, b) for a, b in named if a != b and not (a in both and b in both and a > b)}


def found(first: Any, second: Any, identity: tuple[IntArray, IntArray]) -> list[set[tuple[int, int]]]:
    """The pairs of each step, each as its lower identity first where both lists have both."""
    reach = first[1], second[1]
    # An error as large as the reach: every pair within reach may pass.
    lists = (first[0].astype(np.float32), second[0].astype(np.float32))
    rows = near_pairs(lists, identity, reach, reach, BASIS, threshold_km=THRESHOLD_KM, half_step_s=STEP_S / 2)
    both = {*identity[0].tolist()} & {*identity[1].tolist()}
    answer = []
    for step in range(STEPS):
        chosen = rows[2] == step
        named = list(zip(identity[0][rows[0][chosen]].tolist(), identity[1][rows[1][chosen]].tolist(), strict=True))
        named = [(min(pair), max(pair)) if {*pair} <= both else pair for pair in named]
        assert len(set(named)) == len(named), "a pair is found once at a step"
        answer.append(set(named))
    return answer


@pytest.mark.parametrize("width_km", [300.0, 5_000.0, 45_000.0])
@pytest.mark.parametrize("count", [1, 2, 60, 700])
def test_one_list_is_searched_in_itself(count: int, width_km: float) -> None:
    both = objects(count, count, width_km)
    identity = np.random.default_rng(5).permutation(10 * count)[:count]
    assert found(both, both, (identity, identity)) == [expected(both, both, (identity, identity))] * STEPS


@pytest.mark.parametrize("width_km", [300.0, 5_000.0])
@pytest.mark.parametrize("count", [3, 64, 65, 200])
def test_one_list_is_searched_in_another_that_shares_objects(count: int, width_km: float) -> None:
    first, second = objects(count, count, width_km), objects(count + 1, 500, width_km)
    identity = np.arange(count), np.arange(count // 2, count // 2 + 500)
    shared = np.arange(count // 2, count)
    second[0][:, :, shared - count // 2], second[1][shared - count // 2] = first[0][:, :, shared], first[1][shared]
    assert found(first, second, identity) == [expected(first, second, identity)] * STEPS
