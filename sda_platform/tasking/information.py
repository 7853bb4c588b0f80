"""How much one pass changes: covariance before and after, and what that does to a collision probability.

An expected pass is a fix of position and velocity, as a radar makes from some minutes of tracking. A realised one is
what the observations brought to the window fits that they are in. Both are measured by the same functions. Covariances
are carried to the time that matters by the two-body state-transition matrix of the object.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.risk.probability import collision_probability_2d
from sda_platform.orbits.screening.encounter import EncounterPlane, encounter_plane
from sda_platform.orbits.two_body import two_body_stm

FIX_POSITION_SIGMA_KM: Final = 0.05
FIX_VELOCITY_SIGMA_KM_S: Final = 5e-5
"""One-sigma of a fix from one radar pass of two minutes; calibrated with the fused windows of the simulated radars."""
FIX_DWELL_S: Final = 120.0
DWELLS_S: Final = (30.0, 60.0, FIX_DWELL_S, 240.0)
"""Antenna times of an observation that are chosen from, seconds."""
NEGLIGIBLE_GAIN: Final = 0.1
"""Below this an observation has next to no effect: the ellipse shrinks by less than a tenth."""
_LEAST_STATED_GAIN: Final = 0.005
"""What is stated as 0.00 at most."""
_FIX_VARIANCE_KM2: Final = 3 * FIX_POSITION_SIGMA_KM**2
_FIX: Final = np.diag([FIX_POSITION_SIGMA_KM**-2] * 3 + [FIX_VELOCITY_SIGMA_KM_S**-2] * 3)


@dataclasses.dataclass(frozen=True, eq=False)
class ExpectedPass:
    """What a pass of the first object of n encounters is expected to change.

    Attributes:
        gain: (n,) ln of the factor by which the area of the combined one-sigma ellipse in the encounter plane shrinks.
        probability: (n,) collision probability afterwards, if the miss stays as it is.
        sigma_km: (n,) the greatest one-sigma of the miss in the encounter plane afterwards.
        dwell_s: (n,) antenna time of the observation.
    """

    gain: FloatArray
    probability: FloatArray
    sigma_km: FloatArray
    dwell_s: FloatArray


def after_fix(
    state: npt.ArrayLike, covariance: npt.ArrayLike, lead_s: npt.ArrayLike, information: npt.ArrayLike = _FIX
) -> FloatArray:
    """Covariance (n, 6, 6) at an epoch after a fix that is made ``lead_s`` (n,) seconds before it.

    ``state`` (n, 6) and ``covariance`` (n, 6, 6) are those at the epoch without it; km and km/s. ``information``
    (n, 6, 6) or (6, 6): the inverse of the fix's covariance, by default that of an expected pass. It may be singular.
    """
    states, before = np.atleast_2d(np.asarray(state, dtype=np.float64)), np.asarray(covariance, dtype=np.float64)
    back = two_body_stm(states[:, :3], states[:, 3:], -np.asarray(lead_s, dtype=np.float64))
    there = back @ before @ back.swapaxes(-1, -2)
    brought = np.asarray(information, dtype=np.float64)
    # With the fix's covariance R, information (I + there information)^-1 is (there + R)^-1.
    weight = brought @ np.linalg.inv(np.eye(6) + there @ brought)
    after = before - before @ back.swapaxes(-1, -2) @ weight @ back @ before
    return np.asarray(0.5 * (after + after.swapaxes(-1, -2)))


def expected_pass(
    observed: FloatArray,
    observed_covariance: FloatArray,
    other: FloatArray,
    other_covariance: FloatArray,
    radius_m: FloatArray,
    lead_s: FloatArray,
    dwell_s: float = FIX_DWELL_S,
) -> ExpectedPass:
    """A pass of the observed objects ``lead_s`` (n,) before n encounters; states (n, 6) and covariances at TCA."""
    after = after_fix(observed, observed_covariance, lead_s, fix_information(dwell_s))
    relative = other - observed
    then = _plane(relative, after + other_covariance)
    probability = collision_probability_2d(
        1e3 * then.x_km, 1e3 * then.y_km, 1e3 * then.sigma_x_km, 1e3 * then.sigma_y_km, radius_m
    )
    gain = encounter_gain(relative, observed_covariance + other_covariance, after + other_covariance)
    sigma_km = np.maximum(then.sigma_x_km, then.sigma_y_km)
    return ExpectedPass(gain, np.clip(probability, 0.0, 1.0), sigma_km, np.full(len(gain), dwell_s))


def shortest_pass(
    observed: FloatArray,
    observed_covariance: FloatArray,
    other: FloatArray,
    other_covariance: FloatArray,
    radius_m: FloatArray,
    lead_s: FloatArray,
    wanted_sigma_km: float,
) -> ExpectedPass:
    """Return the pass with the shortest dwell that is enough: of DWELLS_S the first after which no one-sigma of the
    miss exceeds ``wanted_sigma_km``, or beyond which a longer one changes next to nothing.

    Arguments as of `expected_pass`.
    """
    given = observed, observed_covariance, other, other_covariance, radius_m, lead_s
    tried = [expected_pass(*given, dwell_s) for dwell_s in DWELLS_S]
    columns = {
        field.name: np.stack([getattr(each, field.name) for each in tried])
        for field in dataclasses.fields(ExpectedPass)
    }
    is_enough = columns["sigma_km"] <= wanted_sigma_km
    is_enough |= columns["gain"] >= columns["gain"][-1] - NEGLIGIBLE_GAIN
    chosen = is_enough.argmax(axis=0)  # the longest one is always enough
    return ExpectedPass(**{name: values[chosen, np.arange(len(chosen))] for name, values in columns.items()})


def fix_information(dwell_s: float) -> FloatArray:
    """Compute the information (6, 6) of a fix from an observation of ``dwell_s`` seconds: inverse covariance, km, km/s.

    Independent measurements at a steady rate: the variance of a position falls with their number, that of a velocity
    also with the square of the time that they span.
    """
    more = dwell_s / FIX_DWELL_S
    return np.asarray(_FIX * np.diag([more] * 3 + [more**3] * 3))


def encounter_gain(relative: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Compute ln of the factor by which the one-sigma ellipse in the encounter plane shrinks, (n,), at least 0.

    ``relative``: relative states (n, 6) at TCA; ``before``, ``after``: combined covariances (n, 6, 6) there.
    """
    areas = [plane.sigma_x_km * plane.sigma_y_km for plane in (_plane(relative, each) for each in (before, after))]
    return np.asarray(np.maximum(np.log(areas[0] / areas[1]), 0.0))


