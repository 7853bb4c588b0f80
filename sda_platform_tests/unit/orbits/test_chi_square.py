"""The chi-square distribution equals that of `scipy.stats` to the last bit: replays of older commits rest on it."""

import numpy as np
from scipy.stats import chi2

from sda_platform.orbits.chi_square import share_above, share_below, square_exceeded_by, square_holding

DEGREES = np.arange(1, 40)[:, None]
SQUARES = np.concatenate([np.linspace(0.0, 200.0, 997), [np.nan, np.inf, -1e-18]])
SHARES = np.concatenate([np.geomspace(1e-15, 0.5, 200), 1 - np.geomspace(1e-15, 0.5, 200)])


def test_shares_and_squares_are_those_of_scipy_stats() -> None:
    np.testing.assert_array_equal(share_below(SQUARES, DEGREES), chi2.cdf(SQUARES, DEGREES))
    np.testing.assert_array_equal(share_above(SQUARES, DEGREES), chi2.sf(SQUARES, DEGREES))
    np.testing.assert_array_equal(square_exceeded_by(SHARES, DEGREES), chi2.isf(SHARES, DEGREES))
    np.testing.assert_array_equal(square_holding(SHARES, DEGREES), chi2.ppf(SHARES, DEGREES))
