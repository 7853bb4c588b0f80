"""An impulse at an unknown time is found from windows that each tell little, with an honest covariance."""

import numpy as np
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.tracking.impulse_fit import Impulse, fit_impulse

SECOND_NS = 1_000_000_000
START_NS = 1_730_419_200 * SECOND_NS
WINDOWS_S = np.array([30, 120, 210, 300, 420, 510, 600])
BURN_S, CONTRADICTED_S = 95, 210
DIRECTION_SIGMA_KM, STARTS = 0.05, 40
ORBIT = np.array([6900.0, 0.0, 0.0, 0.0, 4.5, 6.1])


def before() -> UncertainOrbits:
    sigma = np.array([0.05] * 3 + [1e-4] * 3 + [0.01, 0.02])
    return UncertainOrbits(np.array([START_NS]), ORBIT[None], np.array([[0.02, 0.02]]), np.diag(sigma**2)[None])


def path(time_ns: IntArray, kick_km_s: FloatArray) -> FloatArray:
    """States (k, 6) of the orbit with a change of velocity at BURN_S."""
    dynamics, areas = CONSTANT_DYNAMICS, before().coefficients
    burn_ns = np.array([START_NS + BURN_S * SECOND_NS])
    plain = dynamics.states(ORBIT[None], areas, before().epoch_ns, time_ns[None])[0]
    moved = dynamics.states(ORBIT[None], areas, before().epoch_ns, burn_ns[None])[:, 0]
    moved[:, 3:] += kick_km_s
    after = dynamics.states(moved, areas, burn_ns, np.maximum(time_ns, burn_ns)[None])[0]
    return np.asarray(np.where((time_ns > burn_ns)[:, None], after, plain))


def fitted(states: FloatArray, time_ns: IntArray, rng: np.random.Generator) -> Impulse | None:
    """From directions with noise: each window knows the two components of the position across a line of sight."""
    information, vector = np.zeros((len(time_ns), 8, 8)), np.zeros((len(time_ns), 8))
    reference = path(time_ns, np.zeros(3))
    for number, off in enumerate(states - reference):
        line = rng.normal(size=3)
        across = np.eye(3) - np.outer(line, line) / (line @ line)
        seen = across @ (off[:3] + DIRECTION_SIGMA_KM * rng.normal(size=3))
        information[number, :3, :3] = across / DIRECTION_SIGMA_KM**2
        vector[number, :3] = seen / DIRECTION_SIGMA_KM**2
    until_ns = START_NS + CONTRADICTED_S * SECOND_NS
    return fit_impulse(before(), time_ns, information, vector, reference, until_ns, CONSTANT_DYNAMICS)


@pytest.mark.parametrize("speed_m_s", [2.0, 10.0, 60.0])
def test_an_impulse_is_found_from_directions_as_well_as_it_claims(speed_m_s: float) -> None:
    time_ns = START_NS + WINDOWS_S * SECOND_NS
    errors, squares = [], []
    for seed in range(STARTS):
        rng = np.random.default_rng(seed)
        kick = rng.normal(size=3)
        kick *= speed_m_s / 1e3 / np.linalg.norm(kick)
        truth = path(time_ns, kick)
        found = fitted(truth, time_ns, rng)
        assert found is not None
        off = found.orbit.state[0] - truth[-1]
        squares.append(off @ np.linalg.solve(found.orbit.covariance[0, :6, :6], off))
        errors.append(1e3 * np.linalg.norm(off[3:]))
        assert abs(1e3 * found.speed_km_s - speed_m_s) < 5e3 * found.sigma_km_s
    assert np.median(errors) < 0.5, "of 10 m/s and more, a small part; with two directions a minute"
    assert 3.0 < np.mean(squares) < 9.0, "six components"


def test_windows_that_no_impulse_explains_give_no_fit() -> None:
    time_ns = START_NS + WINDOWS_S * SECOND_NS
    states = path(time_ns, np.array([0.01, 0.0, 0.0]))
    states[3::2, :3] += 2.0
    assert fitted(states, time_ns, np.random.default_rng(1)) is None
