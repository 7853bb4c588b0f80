"""Passes of objects whose errors have long tails, as passes with Gaussian errors of several sizes and their weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.long_tails import GAUSSIAN, NEARLY_GAUSSIAN, Tails, scaled, sizes
from sda_platform.orbits.risk.probability import ShortEncounterRisk, assess, collision_probability_2d
from sda_platform.orbits.risk.validity import Encounters, missing_covariances
from sda_platform.orbits.screening.encounter import across_velocity, encounter_plane

# Pairs of sizes that add less to Pc than this part of what the largest one adds are left out, unless they are likely.
_LEAST_ADDED, _LEAST_WEIGHT = 3e-4, 0.01
# Of a matrix with unit variances: a more negative eigenvalue is not by rounding, or by the digits of a message.
_ROUNDED = 1e-6
_CHUNK = 5_000


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """``m`` passes with Gaussian errors that make up others.

    Attributes:
        passes: the passes (m,), without tails.
        owner: (m,) row of the pass that each is a part of, ascending.
        weight: (m,) how likely its sizes are. The sum of each pass is below one where unlikely sizes add nothing to Pc.
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
    if passes.tails is None:
        return Parts(whole, rows, np.ones(len(rows)))
    missing, covariances = missing_covariances(passes), (passes.covariance_1, passes.covariance_2)
    tails = [possible_tails(*each) for each in zip(passes.tails, covariances, missing, strict=True)]
    if all(np.isinf(each.degrees).all() for each in tails):
        return Parts(whole, rows, np.ones(len(rows)))
    is_missing = np.asarray(missing.any(axis=0))
    found = [
        _pairs(whole.take(chunk), [each.take(chunk) for each in tails], is_missing[chunk])
        for chunk in np.split(rows, range(_CHUNK, len(rows), _CHUNK))
    ]
    owner = np.concatenate([pairs[0] + start for pairs, start in zip(found, range(0, len(rows), _CHUNK), strict=True)])
    weight, variance_1, variance_2 = (np.concatenate([pairs[n] for pairs in found]) for n in (1, 2, 3))
    parts = whole.take(owner)
    covariance_1 = _sized(parts.covariance_1, tails[0], owner, variance_1)
    covariance_2 = _sized(parts.covariance_2, tails[1], owner, variance_2)
    return Parts(dataclasses.replace(parts, covariance_1=covariance_1, covariance_2=covariance_2), owner, weight)


def possible_tails(tails: Tails, covariance: FloatArray, is_missing: npt.NDArray[np.bool_]) -> Tails:
    """Return the tails that states with these covariances (n, 6, 6) can have.

    What has no usable number of degrees of freedom, or a covariance that ``is_missing`` (n,), is Gaussian. A covariance
    that is smaller than the part that is Gaussian in any case was not made with it: all of it has the tail.
    """
    is_tailed = (tails.degrees > 0) & (tails.degrees < NEARLY_GAUSSIAN) & ~is_missing
    is_tailed &= np.isfinite(tails.steady).all(axis=(1, 2)) & np.isfinite(covariance).all(axis=(1, 2))
    steady, rows = tails.steady.copy(), np.flatnonzero(is_tailed)
    sigma = np.sqrt(np.maximum(np.diagonal(covariance[rows], axis1=1, axis2=2), 1e-60))
    rest = (covariance[rows] - steady[rows]) / (sigma[:, :, None] * sigma[:, None, :])
    steady[rows[np.linalg.eigvalsh(rest)[:, 0] < -_ROUNDED]] = 0.0
    return Tails(np.where(is_tailed, tails.degrees, GAUSSIAN), steady)


def _pairs(
    passes: Encounters, tails: Sequence[Tails], is_missing: npt.NDArray[np.bool_]
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the owners, the weights, and both objects' variances of the pairs of sizes that count, each (m,)."""
    across = across_velocity(passes.dv_km_s)
    projected = [
        across @ each[:, :3, :3] @ across.swapaxes(-1, -2)
        for each in (passes.covariance_1, tails[0].steady, passes.covariance_2, tails[1].steady)
    ]
    miss = np.einsum("nij,nj->ni", across, passes.dr_km)
    # As far as the surfaces are apart.
    distance = np.linalg.norm(miss, axis=1)
    miss *= (np.maximum(distance - passes.radius_km, 0.0) / np.where(distance > 0, distance, 1.0))[:, None]
    squared = _squared_distance(miss, projected[0] + projected[2])
    (weight_1, variance_1), (weight_2, variance_2) = (sizes(each.degrees, squared) for each in tails)
    weight = weight_1[:, :, None] * weight_2[:, None, :]
    combined = (
        scaled(projected[0][:, None], projected[1][:, None], variance_1)[:, :, None]
        + scaled(projected[2][:, None], projected[3][:, None], variance_2)[:, None]
        + (passes.radius_km**2)[:, None, None, None, None] * np.eye(2)
    )
    with np.errstate(all="ignore"):
        density = _squared_distance(miss[:, None, None], combined) + np.log(np.linalg.det(combined))
        added = np.nan_to_num(np.log(weight) - 0.5 * density, nan=-np.inf, neginf=-np.inf)
    counts = added >= added.max(axis=(1, 2), keepdims=True) + np.log(_LEAST_ADDED)
    counts |= is_missing[:, None, None] | (weight >= _LEAST_WEIGHT)
    owner, first, second = np.nonzero(counts & (weight > 0))
    return owner, weight[owner, first, second], variance_1[owner, first], variance_2[owner, second]


def _squared_distance(miss: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return squared distances (...) in sigmas, of covariances (..., 2, 2)."""
    x, y, xx, xy, yy = miss[..., 0], miss[..., 1], covariance[..., 0, 0], covariance[..., 0, 1], covariance[..., 1, 1]
    with np.errstate(all="ignore"):
        found = (yy * x**2 - 2 * xy * x * y + xx * y**2) / (xx * yy - xy**2)
    return np.nan_to_num(np.maximum(found, 0.0), nan=0.0, posinf=1e12)


def _sized(covariance: FloatArray, tails: Tails, owner: IntArray, variance: FloatArray) -> FloatArray:
    # A Gaussian stays as it is to the last bit.
    is_sized = variance != 1.0
    found = covariance.copy()
    found[is_sized] = scaled(covariance[is_sized], tails.steady[owner[is_sized]], variance[is_sized])
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
