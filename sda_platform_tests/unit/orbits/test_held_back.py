"""Refined elements follow a track's prediction, claim what they err, and are offered only if they predict better."""

import dataclasses

import numpy as np
import pytest

from sda_platform.orbits.determination.held_back import (
    elements_held_back,
    prediction_rms,
    set_states,
)
from sda_platform.orbits.determination.track_elements import SPAN_S, NoFit, elements_of_states, elements_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.held_back_tracks import (
    LATER_NS,
    TIME_NS,
    of_catalogue,
    published,
    states,
    track,
    truth,
    windows,
)
from sda_platform_tests.support.scenes import SECOND_NS

HOUR_NS = 3600 * SECOND_NS


def error_km(elements: Propagator) -> float:
    """Root mean square of the day after the last window."""
    return float(np.sqrt(np.mean(np.sum((states(elements, LATER_NS) - truth()[2])[:, :3] ** 2, axis=1))))


def test_states_of_known_elements_give_them_back() -> None:
    """Drag too, which the set that they are made like has twice as large."""
    known = of_catalogue().elements
    time_ns = int(known.epoch_time_ns[0]) + np.arange(0, 4 * SPAN_S, 600, dtype=np.int64) * SECOND_NS
    like = dataclasses.replace(known, bstar_per_earth_radius=2 * known.bstar_per_earth_radius)
    elements, off_km = elements_of_states(states(of_catalogue(), time_ns), time_ns, like)
    assert off_km < 0.02
    assert elements.norad_id.tolist() == [43013]
    assert elements.mean_motion_rev_per_day == pytest.approx(known.mean_motion_rev_per_day, abs=1e-6)
    assert elements.eccentricity == pytest.approx(known.eccentricity, abs=1e-6)


def test_elements_of_a_track_are_almost_as_good_as_a_set_can_be_and_claim_their_error() -> None:
    made = elements_of_track(track(published()), published(), CONSTANT_DYNAMICS)
    best = Propagator(elements_of_states(truth()[2], LATER_NS, of_catalogue().elements)[0])
    off_km = error_km(Propagator(made.elements))
    assert error_km(best) <= off_km < 1.1 * error_km(best)
    assert off_km < error_km(published())
    assert 0.4 * made.sigma_km < off_km < 1.5 * made.sigma_km
    assert made.sigma_km < made.published_sigma_km
    assert made.elements.epoch_time_ns[0] == TIME_NS[-1] // 1000 * 1000


def test_a_published_set_that_is_off_loses() -> None:
    anomaly = published().elements.mean_anomaly_deg + 0.1
    off = Propagator(dataclasses.replace(published().elements, mean_anomaly_deg=anomaly))
    found = elements_held_back(windows(off), off)
    assert found.windows == 6
    assert found.is_better


def test_a_published_set_that_is_as_good_as_a_set_can_be_is_not_replaced() -> None:
    """The best set of the day predicts the held-back windows about as well as what is made of the others."""
    span_ns, span = (np.concatenate(parts) for parts in ((TIME_NS, LATER_NS), truth()[1:]))
    best = Propagator(elements_of_states(span, span_ns, of_catalogue().elements)[0])
    assert not elements_held_back(windows(best), best).is_better


def test_a_set_that_sgp4_refuses_predicts_nothing_and_is_not_refined() -> None:
    refused = Propagator(dataclasses.replace(published().elements, mean_motion_rev_per_day=np.array([19.0])))
    seen = windows(published())
    assert prediction_rms(seen, set_states(refused, seen)) == float("inf")
    with pytest.raises(NoFit, match="SGP4 refuses the published set"):
        elements_of_track(track(published()), refused, CONSTANT_DYNAMICS)


def test_a_track_that_meets_the_ground_gives_no_set() -> None:
    slow = track(published())
    fallen = dataclasses.replace(slow, state=slow.state * np.array([1, 1, 1, 0.5, 0.5, 0.5]))
    with pytest.raises(NoFit, match="no closed orbit"):
        elements_of_track(fallen, published(), CONSTANT_DYNAMICS)
