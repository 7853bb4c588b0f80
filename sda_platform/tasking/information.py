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
from sda_platform.orbits.risk.gaussian_parts import parts_of, straight_probability
from sda_platform.orbits.risk.validity import Encounters
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
        probability: (n,) collision probability afterwards, if the miss stays as it is; over all sizes of the errors.
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


def expected_pass(encounters: Encounters, lead_s: FloatArray, dwell_s: npt.ArrayLike = FIX_DWELL_S) -> ExpectedPass:
    """A pass of the first objects of n encounters, ``lead_s`` (n,) before them, of one ``dwell_s`` or of (n,)."""
    dwells_s = np.broadcast_to(np.asarray(dwell_s, dtype=np.float64), lead_s.shape)
    information, parts = fix_information(dwells_s), parts_of(encounters)
    after = _observed(parts.passes, lead_s[parts.owner], information[parts.owner])
    probability = parts.summed(straight_probability(after)[0], len(lead_s))
    gain, sigma_km = _gain_and_sigma(encounters, lead_s, information)
    return ExpectedPass(gain, np.clip(probability, 0.0, 1.0), sigma_km, dwells_s)


def shortest_pass(encounters: Encounters, lead_s: FloatArray, wanted_sigma_km: float) -> ExpectedPass:
    """Return the pass with the shortest dwell that is enough: of DWELLS_S the first after which no one-sigma of the
    miss exceeds ``wanted_sigma_km``, or beyond which a longer one changes next to nothing.

    Arguments as of `expected_pass`.
    """
    tried = [_gain_and_sigma(encounters, lead_s, fix_information(dwell_s)) for dwell_s in DWELLS_S]
    gain, sigma_km = (np.stack(values) for values in zip(*tried, strict=True))
    is_enough = (sigma_km <= wanted_sigma_km) | (gain >= gain[-1] - NEGLIGIBLE_GAIN)
    # The longest one is always enough.
    return expected_pass(encounters, lead_s, np.array(DWELLS_S)[is_enough.argmax(axis=0)])


def fix_information(dwell_s: npt.ArrayLike) -> FloatArray:
    """Compute the information (6, 6) of a fix from an observation of ``dwell_s`` seconds: inverse covariance, km, km/s.

    Of several (n,) it is (n, 6, 6). Independent measurements at a steady rate: the variance of a position falls with
    their number, that of a velocity also with the square of the time that they span.
    """
    more = np.asarray(dwell_s, dtype=np.float64) / FIX_DWELL_S
    return np.asarray(_FIX * np.stack([more] * 3 + [more**3] * 3, axis=-1)[..., None])


def _observed(encounters: Encounters, lead_s: FloatArray, information: FloatArray) -> Encounters:
    state = np.hstack([encounters.r1_km, encounters.v1_km_s])
    return dataclasses.replace(encounters, covariance_1=after_fix(state, encounters.covariance_1, lead_s, information))


def _gain_and_sigma(
    encounters: Encounters, lead_s: FloatArray, information: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the gain (n,) of passes with this information, and the greatest one-sigma (n,) of the miss afterwards."""
    after = _observed(encounters, lead_s, information)
    relative = np.hstack([encounters.dr_km, encounters.dv_km_s])
    combined = [each.covariance_1 + each.covariance_2 for each in (encounters, after)]
    then = _plane(relative, combined[1])
    return encounter_gain(relative, *combined), np.maximum(then.sigma_x_km, then.sigma_y_km)


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
