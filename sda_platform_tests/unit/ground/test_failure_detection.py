"""The phi accrual detector: calibrated suspicion, sticky declaration, an ordered far tail, and each path class."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sda_platform.ground.failure_detection import CROSS_REGION, INTRA_REGION, PathClass, PhiDetector, phi


def steady(path: PathClass, sigma_s: float, beats: int = 300, seed: int = 1) -> tuple[PhiDetector, float, list[float]]:
    """A detector after regular heartbeats, the time of the last, and phi just before each."""
    chance, detector, now_s, seen = random.Random(seed), PhiDetector(path), 0.0, []
    for number in range(beats):
        detector.heartbeat(now_s)
        now_s += max(0.0, chance.gauss(path.interval_s, sigma_s))
        if number > path.samples:
            seen.append(detector.suspicion(now_s))
    detector.heartbeat(now_s)
    return detector, now_s, sorted(seen)


def test_steady_beats_raise_little_suspicion_and_a_late_one_is_declared__GF4_GF21() -> None:
    detector, last_s, seen = steady(INTRA_REGION, 0.01)
    assert seen[int(0.97 * len(seen))] < 2.0
    assert detector.suspicion(last_s + 0.35) > INTRA_REGION.declare_phi
    assert not detector.is_failed(last_s + 0.05)


@pytest.mark.parametrize("path", [INTRA_REGION, CROSS_REGION])
def test_a_node_that_stops_is_declared_within_thirty_seconds_on_every_path__GF20(path: PathClass) -> None:
    detector, last_s, _ = steady(path, path.interval_s / 5)
    declared_s = next(s / 100 for s in range(3000) if detector.is_failed(last_s + s / 100))
    assert declared_s < 3 * path.fixed_timeout_s < 30


def test_a_declaration_holds_until_the_suspicion_is_well_below__GF19() -> None:
    detector, last_s, _ = steady(INTRA_REGION, 0.01)
    assert detector.is_failed(last_s + 0.3)
    between = next(s / 1e4 for s in range(3000) if 1.0 < detector.suspicion(last_s + s / 1e4) < 8.0)
    assert detector.is_failed(last_s + between)
    detector.heartbeat(last_s + 0.4)
    assert not detector.is_failed(last_s + 0.41)


def test_until_there_are_samples_the_fixed_timeout_counts() -> None:
    detector = PhiDetector(INTRA_REGION)
    assert detector.suspicion(0.0) == math.inf
    detector.heartbeat(0.0)
    assert (detector.suspicion(0.149), detector.suspicion(0.151)) == (0.0, math.inf)


def test_answered_calls_between_heartbeats_do_not_make_the_next_one_late__GF26() -> None:
    detector = PhiDetector(INTRA_REGION)
    for number in range(100):
        detector.heartbeat(number * INTRA_REGION.interval_s)
        detector.alive((number + 0.98) * INTRA_REGION.interval_s)
    detector.heartbeat(100 * INTRA_REGION.interval_s)
    assert not detector.is_failed(100.99 * INTRA_REGION.interval_s), "the calls end, the heartbeats do not"


def test_phi_is_that_of_the_normal_distribution_and_finite_far_out__GF13_GF22() -> None:
    for deviations in (-3.0, 0.0, 1.0, 5.0, 20.0):
        assert phi(deviations) == pytest.approx(-norm.logsf(deviations) / math.log(10), rel=1e-6, abs=1e-9)
    assert phi(25.0) == pytest.approx(138.2, abs=1.0)
    assert math.isfinite(phi(1e6))


@given(st.floats(-10, 1e4), st.floats(1e-3, 100))
def test_more_delay_is_never_less_suspicion__GF22(deviations: float, more: float) -> None:
    assert phi(deviations + more) >= phi(deviations) - 1e-9