def sphere_gain(before: FloatArray, after: FloatArray) -> FloatArray:
    """Compute the same of a position's one-sigma circle, from covariances (n, 6, 6), as `position_gain` expects it."""
    variances = [np.trace(each[:, :3, :3], axis1=-2, axis2=-1) for each in (before, after)]
    return np.asarray(np.maximum(np.log(variances[0] / variances[1]), 0.0))


def believed(gain: npt.ArrayLike, shape: FloatArray) -> FloatArray:
    """Return the covariance (n, 6, 6) of which `position_gain` expects ``gain`` (n,), in the ``shape`` of another."""
    # A gain that was rounded to nothing still was of some covariance.
    variance = _FIX_VARIANCE_KM2 * np.expm1(np.maximum(np.asarray(gain, dtype=np.float64), _LEAST_STATED_GAIN))
    return np.asarray(shape * (variance / np.trace(shape[:, :3, :3], axis1=-2, axis2=-1))[:, None, None])


def brought(prior: FloatArray, fitted: FloatArray) -> FloatArray:
    """Compute the information (n, 6, 6) that observations brought: that of the ``fitted`` covariance without the prior.

    Both (n, 6, 6), km and km/s; without negative eigenvalues, which rounding may leave.
    """
    scale = np.sqrt(np.diagonal(prior, axis1=-2, axis2=-1))
    outer = scale[:, :, None] * scale[:, None, :]
    gained = np.linalg.inv(fitted / outer) - np.linalg.inv(prior / outer)
    values, vectors = np.linalg.eigh(0.5 * (gained + gained.swapaxes(-1, -2)))
    positive = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(-1, -2)
    return np.asarray(positive / outer)


def position_gain(sigma_km: npt.ArrayLike) -> FloatArray:
    """Compute ln of the factor by which a fix shrinks a position's one-sigma circle.

    ``sigma_km`` (n,): root of the sum of the variances of the three axes, as of a track.
    """
    return np.log1p(np.asarray(sigma_km, dtype=np.float64) ** 2 / _FIX_VARIANCE_KM2)


def _plane(relative: FloatArray, combined: FloatArray) -> EncounterPlane:
    return encounter_plane(relative[:, :3], relative[:, 3:], combined[:, :3, :3])
