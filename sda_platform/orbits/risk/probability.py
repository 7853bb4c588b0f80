"""Probability of collision of a close approach (short-encounter, 2D methods).

Relative motion is taken as straight and the covariance as constant during the encounter. Where that does not hold,
``best_probability`` flags it and uses another method.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.screening.encounter import encounter_plane

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# Beyond this drop of the exponent below its peak the integrand adds less than 1e-17 of the result.
_NEGLIGIBLE_EXPONENT = 40.0
_ROOT_HALF = math.sqrt(0.5)
# Of the variance along the miss, in units of the squared miss: neighbours differ by 0.1 % of the probability.
_LENGTHS: list[float] = np.geomspace(0.1, 10.0, 41).tolist()
_GOLDEN = (np.sqrt(5.0) - 1) / 2


@dataclasses.dataclass(frozen=True, eq=False)
class ShortEncounterRisk:
    """2D risk of ``n`` passes, each column (n,).

    Attributes:
        probability: 2D probability of collision with the given covariances.
        maximum_probability: its maximum over a common scaling of the combined covariance.
        maximum_sigma_scale: the factor on the sigmas that gives the maximum; below one the probability is diluted: a
            smaller covariance could raise it.
        mahalanobis_distance: miss in sigmas.
        covariance_repaired: the projected covariance was indefinite or vanishing and was raised.
    """

    probability: FloatArray
    maximum_probability: FloatArray
    maximum_sigma_scale: FloatArray
    mahalanobis_distance: FloatArray
    covariance_repaired: npt.NDArray[np.bool_]

    def with_maximum(self, known: FloatArray) -> ShortEncounterRisk:
        """Replace the maximum by ``known`` (n,), or the probability if that is larger, where ``known`` is not NaN; no
        scaling gives it.
        """
        has = ~np.isnan(known)
        return dataclasses.replace(
            self,
            maximum_probability=np.where(has, np.fmax(known, self.probability), self.maximum_probability),
            maximum_sigma_scale=np.where(has, np.nan, self.maximum_sigma_scale),
        )

    def over_sizes(self, probability: FloatArray) -> ShortEncounterRisk:
        """Replace the probability by that (n,) over all sizes of the errors; the maximum is never below it.

        Where it would be, the probability takes its place, and no scaling gives it.
        """
        is_larger = probability > self.maximum_probability
        return dataclasses.replace(
            self,
            probability=probability,
            maximum_probability=np.where(is_larger, probability, self.maximum_probability),
            maximum_sigma_scale=np.where(is_larger, np.nan, self.maximum_sigma_scale),
        )

    def spread(self, rows: IntArray, count: int) -> ShortEncounterRisk:
        """Place these results at ``rows`` of ``count``; the other rows are NaN, and not repaired."""
        repaired = np.zeros(count, dtype=np.bool_)
        repaired[rows] = self.covariance_repaired

        def column(values: FloatArray) -> FloatArray:
            spread = np.full(count, np.nan)
            spread[rows] = values
            return spread

        return ShortEncounterRisk(
            column(self.probability),
            column(self.maximum_probability),
            column(self.maximum_sigma_scale),
            column(self.mahalanobis_distance),
            repaired,
        )


def assess(
    dr_km: npt.ArrayLike,
    dv_km_s: npt.ArrayLike,
    position_covariance_km2: npt.ArrayLike,
    hard_body_radius_m: npt.ArrayLike,
) -> ShortEncounterRisk:
    """Assess passes at their closest approach.

    Args:
        dr_km, dv_km_s: (n, 3) secondary minus primary, one inertial frame.
        position_covariance_km2: (n, 3, 3) sum of both position covariances in that frame.
        hard_body_radius_m: (n,) or scalar sum of both radii.
    """
    plane = encounter_plane(dr_km, dv_km_s, position_covariance_km2)
    x_m, y_m = 1000 * plane.x_km, 1000 * plane.y_km
    sigma_x_m, sigma_y_m = 1000 * plane.sigma_x_km, 1000 * plane.sigma_y_km
    return ShortEncounterRisk(
        collision_probability_2d(x_m, y_m, sigma_x_m, sigma_y_m, hard_body_radius_m),
        *maximum_probability_2d(x_m, y_m, sigma_x_m, sigma_y_m, hard_body_radius_m),
        plane.mahalanobis_distance,
        plane.repaired,
    )


def collision_probability_2d(
    x_m: npt.ArrayLike,
    y_m: npt.ArrayLike,
    sigma_x_m: npt.ArrayLike,
    sigma_y_m: npt.ArrayLike,
    radius_m: npt.ArrayLike,
) -> FloatArray:
    """Probability that a Gaussian miss falls within ``radius_m``; arguments (n,) or scalar, result (n,).

    The integral over the disc is exact along the axis of larger sigma (normal distribution function). Along the other
    axis it is a 64-point Gauss-Legendre sum over the support of the density. Relative error below 1e-9, tails
    included.

    Source: Foster & Estes (1992); reduction to one dimension as in Alfano, J. Astronautical Sci. 53 (2005).
    """
    columns = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in (x_m, y_m, sigma_x_m, sigma_y_m, radius_m))
    )
    return np.asarray(_quadrature(*(np.ascontiguousarray(column) for column in columns)))


@njit(cache=True, nogil=True)
def _quadrature(
    x: FloatArray, y: FloatArray, sigma_x: FloatArray, sigma_y: FloatArray, radius: FloatArray
) -> FloatArray:
    probability = np.empty(len(x))
    for row in range(len(x)):
        # By symmetry the miss may be taken positive, which keeps the distribution function in its accurate tail.
        narrow, wide, along, across = sigma_x[row], sigma_y[row], abs(x[row]), abs(y[row])
        if narrow > wide:
            narrow, wide, along, across = wide, narrow, across, along
        edge = radius[row]
        reach = np.sqrt((along - min(along, edge)) ** 2 + 2 * _NEGLIGIBLE_EXPONENT * narrow**2)
        first = np.arccos(min(1.0, (along + reach) / edge))
        last = np.arccos(max(-1.0, (along - reach) / edge))
        total = 0.0
        for node in range(len(_NODES)):
            angle = first + (last - first) * (_NODES[node] + 1) / 2
            half_chord, offset = edge * np.sin(angle), (edge * np.cos(angle) - along) / narrow
            nearer, farther = (across - half_chord) / wide, (across + half_chord) / wide
            chord = math.erfc(nearer * _ROOT_HALF) - math.erfc(farther * _ROOT_HALF)
            total += _WEIGHTS[node] * np.exp(-0.5 * offset * offset) * chord * half_chord
        integral = total * (last - first) * _ROOT_HALF / (4 * np.sqrt(np.pi) * narrow)
        # Rounding may exceed one by some 1e-14. `min` would turn NaN into one.
        probability[row] = 1.0 if integral > 1.0 else integral
    return probability


def maximum_probability_2d(
    x_m: npt.ArrayLike,
    y_m: npt.ArrayLike,
    sigma_x_m: npt.ArrayLike,
    sigma_y_m: npt.ArrayLike,
    radius_m: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Largest 2D probability over all scalings of the covariance, its shape and direction kept, and that scale of the
    sigmas; (n,) each.

    One, at scale zero, where the discs already overlap (a vanishing covariance is then the worst). Otherwise searched
    numerically around the small-radius answer, variance scale = half the squared Mahalanobis distance.
    Source: Alfano, "Relating Position Uncertainty to Maximum Conjunction Probability", AAS 03-548 (2003).
    """
    x, y, sigma_x, sigma_y, radius = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in (x_m, y_m, sigma_x_m, sigma_y_m, radius_m))
    )

    def probability(log_scale: FloatArray) -> FloatArray:
        scale = np.exp(log_scale)
        return collision_probability_2d(x, y, sigma_x * scale, sigma_y * scale, radius)

    overlapping = np.hypot(x, y) <= radius
    mahalanobis = np.where(overlapping, 1.0, np.hypot(x / sigma_x, y / sigma_y))
    centre = np.log(mahalanobis / np.sqrt(2.0))
    # For a radius nearly as large as the miss, the worst covariance is no wider than the gap.
    gap = np.where(overlapping, 1.0, (np.hypot(x, y) - radius) / np.maximum(sigma_x, sigma_y))
    low, high = np.minimum(centre, np.log(np.maximum(gap, 1e-9))) - 3.0, centre + 1.5
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = probability(inner), probability(outer)
    for _ in range(40):
        rising = at_inner < at_outer
        low, high = np.where(rising, inner, low), np.where(rising, high, outer)
        kept, at_kept = np.where(rising, outer, inner), np.where(rising, at_outer, at_inner)
        fresh = np.where(rising, low + _GOLDEN * (high - low), high - _GOLDEN * (high - low))
        at_fresh = probability(fresh)
        inner, at_inner = np.where(rising, kept, fresh), np.where(rising, at_kept, at_fresh)
        outer, at_outer = np.where(rising, fresh, kept), np.where(rising, at_fresh, at_kept)
    best = np.where(at_inner < at_outer, outer, inner)
    largest, given = np.maximum(at_inner, at_outer), probability(0 * centre)
    scale = np.where(given > largest, 1.0, np.exp(best))
    return np.where(overlapping, 1.0, np.maximum(largest, given)), np.where(overlapping, 0.0, scale)


