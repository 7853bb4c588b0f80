"""Uncatalogued objects on orbits of an independent implementation (satkit): errors as claimed, and numbers kept."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.space_weather import read_space_weather
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import REGIMES
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.scenes import SECOND_NS
from sda_platform_tests.support.uncatalogued import Body, errors, observed, processed

pytestmark = pytest.mark.skipif(not satkit_truth.AVAILABLE, reason=satkit_truth.WHY_NOT)
AHEAD_NS = np.array([0, 1_800, 7_200]) * SECOND_NS
OBJECTS, HOURS = 6, 6


@pytest.mark.parametrize("regime", sampled(REGIMES, "low"))
def test_first_orbits_err_as_they_claim_and_later_passes_keep_their_number(regime: str) -> None:
    """Of six objects in six hours, at the epoch and up to two hours ahead."""
    dynamics = Dynamics(read_space_weather(satkit_truth.weather_file()))
    rng = np.random.default_rng([4, REGIMES.index(regime)])
    bodies = [Body.random(regime, rng) for _ in range(OBJECTS)]
    first, counts = processed(pa.concat_tables(observed(bodies, regime, HOURS, rng)), HOURS, dynamics)
    squares = [
        errors(bodies[number], row, row["epoch_time_ns"] + AHEAD_NS, dynamics).square for number, row in first.items()
    ]
    low, high = chi2.ppf([1e-3, 1 - 1e-3], 6 * len(squares)) / len(squares)
    assert len(squares) >= 2
    assert (np.mean(squares, axis=0) < high).all()
    assert (np.mean(squares, axis=0) > low).all()
    assert counts.mixed == counts.wrong == 0
    assert counts.kept >= 0.8 * counts.due
