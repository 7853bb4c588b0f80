"""How likely a close approach is a collision, and what to call it.

The short-encounter (2D) methods: relative motion is taken as straight and the covariance as constant while
the objects are near. Slow or long encounters need other methods; nothing here detects them.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaln, ndtr

from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.encounter import encounter_plane

RED_FROM = 1e-4
YELLOW_FROM = 1e-7

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# Beyond this drop of the exponent below its peak the integrand adds less than 1e-17 of the result.
_NEGLIGIBLE_EXPONENT = 40.0
_CHAN_TERMS = 500
_GOLDEN = (np.sqrt(5.0) - 1) / 2


@dataclasses.dataclass(frozen=True, eq=False)
class Assessment:
    """Risk of ``n`` passes, each column (n,).

    Attributes:
        probability: 2D probability of collision with the covariances given.
        maximum_probability: its maximum over a common scaling of the combined covariance.
        mahalanobis_distance: miss in sigmas.
        covariance_repaired: the projected covariance was indefinite or vanishing and was raised.
    """

    probability: FloatArray
    maximum_probability: FloatArray
    mahalanobis_distance: FloatArray
    covariance_repaired: npt.NDArray[np.bool_]


def assess(
    dr_km: npt.ArrayLike,
    dv_km_s: npt.ArrayLike,
    position_covariance_km2: npt.ArrayLike,
    hard_body_radius_m: npt.ArrayLike,
) -> Assessment:
    """Assess passes at their closest approach.

    Args:
        dr_km, dv_km_s: (n, 3) secondary minus primary, one inertial frame.
        position_covariance_km2: (n, 3, 3) sum of both position covariances in that frame.
        hard_body_radius_m: (n,) or scalar sum of both radii.
    """
    plane = encounter_plane(dr_km, dv_km_s, position_covariance_km2)
    x_m, y_m = 1000 * plane.x_km, 1000 * plane.y_km
    sigma_x_m, sigma_y_m = 1000 * plane.sigma_x_km, 1000 * plane.sigma_y_km
    return Assessment(
        collision_probability_2d(x_m, y_m, sigma_x_m, sigma_y_m, hard_body_radius_m),
        maximum_probability_2d(x_m, y_m, sigma_x_m, sigma_y_m, hard_body_radius_m),
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

    The integral over the disc is exact along the axis of larger sigma (normal distribution function) and a
    64-point Gauss-Legendre sum along the other, confined to where the density lives. Relative error below
    1e-9, tails included.
    Source: Foster & Estes (1992); reduction to one dimension as in Alfano, J. Astronautical Sci. 53 (2005).
    """
    x, y, sigma_x, sigma_y, radius = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in (x_m, y_m, sigma_x_m, sigma_y_m, radius_m))
    )
    swap = sigma_x > sigma_y
    narrow, wide = np.where(swap, sigma_y, sigma_x)[:, None], np.where(swap, sigma_x, sigma_y)[:, None]
    # By symmetry the miss may be taken positive, which keeps the distribution function in its accurate tail.
    along, across = np.abs(np.where(swap, y, x))[:, None], np.abs(np.where(swap, x, y))[:, None]
    edge = radius[:, None]
    nearest = np.minimum(along, edge)
    reach = np.sqrt((along - nearest) ** 2 + 2 * _NEGLIGIBLE_EXPONENT * narrow**2)
    first = np.arccos(np.clip(np.minimum(edge, along + reach) / edge, -1, 1))
    last = np.arccos(np.clip(np.maximum(-edge, along - reach) / edge, -1, 1))
    angle = first + (last - first) * (_NODES + 1) / 2
    half_chord, offset = edge * np.sin(angle), edge * np.cos(angle) - along
    density = np.exp(-0.5 * (offset / narrow) ** 2) / (np.sqrt(2 * np.pi) * narrow)
    chord = ndtr((half_chord - across) / wide) - ndtr((-half_chord - across) / wide)
    integral = (density * chord * half_chord) @ _WEIGHTS
    return np.asarray(integral * (last - first)[:, 0] / 2)


def maximum_probability_2d(
    x_m: npt.ArrayLike,
    y_m: npt.ArrayLike,
    sigma_x_m: npt.ArrayLike,
    sigma_y_m: npt.ArrayLike,
    radius_m: npt.ArrayLike,
) -> FloatArray:
    """Largest 2D probability over all scalings of the covariance, its shape and direction kept; (n,).

    One where the discs already overlap (a vanishing covariance is then the worst). Otherwise searched
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
    # A body that all but touches wants a covariance no wider than the gap.
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
    return np.where(overlapping, 1.0, np.maximum(np.maximum(at_inner, at_outer), probability(0 * centre)))


def chan_probability_2d(
    x_m: npt.ArrayLike,
    y_m: npt.ArrayLike,
    sigma_x_m: npt.ArrayLike,
    sigma_y_m: npt.ArrayLike,
    radius_m: npt.ArrayLike,
) -> FloatArray:
    """Chan's series, (n,): the disc replaced by an ellipse of equal area and the covariance's shape.

    An independent check where the radius is small against the sigmas; wrong where it is not.
    Source: Chan, "Collision Probability Analyses for Earth Orbiting Satellites" (1997).
    """
    x, y, sigma_x, sigma_y, radius = (
        np.atleast_1d(np.asarray(v, dtype=np.float64))[:, None] for v in (x_m, y_m, sigma_x_m, sigma_y_m, radius_m)
    )
    half_u = radius**2 / (2 * sigma_x * sigma_y)
    half_v = 0.5 * ((x / sigma_x) ** 2 + (y / sigma_y) ** 2)
    term = np.arange(_CHAN_TERMS)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weight = np.where(term > 0, term * np.log(half_v), 0.0) - half_v - gammaln(term + 1)
    return np.asarray((np.exp(log_weight) * gammainc(term + 1, half_u)).sum(axis=-1))


def hard_body_radius_m(object_name: str | None) -> float:
    """Radius to assume from a catalogue name: 5 m rocket body or payload, 0.5 m debris, 1 m unknown."""
    name = (object_name or "").strip().upper()
    if not name or name.startswith(("UNKNOWN", "OBJECT ", "TBA", "TBD")):
        return 1.0
    if " DEB" in name or "COOLANT" in name or name == "DEB":
        return 0.5
    return 5.0


def risk_level(probability: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Level by NASA CARA's thresholds, same shape: red, yellow, green, and unknown for NaN."""
    pc = np.asarray(probability, dtype=np.float64)
    return np.select([np.isnan(pc), pc >= RED_FROM, pc >= YELLOW_FROM], ["unknown", "red", "yellow"], default="green")
