"""Realised gain: what the observations of a task changed, in the measure of what was expected of it."""

from typing import Any

import numpy as np
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.fusion.tables import STATE_COLUMNS, lower_triangles
from sda_platform.orbits.two_body import two_body_state
from sda_platform.tasking.information import (
    FIX_POSITION_SIGMA_KM,
    FIX_VELOCITY_SIGMA_KM_S,
    believed,
    expected_pass,
    position_gain,
    sphere_gain,
)
from sda_platform.tasking.realised_gains import AttributedFit, realised_gain
from sda_platform.units import SECOND_NS

STATE = np.array([[7000.0, 0.0, 0.0, 0.0, 5.0, 5.6]])
OTHER = np.array([[7000.2, 0.1, 0.0, 0.0, -5.0, 5.6]])
WIDE = np.diag([0.5**2, 3.0**2, 0.3**2, 1e-6, 1e-7, 1e-7])[None]
FIX = np.diag([FIX_POSITION_SIGMA_KM**-2] * 3 + [FIX_VELOCITY_SIGMA_KM_S**-2] * 3)
TCA_NS = 10**15


def fit(prior: FloatArray, information: FloatArray, *, before_tca_s: float = 0.0, share: float = 1.0) -> AttributedFit:
    """A fit whose observations brought ``information``, of the object of STATE."""
    fitted = np.asarray(np.linalg.inv(np.linalg.inv(prior) + information), dtype=np.float64)
    state = np.concatenate(two_body_state(STATE[:, :3], STATE[:, 3:], -before_tca_s), axis=1)[0]
    row: dict[str, Any] = {
        "epoch_time_ns": TCA_NS - round(before_tca_s * SECOND_NS),
        **dict(zip(STATE_COLUMNS, state.tolist(), strict=True)),
        "covariance": lower_triangles(fitted[None])[0].tolist(),
        "predicted_covariance": lower_triangles(prior[None])[0].tolist(),
    }
    return AttributedFit(row, share)


def prior(seed: int, size_km: float = 2.0) -> FloatArray:
    mixed = np.random.default_rng(seed).normal(size=(6, 6))
    scale = np.diag([size_km] * 3 + [size_km * 1e-3] * 3)
    return np.asarray(scale @ (mixed @ mixed.T + np.eye(6)) @ scale)


def encounter() -> dict[str, Any]:
    terms = lower_triangles(np.concatenate([WIDE, 0.01 * WIDE])).tolist()
    return {"norad_id_1": 5, "tca_time_ns": TCA_NS, "state_1": STATE[0].tolist(), "state_2": OTHER[0].tolist(),
            "covariance_1": terms[0], "covariance_2": terms[1], "hard_body_radius_m": 10.0}  # fmt: skip


@pytest.mark.parametrize("lead_s", [600.0, 3600.0, 5 * 3600.0])
@pytest.mark.parametrize("seed", range(5))
def test_observations_worth_the_expected_pass_realise_the_expected_gain_of_a_conjunction(
    seed: int, lead_s: float
) -> None:
    found = expected_pass(assessed_pass(encounter()), np.array([lead_s]))
    made = realised_gain(5, 0.0, [fit(prior(seed), FIX, before_tca_s=lead_s)], encounter())
    assert made == pytest.approx(float(found.gain[0]), abs=0.011)


@pytest.mark.parametrize("sigma_km", [0.1, 1.0, 20.0])
def test_observations_worth_the_expected_pass_realise_the_expected_gain_of_a_track(sigma_km: float) -> None:
    expected = float(position_gain(sigma_km))
    # What the scheduler knows of the track is its size: with the same uncertainty along each axis the two agree.
    round_one = np.diag([1.0] * 3 + [1e-6] * 3)
    assert realised_gain(5, expected, [fit(round_one, FIX)], None) == pytest.approx(expected, abs=0.011)
    assert believed([expected], round_one[None])[0, :3, :3].trace() == pytest.approx(sigma_km**2)


@pytest.mark.parametrize("sigma_km", [0.0, 1e-4, 0.003, 0.006])
def test_a_gain_that_was_expected_to_be_next_to_nothing_is_realised_as_a_number(sigma_km: float) -> None:
    expected = round(float(position_gain(sigma_km)), 2)
    made = realised_gain(5, expected, [fit(np.diag([1.0] * 3 + [1e-6] * 3), FIX)], None)
    assert made is not None and 0.0 <= made <= 0.02


def test_two_sensors_in_one_fit_share_what_it_brought() -> None:
    whole = realised_gain(5, 0.0, [fit(prior(1), FIX, before_tca_s=600.0)], encounter())
    half = realised_gain(5, 0.0, [fit(prior(1), FIX, before_tca_s=600.0, share=0.5)], encounter())
    both = [fit(prior(seed), FIX, before_tca_s=600.0, share=0.5) for seed in (1, 2)]
    assert whole is not None
    assert half is not None
    assert 0 < half < whole
    assert realised_gain(5, 0.0, both, encounter()) == pytest.approx(whole, abs=0.011)


def test_worse_observations_realise_less_and_none_nothing() -> None:
    gains = [realised_gain(5, 4.0, [fit(prior(3), each * FIX)], None) for each in (4.0, 1.0, 0.01)]
    assert gains == sorted(gains, key=lambda each: -(each or 0.0))
    assert len(set(gains)) == 3
    assert realised_gain(5, 4.0, [], None) == 0.0
    assert realised_gain(5, 4.0, [fit(prior(3), np.zeros((6, 6)))], None) == 0.0


def test_the_gain_is_not_known_without_the_states_before() -> None:
    unknown = fit(prior(4), FIX)
    assert realised_gain(5, 1.0, [AttributedFit({**unknown.row, "predicted_covariance": None}, 1.0)], None) is None
    assert realised_gain(5, 1.0, [unknown], {**encounter(), "covariance_2": None}) is None


def test_a_position_known_twice_as_well_has_a_gain_of_twice_ln_2() -> None:
    assert sphere_gain(4 * WIDE, WIDE) == pytest.approx(2 * np.log(2))
