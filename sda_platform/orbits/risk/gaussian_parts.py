"""Passes of objects whose errors have long tails, as passes with Gaussian errors of several sizes and their weights."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.long_tails import Tails, scaled, sizes
from sda_platform.orbits.risk.probability import ShortEncounterRisk, assess, collision_probability_2d
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.encounter import encounter_plane

# Pairs of sizes less likely than this are left out.
_LEAST_WEIGHT = 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """``m`` passes with Gaussian errors that make up others.

    Attributes:
        passes: the passes (m,), without tails.
        owner: (m,) row of the pass that each is a part of, ascending.
        weight: (m,) how likely its sizes are; the sum of each pass is one.
    """

    passes: Encounters
    owner: IntArray
    weight: FloatArray

    def summed(self, values: FloatArray, count: int) -> FloatArray:
        """Return the mean (count,) of ``values`` (m,) over the parts of each pass; NaN where one is NaN."""
        return np.asarray(np.bincount(self.owner, self.weight * values, minlength=count), dtype=np.float64)


def parts_of(passes: Encounters) -> Parts:
    """Split passes (n,) into Gaussian ones; a pass without long tails is its own only part."""
    rows = np.arange(len(passes.radius_km))
    whole = dataclasses.replace(passes, tails=None)
    if passes.tails is None or all(np.isinf(each.degrees).all() for each in passes.tails):
        return Parts(whole, rows, np.ones(len(rows)))
    (weight_1, variance_1), (weight_2, variance_2) = (sizes(each.degrees) for each in passes.tails)
    both = weight_1[:, :, None] * weight_2[:, None, :]
    owner, first, second = np.nonzero(both > _LEAST_WEIGHT)
    weight = both[owner, first, second]
    weight /= np.bincount(owner, weight, minlength=len(rows))[owner]
    parts = whole.take(owner)
    covariance_1 = _sized(parts.covariance_1, passes.tails[0], owner, variance_1[owner, first])
    covariance_2 = _sized(parts.covariance_2, passes.tails[1], owner, variance_2[owner, second])
    return Parts(dataclasses.replace(parts, covariance_1=covariance_1, covariance_2=covariance_2), owner, weight)


def _sized(covariance: FloatArray, tails: Tails, owner: IntArray, variance: FloatArray) -> FloatArray:
    # A Gaussian stays as it is to the last bit.
    is_sized = variance != 1.0
    found = covariance.copy()
    found[is_sized] = scaled(covariance[is_sized], tails.take(owner[is_sized]), variance[is_sized])
    return found


def probability_2d(passes: Encounters) -> FloatArray:
    """Return the 2D probability of collision (n,) of passes, over all sizes of their errors."""
    parts = parts_of(passes)
    return parts.summed(straight_probability(parts.passes)[0], len(passes.radius_km))


def assess_passes(passes: Encounters) -> ShortEncounterRisk:
    """Return the 2D risk of passes (n,) over all sizes of their errors; as `probability.assess` of the stated Gaussians
    in all but the probability.
    """
    return stated_risk(passes).over_sizes(probability_2d(passes))


def stated_risk(passes: Encounters) -> ShortEncounterRisk:
    """Return the 2D risk of passes (n,) as if their covariances were those of Gaussian errors."""
    position = (passes.covariance_1 + passes.covariance_2)[:, :3, :3]
    return assess(passes.dr_km, passes.dv_km_s, position, 1000 * passes.radius_km)


def straight_probability(passes: Encounters) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the 2D probability (n,) of passes with Gaussian errors, and whether the covariance was repaired."""
    plane = encounter_plane(passes.dr_km, passes.dv_km_s, (passes.covariance_1 + passes.covariance_2)[:, :3, :3])
    lengths = plane.x_km, plane.y_km, plane.sigma_x_km, plane.sigma_y_km, passes.radius_km
    return collision_probability_2d(*(1000 * each for each in lengths)), plane.repaired
