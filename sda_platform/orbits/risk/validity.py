"""Validity of the short-encounter (2D) probability: concerns about each pass, cheap enough to evaluate for all.

A concern is a reason to compute the probability by another method, not proof that the 2D one is wrong. The limits
were set so that, over 65 published passes with a known answer, none without a concern is more than 2 % off.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.long_tails import Tails
from sda_platform.orbits.risk.degenerate import is_rank_deficient, solve_or_nan
from sda_platform.orbits.two_body import orbital_period_s

LONGEST_PART_OF_PERIOD = 2e-3
LARGEST_SPEED_UNCERTAINTY = 0.1
LARGEST_SAG = 0.1

LOW_SPEED, EXTENDED = "low_relative_speed", "extended_encounter"
COVARIANCE_MISSING, VELOCITY_MISSING = "covariance_missing", "velocity_covariance_missing"
LACKING = frozenset({COVARIANCE_MISSING, VELOCITY_MISSING})
"""Concerns that no method can settle, because the input lacks an object's uncertainty."""

_LEAST_VARIANCE_KM2 = 1e-5**2
_ROUNDED = 1e-3
# No correlation is beyond 1, so a matrix with this one is as indefinite as with a larger one.
_BEYOND_ANY = 2.0


@dataclasses.dataclass(frozen=True, eq=False)
class Encounters:
    """``n`` passes near closest approach: states (n, 3) and covariances (n, 6, 6) of both objects, km and km/s.

    All in one inertial frame; ``radius_km`` (n,) is the sum of both radii. ``tails`` are the distributions of both
    objects' errors; None: both are Gaussian.
    """

    r1_km: FloatArray
    v1_km_s: FloatArray
    covariance_1: FloatArray
    r2_km: FloatArray
    v2_km_s: FloatArray
    covariance_2: FloatArray
    radius_km: FloatArray
    tails: tuple[Tails, Tails] | None = dataclasses.field(default=None, kw_only=True)

    def take(self, rows: IntArray) -> Encounters:
        """Select passes by their numbers."""
        columns = (getattr(self, field.name)[rows] for field in dataclasses.fields(self) if field.name != "tails")
        tails = self.tails and (self.tails[0].take(rows), self.tails[1].take(rows))
        return Encounters(*columns, tails=tails)

    def swapped(self) -> Encounters:
        """Return the passes with the first object as the second one."""
        first, second = (self.r1_km, self.v1_km_s, self.covariance_1), (self.r2_km, self.v2_km_s, self.covariance_2)
        return Encounters(*second, *first, self.radius_km, tails=self.tails and (self.tails[1], self.tails[0]))

    @property
    def dr_km(self) -> FloatArray:
        """Secondary minus primary position."""
        return self.r2_km - self.r1_km

    @property
    def dv_km_s(self) -> FloatArray:
        """Secondary minus primary velocity."""
        return self.v2_km_s - self.v1_km_s

    def shorter_period_s(self) -> FloatArray:
        """Return the shorter of both orbital periods, (n,); NaN where neither orbit is closed."""
        periods = [orbital_period_s(self.r1_km, self.v1_km_s), orbital_period_s(self.r2_km, self.v2_km_s)]
        return np.fmin(*periods)


