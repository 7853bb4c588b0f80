"""After a small burn that shows late, tracks of high orbits are as accurate as they claim (truth: satkit)."""

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import HOUR_NS, REGIMES, SEEN_NS, Burn, observed

OBJECTS, AHEAD_S = 3, 7200
BURN_NS = SEEN_NS + 4 * HOUR_NS


@pytest.mark.skipif(not satkit_truth.AVAILABLE, reason=satkit_truth.WHY_NOT)
@pytest.mark.parametrize("regime", ["medium", "geostationary"])
def test_the_sigmas_after_a_burn_of_20_cm_s_hold(regime: str) -> None:
    """Windows between the burn and the first that contradicts the track are after the burn, up to three hours long."""
    rng = np.random.default_rng([5, REGIMES.index(regime)])
    squares: list[float] = []
    late_s: list[float] = []
    while len(squares) < OBJECTS:
        burn = Burn(BURN_NS, 2e-4)
        seen = observed(regime, rng, hours=8, later_s=(AHEAD_S,), burn=burn)
        if seen is None or not seen.fits.epoch_ns[0] < BURN_NS < seen.fits.epoch_ns[-1]:
            continue
        track = filter_tracks(seen.fits, seen.published, [0])
        if track.manoeuvre_ns[0] <= BURN_NS:
            continue
        orbit = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
        state, covariance = orbit.at(CONSTANT_DYNAMICS, track.epoch_ns + AHEAD_S * 10**9).in_teme()
        off = state[0, :3] - seen.later[0, :3]
        squares.append(float(off @ np.linalg.solve(covariance[0, :3, :3], off)))
        late_s.append((track.manoeuvre_ns[0] - BURN_NS) / 1e9)
    assert max(late_s) > 600, "several windows come between"
    assert np.mean(squares) < chi2.ppf(0.999, 3 * OBJECTS) / OBJECTS, squares
