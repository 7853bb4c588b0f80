"""Covariances without information: every pass has an answer or a named reason, whatever the numbers."""

import dataclasses
import warnings

import numpy as np
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.formats.cdm import read_cdm
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.risk.best_probability import EXHAUSTED, FOSTER, UNRESOLVED, UNUSABLE, best_probabilities
from sda_platform.orbits.risk.degenerate import is_rank_deficient
from sda_platform.orbits.risk.validity import COVARIANCE_MISSING, VELOCITY_MISSING, Encounters, concerns, is_indefinite
from sda_platform_tests.support.cara_conjunctions import conjunction

SOUND = ("full", "large", "underflow")
SINGULAR = ("zero", "position_only", "velocity_only", "in_track", "rank_one", "rank_three", "negative", "indefinite")
UNFIT = ("nan", "infinite", "overflow")
KINDS = (*SOUND, *SINGULAR, *UNFIT)
_SIGMA = np.array([0.05, 0.5, 0.05, 5e-4, 5e-5, 5e-5])


def covariance(kind: str, random: np.random.Generator) -> FloatArray:
    """One covariance (6, 6), km and km/s, of a kind."""
    root = random.normal(size=(6, 6)) * _SIGMA[:, None] * 10 ** random.uniform(-2, 2)
    whole = root @ root.T
    position, velocity = np.zeros((6, 6)), np.zeros((6, 6))
    position[:3, :3], velocity[3:, 3:] = whole[:3, :3], whole[3:, 3:]
    kinds: dict[str, FloatArray] = {
        "full": whole,
        "zero": 0 * whole,
        "position_only": position,
        "velocity_only": velocity,
        "in_track": np.diag([0, whole[1, 1], 0, 0, 0, 0]),
        "rank_one": np.outer(root[:, 0], root[:, 0]),
        "rank_three": root[:, :3] @ root[:, :3].T,
        "negative": -whole,
        "indefinite": root + root.T,
        "nan": whole + np.diag([0, 0, np.nan, 0, 0, 0]),
        "infinite": whole + np.diag([np.inf, 0, 0, 0, 0, 0]),
        "overflow": 1e300 * whole,
        "large": 1e8 * whole,
        "underflow": 1e-300 * whole,
    }
    return kinds[kind]


def passes(kinds: tuple[str, str], random: np.random.Generator) -> Encounters:
    """One pass at 7,000 km, up to 10 km apart, at any angle."""
    angle = random.uniform(0, 3)
    r1, v1 = np.array([7000.0, 0, 0]), np.array([0, 7.5, 0])
    v2 = 7.5 * np.array([0, np.cos(angle), np.sin(angle)])
    across = np.cross(v2 - v1, random.normal(size=3))
    r2 = r1 + across / np.linalg.norm(across) * 10 ** random.uniform(-3, 1)
    first, second = (covariance(kind, random) for kind in kinds)
    return Encounters(r1[None], v1[None], first[None], r2[None], v2[None], second[None], np.array([0.01]))


def together(parts: list[Encounters]) -> Encounters:
    names = [field.name for field in dataclasses.fields(Encounters) if field.name != "tails"]
    return Encounters(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@pytest.mark.parametrize("kind", KINDS)
def test_every_pass_has_an_answer_or_a_reason_and_never_raises_A3(kind: str) -> None:
    random = np.random.default_rng(KINDS.index(kind))
    parts = [passes((kind, other), random) for other in KINDS[KINDS.index(kind) :]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = best_probabilities(together(parts), most_evaluations=5_000)
    for row in range(len(parts)):
        missing = {COVARIANCE_MISSING, VELOCITY_MISSING} & set(found.flags[row])
        if np.isnan(found.probability[row]):
            assert UNUSABLE in found.flags[row]
        else:
            assert 0 <= found.probability[row] <= 1
            assert not missing or found.method[row] == FOSTER
            for_risk, unknown = found.probability_for_risk[row], COVARIANCE_MISSING in missing
            assert for_risk >= found.probability[row] or (unknown and np.isnan(for_risk))
        assert (found.valid_2d[row] is None) == bool(missing or UNUSABLE in found.flags[row])
    alone = best_probabilities(parts[0], most_evaluations=5_000)
    np.testing.assert_array_equal(alone.probability[0], found.probability[0])
    assert alone.flags[0] == found.flags[0]


def test_a_computation_over_its_budget_leaves_2d_and_a_flag_A3() -> None:
    sides = []
    for each in read_cdm(conjunction("000026980")).objects:
        r, v = each.position_km[None], each.velocity_km_s[None]
        sides.append((r, v, rtn_to_teme(each.covariance_rtn[None], r, v)))
    slow = Encounters(*sides[0], *sides[1], np.array([0.02]))
    assert concerns(slow)["curved_motion"].all()
    short, again = (best_probabilities(slow, most_evaluations=1_000) for _ in range(2))
    assert {UNRESOLVED, EXHAUSTED} <= set(short.flags[0])
    assert short.probability[0] == short.two_dimensional.probability[0] == again.probability[0]
    assert EXHAUSTED not in best_probabilities(slow).flags[0]


@pytest.mark.parametrize(
    ("block", "deficient"),
    [
        (np.zeros((3, 3)), True),
        (np.diag([1.0, 0, 1]), True),
        (np.outer([1.0, 2, 3], [1, 2, 3]), True),
        (-np.eye(3), True),
        (np.diag([1e-6, 1e6, 1e-6]), False),
        (np.diag([1.0, -1e-3, 1]), False),
    ],
)
def test_a_block_lacks_rank_where_some_direction_has_no_error_A2(block: FloatArray, deficient: bool) -> None:
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    assert is_rank_deficient((turn @ block @ turn.T)[None])[0] == deficient


@pytest.mark.parametrize("exponent", [-320, -60, -30, -8, 0, 8, 30, 150])
def test_a_correlation_beyond_one_is_indefinite_at_any_scale(exponent: int) -> None:
    sigmas = np.array([1.0, 10.0 ** (exponent / 2) if exponent > -320 else 0.0, 1e-3])
    for correlation, is_wrong in ((0.9, False), (1.1, True), (-1e200, True)):
        covariance = np.diag(sigmas**2)
        covariance[0, 2] = covariance[2, 0] = correlation * sigmas[0] * sigmas[2]
        assert is_indefinite(covariance[None]).tolist() == [is_wrong]
    beside_nothing = np.diag(sigmas**2)
    beside_nothing[0, 1] = beside_nothing[1, 0] = 1e300
    assert is_indefinite(beside_nothing[None]).tolist() == [True]
