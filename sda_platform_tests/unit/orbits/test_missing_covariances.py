"""Where an object's covariance is missing, the risk follows the worst that it may be, never the other one alone."""

import numpy as np
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.conjunction.received_cdms import MessageRisk, message_risk
from sda_platform.formats.cdm import read_cdm
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.levels import RISK_LEVELS, risk_level
from sda_platform.orbits.risk.probability import collision_probability_2d, maximum_over_unknown
from sda_platform.orbits.risk.validity import COVARIANCE_MISSING, Encounters
from sda_platform_tests.support.cara_conjunctions import CONJUNCTIONS, conjunction

EARTH_RADIUS_KM = 6378.137


def brute_force(miss: FloatArray, known: FloatArray, radius: float, rng: np.random.Generator) -> float:
    """The largest probability over many random covariances of the other object, in the encounter plane."""
    angle, count = rng.uniform(0, np.pi, 4000), 4000
    sizes = np.exp(rng.uniform(np.log(1e-3), np.log(30), (count, 2))) * np.linalg.norm(miss)
    sizes[::2, 1] *= 1e-4
    # Half of the lines lie along the miss, or nearly so.
    angle[::4] = np.arctan2(miss[1], miss[0]) + rng.normal(0, 0.01, len(angle[::4]))
    axes = np.stack([np.cos(angle), np.sin(angle), -np.sin(angle), np.cos(angle)], axis=1).reshape(-1, 2, 2)
    other = np.einsum("nki,nk,nkj->nij", axes, sizes**2, axes)
    variance, turn = np.linalg.eigh(known + other)
    along = np.einsum("nji,j->ni", turn, miss)
    narrow, wide = np.sqrt(variance.T)
    return float(collision_probability_2d(along[:, 0], along[:, 1], narrow, wide, radius).max())


@pytest.mark.parametrize("seed", range(12))
def test_no_covariance_of_the_other_object_is_worse_than_the_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known_sigmas = 10 ** rng.uniform(0.5, 3.5, 2)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    known, radius = turn @ np.diag(known_sigmas**2) @ turn.T, 10 ** rng.uniform(0, 1.5)
    miss = 10 ** rng.uniform(2, 4) * np.array([np.cos(seed), np.sin(seed)])
    in_space = np.zeros((1, 3, 3))
    in_space[0, :2, :2], in_space[0, 2, 2] = known / 1e6, 1.0
    dr, dv = np.append(miss / 1e3, 0.0)[None], np.array([[0.0, 0.0, 9.0]])
    found = float(maximum_over_unknown(dr, dv, in_space, np.array([radius]))[0])
    searched = brute_force(miss, known, radius, rng)
    assert found >= 0.999 * searched
    assert found < 1.2 * searched, "some covariance comes near"


def test_the_maximum_for_a_small_radius_is_frisbee_s() -> None:
    sigmas, miss, radius = np.array([30.0, 100.0]), np.array([400.0, 300.0]), 2.0
    covariance = np.diag([*(sigmas / 1e3) ** 2, 1.0])[None]
    sigma_distance = np.hypot(*(miss / sigmas))
    expected = radius**2 / (2 * sigma_distance * sigmas.prod()) * np.exp(-0.5)
    found = maximum_over_unknown(np.append(miss / 1e3, 0)[None], [[0, 0, 9.0]], covariance, [radius])
    assert found[0] == pytest.approx(expected, rel=1e-3)
    near = maximum_over_unknown(np.append(sigmas / 2e3, 0)[None], [[0, 0, 9.0]], covariance, [radius])
    alone = collision_probability_2d(15.0, 50.0, 30.0, 100.0, radius)
    assert near[0] == pytest.approx(alone[0], rel=1e-9), "within one sigma nothing is worse than the known one"


def with_one(secondary: str, covariance: FloatArray) -> MessageRisk:
    return message_risk(read_cdm(conjunction(secondary, lambda given, number: given if number == 1 else covariance)))


@pytest.mark.parametrize("secondary", list(CONJUNCTIONS))
@pytest.mark.parametrize("sigma_km", [1e3, EARTH_RADIUS_KM, 10 * EARTH_RADIUS_KM, 0.0])
def test_a_default_covariance_is_a_missing_one_and_never_lowers_the_risk(secondary: str, sigma_km: float) -> None:
    whole = message_risk(read_cdm(conjunction(secondary)))
    default = with_one(secondary, np.diag([sigma_km**2] * 3 + [1e-6 * bool(sigma_km)] * 3))
    assert COVARIANCE_MISSING in default.flags and default.valid_2d is None
    assert RISK_LEVELS.index(default.risk) >= RISK_LEVELS.index(whole.risk)
    assert default.max_pc is not None and default.pc_2d is not None and whole.pc_2d is not None
    assert default.max_pc >= max(default.pc_2d, 0.999 * whole.pc_2d)
    assert default.risk == str(risk_level(max(default.max_pc, default.pc_2d)))
    assert default.max_pc_sigma_scale is None


def test_a_default_in_one_direction_only_is_one() -> None:
    risk = with_one("000026980", np.diag([1e-2, 4e6, 1e-2, 1e-9, 1e-9, 1e-9]))
    assert COVARIANCE_MISSING in risk.flags and risk.risk != "green"


def test_without_any_covariance_a_level_is_unknown_and_not_green() -> None:
    for change in (np.zeros((6, 6)), np.diag([(10 * EARTH_RADIUS_KM) ** 2] * 3 + [0.0] * 3)):
        risk = message_risk(read_cdm(conjunction("000026980", lambda *_, covariance=change: covariance)))
        assert COVARIANCE_MISSING in risk.flags and risk.risk == "unknown"


def test_both_orders_of_the_objects_have_the_same_level() -> None:
    r1, v1, r2, v2 = np.array([[7000.0, 0, 0], [0, 7.5, 0], [7000.3, 0.1, 0.4], [0, 1.0, 7.4]])[:, None]
    known = np.diag([0.01, 0.25, 0.01, 1e-8, 1e-8, 1e-8])[None]
    first = best_probabilities(Encounters(r1, v1, known, r2, v2, 0 * known, np.array([0.01])))
    second = best_probabilities(Encounters(r2, v2, 0 * known, r1, v1, known, np.array([0.01])))
    assert first.probability_for_risk[0] == pytest.approx(second.probability_for_risk[0], rel=1e-9)
    assert first.probability_for_risk[0] == first.two_dimensional.maximum_probability[0] > first.probability[0]