def maximum_over_unknown(
    dr_km: npt.ArrayLike, dv_km_s: npt.ArrayLike, known_covariance_km2: npt.ArrayLike, hard_body_radius_m: npt.ArrayLike
) -> FloatArray:
    """Largest 2D probability (n,) over all position covariances of the other object, which is not known.

    Arguments as of `assess`, with the position covariance of one object. The worst covariance of the other is a line
    along the miss: it widens the sum to about the miss, and no other direction. Its length is searched for around the
    answer for a small radius.

    Source: Frisbee, "An Upper Bound on High Speed Satellite Collision Probability When Only One Object has Position
    Uncertainty Information", AAS 15-717 (2015).
    """
    plane = encounter_plane(dr_km, dv_km_s, known_covariance_km2)
    x, y, radius = 1000 * plane.x_km, 1000 * plane.y_km, np.asarray(hard_body_radius_m, dtype=np.float64)
    known = np.zeros((len(x), 2, 2))
    known[:, 0, 0], known[:, 1, 1] = (1000 * plane.sigma_x_km) ** 2, (1000 * plane.sigma_y_km) ** 2
    miss = np.stack([x, y], axis=1)
    line = miss[:, :, None] * miss[:, None, :]
    distance = np.maximum(plane.mahalanobis_distance, 1.0)
    best = _in_plane(miss, np.sqrt(np.diagonal(known, axis1=1, axis2=2)), radius)
    for factor in _LENGTHS:
        variance, axes = np.linalg.eigh(known + (factor * (1 - distance**-2))[:, None, None] * line)
        along = np.einsum("nji,nj->ni", axes, miss)
        best = np.fmax(best, _in_plane(along, np.sqrt(variance), radius))
    return best


def _in_plane(miss_m: FloatArray, sigma_m: FloatArray, radius_m: FloatArray) -> FloatArray:
    return collision_probability_2d(miss_m[:, 0], miss_m[:, 1], sigma_m[:, 0], sigma_m[:, 1], radius_m)
