"""Burns along the track that take an encounter below a Pc: each is judged by moving the satellite itself."""

from typing import Any

import numpy as np
import pytest

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.conjunction.burn_options import burn_options
from sda_platform.conjunction.encounter_figures import by_sigma_factor, dilution_figure, encounter_geometry
from sda_platform.conjunction.history import EventHistory
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.probability import assess
from sda_platform.orbits.two_body import two_body_state
from sda_platform.setting_sections import AlertSettings
from sda_platform.units import HOUR_NS
from sda_platform_tests.support.encounters import TCA_NS, assessed
from sda_platform_tests.support.segments import START_NS

GOAL = 1e-6


def probability_after(last: dict[str, Any], n: int, time_ns: int, dv_m_s: float) -> float:
    """2D Pc after a burn along the velocity of object ``n``, by two-body motion to the old TCA."""
    states = {each: np.array(last[f"state_{each}"]) for each in (1, 2)}
    lead_s = (last["tca_time_ns"] - time_ns) / 1e9
    r, v = two_body_state(states[n][None, :3], states[n][None, 3:], -lead_s)
    r, v = two_body_state(r, v + v / np.linalg.norm(v) * dv_m_s / 1000, lead_s)
    states[n] = np.concatenate([r[0], v[0]])
    dr, dv = (states[2] - states[1])[:3], (states[2] - states[1])[3:]
    _, _, covariances = encounter_geometry(last)
    return float(assess(dr, dv, sum(covariances), last["hard_body_radius_m"]).probability[0])


@pytest.mark.parametrize("n", [1, 2])
def test_each_burn_reaches_the_goal_and_a_smaller_one_does_not(n: int) -> None:
    last = assessed(0)
    found = burn_options(last, GOAL, START_NS, [n])
    assert [each.revolutions for each in found] == [0.5, 1.5, 2.5, 4.5, 8.5], "16.5 revolutions ago is past"
    for each in found:
        assert each.norad_id == last[f"norad_id_{n}"]
        assert probability_after(last, n, each.time_ns, each.dv_m_s) == pytest.approx(each.probability, rel=0.2)
        assert each.probability <= GOAL < probability_after(last, n, each.time_ns, 0.9 * each.dv_m_s)
    assert [abs(each.dv_m_s) for each in found] == sorted((abs(each.dv_m_s) for each in found), reverse=True)


def test_no_burn_is_in_the_past_and_none_is_stated_where_one_metre_a_second_is_too_little() -> None:
    assert burn_options(assessed(0), GOAL, TCA_NS, [1]) == []
    (only,) = burn_options(assessed(0), GOAL, TCA_NS - HOUR_NS, [1])
    assert only.revolutions == 0.5
    assert burn_options(assessed(0, hard_body_radius_m=2e4), GOAL, TCA_NS - HOUR_NS, [1]) == []


def test_the_largest_pc_of_the_curve_is_the_stored_one_where_errors_are_gaussian() -> None:
    one = assessed_pass(assessed(0))
    best = best_probabilities(one).two_dimensional
    _, largest, factor = by_sigma_factor(one, np.array([1.0, 3.0]))
    assert (largest, factor) == (best.maximum_probability[0], best.maximum_sigma_scale[0])
    tailed = assessed_pass(assessed(0, degrees_of_freedom_2=1.2))
    found, largest, factor = by_sigma_factor(tailed, np.array([1.0, 3.0]))
    assert largest == found.max() and factor in (1.0, 3.0)


def test_the_dilution_curve_states_our_pc_and_the_largest_with_its_scale() -> None:
    history = EventHistory.of_correction_log([assessed(0)], (), AlertPolicy(AlertSettings()))
    dr, dv = [0.3, 0.0, 0.0], [0.0, -7.546, 7.546]
    _, _, covariances = encounter_geometry(assessed(0))
    risk = assess(dr, dv, sum(covariances), 10.0)
    text = dilution_figure(history)
    assert f"{risk.probability[0]:.1e}" in text and f"{risk.maximum_probability[0]:.1e}" in text
    assert f"{risk.maximum_sigma_scale[0]:.2g} times the sigmas" in text
