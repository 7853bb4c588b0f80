"""How much one pass is expected to change: covariance before and after, and what that does to a collision probability.

A pass is modelled as a fix of position and velocity, as a radar makes from some minutes of tracking. Its covariance is
carried to the time that matters by the two-body state-transition matrix of the object.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.risk.probability import collision_probability_2d
from sda_platform.orbits.screening.encounter import encounter_plane
from sda_platform.orbits.two_body import two_body_stm

FIX_POSITION_SIGMA_KM: Final = 0.05
FIX_VELOCITY_SIGMA_KM_S: Final = 5e-5
"""One-sigma of a fix from one radar pass of two minutes; calibrated with the fused windows of the simulated radars."""
_FIX: Final = np.diag([FIX_POSITION_SIGMA_KM**2] * 3 + [FIX_VELOCITY_SIGMA_KM_S**2] * 3)


@dataclasses.dataclass(frozen=True, eq=False)
class ExpectedPass:
    """What a pass of the first object of n encounters is expected to change.

    Attributes:
        gain: (n,) ln of the factor by which the area of the combined one-sigma ellipse in the encounter plane shrinks.
        probability: (n,) collision probability afterwards, if the miss stays as it is.
    """

    gain: FloatArray
    probability: FloatArray


def after_fix(state: npt.ArrayLike, covariance: npt.ArrayLike, lead_s: npt.ArrayLike) -> FloatArray:
    """Covariance (n, 6, 6) at an epoch after a fix that is made ``lead_s`` (n,) seconds before it.

    ``state`` (n, 6) and ``covariance`` (n, 6, 6) are those at the epoch without it; km and km/s.
    """
    states, before = np.atleast_2d(np.asarray(state, dtype=np.float64)), np.asarray(covariance, dtype=np.float64)
    back = two_body_stm(states[:, :3], states[:, 3:], -np.asarray(lead_s, dtype=np.float64))
    there = back @ before @ back.swapaxes(-1, -2)
    gain = np.linalg.solve((there + _FIX).swapaxes(-1, -2), (back @ before)).swapaxes(-1, -2)
    after = before - gain @ (back @ before)
    return np.asarray(0.5 * (after + after.swapaxes(-1, -2)))


def expected_pass(
    observed: FloatArray,
    observed_covariance: FloatArray,
    other: FloatArray,
    other_covariance: FloatArray,
    radius_m: FloatArray,
    lead_s: FloatArray,
) -> ExpectedPass:
    """A pass of the observed objects ``lead_s`` (n,) before n encounters; states (n, 6) and covariances at TCA."""
    after = after_fix(observed, observed_covariance, lead_s)
    relative = other - observed
    planes = [
        encounter_plane(relative[:, :3], relative[:, 3:], (own + other_covariance)[:, :3, :3])
        for own in (observed_covariance, after)
    ]
    areas = [plane.sigma_x_km * plane.sigma_y_km for plane in planes]
    then = planes[1]
    probability = collision_probability_2d(
        1e3 * then.x_km, 1e3 * then.y_km, 1e3 * then.sigma_x_km, 1e3 * then.sigma_y_km, radius_m
    )
    return ExpectedPass(np.maximum(np.log(areas[0] / areas[1]), 0.0), np.clip(probability, 0.0, 1.0))


def position_gain(sigma_km: npt.ArrayLike) -> FloatArray:
    """Compute ln of the factor by which an observation shrinks a position's one-sigma circle, ``sigma_km`` (n,)."""
    sigma = np.asarray(sigma_km, dtype=np.float64)
    return np.log1p((sigma / FIX_POSITION_SIGMA_KM) ** 2)
