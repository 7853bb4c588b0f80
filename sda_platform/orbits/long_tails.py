"""Long tails: errors by Student's t distribution, stated by the ellipsoid that holds 95 %, and split into Gaussians.

How large the errors of an object's element sets are is known only by its history. While that is short, and where sets
err in other ways than before, errors of ten sigmas are common. Student's t distribution is a Gaussian whose size is not
known, so an average over it is an average over Gaussians of several sizes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import special

from sda_platform.arrays import FloatArray
from sda_platform.orbits.chi_square import square_holding

GAUSSIAN: Final = float("inf")
"""Degrees of freedom of a Gaussian."""
HELD: Final = 0.95
"""The part of errors that lies inside the 95 % ellipsoid of a covariance of `element_errors`."""
_AXES: Final = 3
NEARLY_GAUSSIAN: Final = 200.0
"""With so many degrees of freedom Pc differs from a Gaussian's by less than 3 % up to three sigmas."""
# Gaussians of a distribution: Pc is within 2 % of the integral over all sizes, from 1 to 6 degrees of freedom and up to
# a miss of 30 sigmas.
_SIZES: Final = 12
# Of the logarithm of the precision: how far the sizes reach, in its standard deviations before and after a miss is
# known, and in itself.
_BELOW, _BELOW_AFTERWARDS, _ABOVE, _LEAST, _GREATEST = 4.5, 3.5, 2.6, -20.0, 2.5


@dataclasses.dataclass(frozen=True, eq=False)
class Tails:
    """How the errors of ``n`` states are distributed.

    Attributes:
        degrees: (n,) degrees of freedom; GAUSSIAN: no long tail.
        steady: (n, 6, 6) the part of each covariance that is Gaussian in any case, in the axes of the covariance.
    """

    degrees: FloatArray
    steady: FloatArray

    def with_steady(self, covariance: FloatArray) -> Tails:
        """Return those of states with further errors, Gaussian ones with this ``covariance`` (n, 6, 6)."""
        return Tails(self.degrees, self.steady + covariance)

    def take(self, rows: npt.NDArray[Any]) -> Tails:
        """Select states by their numbers or a mask."""
        return Tails(self.degrees[rows], self.steady[rows])


def widening(degrees: FloatArray, held: float = HELD) -> FloatArray:
    """Return the variance (n,) of the Gaussian whose ellipsoid of a part ``held`` holds that part, in units of the
    squared scale of t.
    """
    # The inverse takes long, and objects with equally long histories have equal degrees of freedom.
    different, place = np.unique(degrees, return_inverse=True)
    with np.errstate(invalid="ignore"):
        square = _AXES * special.fdtri(_AXES, different, held)
    return np.asarray(np.where(np.isinf(different), 1.0, square / square_holding(held, _AXES)))[place]


def share_inside(squared_distance: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return the part of errors (n,) nearer than a squared distance (n,) in sigmas of the 95 % covariance."""
    with np.errstate(invalid="ignore"):
        inside = special.fdtr(_AXES, degrees, squared_distance * widening(degrees) / _AXES)
    return np.asarray(np.where(np.isinf(degrees), special.gammainc(_AXES / 2, squared_distance / 2), inside))


def sizes(degrees: FloatArray, squared_distance: npt.ArrayLike = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return weights and variances (n, k) of the Gaussians that make up the distribution.

    Variances are in units of that of the Gaussian with the same 95 % ellipsoid. They reach to the sizes that explain an
    error of ``squared_distance`` (n,) in its squared sigmas. A Gaussian is itself, with weights 0 of the others.
    """
    is_gaussian = np.isinf(degrees)
    half, wide = np.where(is_gaussian, 1.0, degrees) / 2, widening(degrees)
    spread, middle = np.sqrt(special.polygamma(1, half)), special.digamma(half) - np.log(half)
    # Given an error in the encounter plane, the precision follows a gamma distribution again.
    rate = half + wide * np.asarray(squared_distance) / 2
    afterwards = special.digamma(half + 1) - np.log(rate)
    least = np.minimum(
        middle - _BELOW * spread, afterwards - _BELOW_AFTERWARDS * np.sqrt(special.polygamma(1, half + 1))
    )
    greatest = np.minimum(middle + _ABOVE * spread, _GREATEST)
    # Each row of contiguous memory, so that no sum depends on how many there are.
    log_precision = np.ascontiguousarray(np.linspace(np.maximum(least, _LEAST), greatest, _SIZES, axis=1))
    log_weight = half[:, None] * (log_precision - np.exp(log_precision))
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    variance = np.exp(-log_precision) / wide[:, None]
    weight[is_gaussian], variance[is_gaussian] = np.eye(_SIZES)[0], 1.0
    return weight, variance


def scaled(covariance: FloatArray, steady: FloatArray, variance: FloatArray) -> FloatArray:
    """Return covariances (..., k, k) whose part with a long tail, all but ``steady``, is ``variance`` (...) times as
    large.
    """
    return np.asarray(variance[..., None, None] * covariance + (1 - variance[..., None, None]) * steady)