def concerns(passes: Encounters) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the concerns that each pass (n,) raises.

    - ``low_relative_speed``: the sigma of the relative speed is a tenth of it or more.
    - ``extended_encounter``: the encounter takes more than 1/500 of the shorter period. Counted are the crossing of
      the uncertainty along the relative velocity, and the offset of the likeliest collision from the nominal closest
      approach.
    - ``curved_motion``: to meet, an object must be far from its mean along its orbit. There the orbit departs from
      the straight ellipsoid by a tenth of the narrow sigma (or of the radius, if that is more).
    - ``indefinite_covariance``: the position covariance of an object has a negative eigenvalue.
    - ``indefinite_velocity_covariance``: so has that of an object's position and velocity, beyond rounding; a concern
      for every method but the 2D one, which does not use it.
    - ``covariance_missing``: the position covariance of an object is zero or singular (`missing_covariances`).
    - ``velocity_covariance_missing``: so is that of its velocity. Without it a displaced object keeps its inertial
      velocity and leaves its orbit, so that a method that follows the orbits has no meaning.
    """
    position_1, position_2 = passes.covariance_1[:, :3, :3], passes.covariance_2[:, :3, :3]
    position = position_1 + position_2
    lowest = np.stack([_lowest_part(c) for c in (position_1, position_2)])
    regular = position + _LEAST_VARIANCE_KM2 * np.eye(3)
    with np.errstate(all="ignore"):
        speed = np.linalg.norm(passes.dv_km_s, axis=-1)
        along = passes.dv_km_s / speed[:, None]
        moving = speed > 0
        along = np.where(moving[:, None], along, [1.0, 0.0, 0.0])
        pull = _shift_direction(passes.dr_km, along, regular)
        shifts = [np.einsum("nij,nj->ni", c, pull) for c in (position_1, position_2)]
        sag_km = np.fmax(_sagitta_km(shifts[0], passes.r1_km), _sagitta_km(shifts[1], passes.r2_km))
        narrow = np.sqrt(np.maximum(np.linalg.eigvalsh(_across(regular, along))[:, 1], _LEAST_VARIANCE_KM2))
        sigma_along = 1 / np.sqrt(np.einsum("ni,ni->n", along, solve_or_nan(regular, along)))
        duration_s = (sigma_along + passes.radius_km) / speed
        offset_s = np.abs(np.einsum("ni,ni->n", along, shifts[0] + shifts[1])) / speed
        velocity_1, velocity_2 = passes.covariance_1[:, 3:, 3:], passes.covariance_2[:, 3:, 3:]
        sigma_speed = np.sqrt(np.maximum(np.linalg.eigvalsh(velocity_1 + velocity_2)[:, -1], 0.0))
        period_s = passes.shorter_period_s()
        return {
            LOW_SPEED: ~(sigma_speed < LARGEST_SPEED_UNCERTAINTY * speed),
            EXTENDED: ~(np.maximum(duration_s, offset_s) < LONGEST_PART_OF_PERIOD * period_s),
            "curved_motion": ~(sag_km < LARGEST_SAG * np.maximum(narrow, passes.radius_km)),
            "indefinite_covariance": (lowest < -1e-12).any(axis=0),
            "indefinite_velocity_covariance": is_indefinite(passes.covariance_1) | is_indefinite(passes.covariance_2),
            COVARIANCE_MISSING: missing_covariances(passes).any(axis=0),
            VELOCITY_MISSING: is_rank_deficient(velocity_1) | is_rank_deficient(velocity_2),
        }


def missing_covariances(passes: Encounters) -> npt.NDArray[np.bool_]:
    """Return whether the position covariance of the first and of the second object is missing, (2, n): not finite, zero
    or singular.
    """
    return np.stack([_is_missing(each[:, :3, :3]) for each in (passes.covariance_1, passes.covariance_2)])


def _is_missing(position: FloatArray) -> npt.NDArray[np.bool_]:
    is_unknown = np.asarray(~np.isfinite(position).all(axis=(1, 2)))
    return is_unknown | is_rank_deficient(np.where(is_unknown[:, None, None], np.eye(3), position))


def _lowest_part(covariance: FloatArray) -> FloatArray:
    """Return the least eigenvalue of blocks (n, 3, 3) as a part of their trace, (n,); zero where that vanishes."""
    least, trace = np.linalg.eigvalsh(covariance)[:, 0], np.trace(covariance, axis1=-2, axis2=-1)
    return np.where(trace > 0, least / np.where(trace > 0, trace, 1.0), np.minimum(least, 0.0))


def _sagitta_km(shift_km: FloatArray, r_km: FloatArray) -> FloatArray:
    """Sagitta (n,), km: departure of a circle of radius |r| from its tangent within ``shift_km``."""
    return np.asarray((shift_km**2).sum(axis=-1) / (2 * np.linalg.norm(r_km, axis=-1)))


def is_indefinite(covariance: FloatArray) -> npt.NDArray[np.bool_]:
    """Return whether matrices (n, k, k), scaled to unit variances, have an eigenvalue more negative than printed digits
    explain.
    """
    sigma = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-60))
    with np.errstate(over="ignore"):
        scaled = covariance / (sigma[:, :, None] * sigma[:, None, :])
    scaled = np.clip(scaled, -_BEYOND_ANY, _BEYOND_ANY)  # infinite ones have no eigenvalues
    return np.asarray(np.linalg.eigvalsh(scaled)[:, 0] < -_ROUNDED)


def _across(covariance: FloatArray, along: FloatArray) -> FloatArray:
    """Return covariances (n, 3, 3) without their part along the unit vectors: one eigenvalue is zero."""
    project = np.eye(3) - along[:, :, None] * along[:, None, :]
    return project @ covariance @ project


def _shift_direction(dr_km: FloatArray, along: FloatArray, covariance: FloatArray) -> FloatArray:
    """Vectors (n, 3) that, times an object's covariance, give its likeliest shift if both meet; directions as
    ``along``.
    """
    miss = dr_km - np.einsum("ni,ni->n", dr_km, along)[:, None] * along
    flat = _across(covariance, along) + along[:, :, None] * along[:, None, :]
    return solve_or_nan(flat, miss)
