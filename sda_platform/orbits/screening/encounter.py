"""Geometry of a close approach: relative state in the primary's axes, and the encounter plane.

The probability of collision is in ``risk.probability``.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.frames import rtn_basis


@dataclasses.dataclass(frozen=True, eq=False)
class RelativeStates:
    """Secondary minus primary in the primary's radial, transverse and normal axes.

    Attributes:
        position_rtn_km, velocity_rtn_km_s: (n, 3). The velocity is the inertial difference, not that in the rotating
            axes, as the CDM's RELATIVE_VELOCITY (CCSDS 508.0-B-1).
        miss_distance_km, relative_speed_km_s: (n,).
    """

    position_rtn_km: FloatArray
    velocity_rtn_km_s: FloatArray
    miss_distance_km: FloatArray
    relative_speed_km_s: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class EncounterPlane:
    """A pass in the plane across the relative velocity, along the axes of the combined covariance.

    Attributes, each (n,):
        x_km, y_km: miss along the axes of smaller and larger sigma, not negative.
        sigma_x_km, sigma_y_km: one-sigma along them, ``sigma_x_km <= sigma_y_km``.
        repaired: whether the projected covariance had a variance below (1 cm)^2, raised to it here.
    """

    x_km: FloatArray
    y_km: FloatArray
    sigma_x_km: FloatArray
    sigma_y_km: FloatArray
    repaired: npt.NDArray[np.bool_]

    @property
    def mahalanobis_distance(self) -> FloatArray:
        """Miss in sigmas of the combined covariance, (n,)."""
        return np.hypot(self.x_km / self.sigma_x_km, self.y_km / self.sigma_y_km)


_LEAST_VARIANCE_KM2 = 1e-5**2


def relative_states(
    r1_teme_km: npt.ArrayLike,
    v1_teme_km_s: npt.ArrayLike,
    r2_teme_km: npt.ArrayLike,
    v2_teme_km_s: npt.ArrayLike,
) -> RelativeStates:
    """Relative states of secondaries (2) about primaries (1), inertial states (n, 3) each, one frame."""
    r1, v1 = np.atleast_2d(r1_teme_km), np.atleast_2d(v1_teme_km_s)
    dr_km, dv_km_s = np.atleast_2d(r2_teme_km) - r1, np.atleast_2d(v2_teme_km_s) - v1
    basis = rtn_basis(r1, v1)
    return RelativeStates(
        np.einsum("nij,nj->ni", basis, dr_km),
        np.einsum("nij,nj->ni", basis, dv_km_s),
        np.linalg.norm(dr_km, axis=-1),
        np.linalg.norm(dv_km_s, axis=-1),
    )


def rotating_frame_states(
    r1: FloatArray, v1: FloatArray, r2: FloatArray, v2: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Position (n, 3) km and rate (n, 3) km/s of secondaries (2) in the rotating RTN axes of primaries (1).

    Inertial states (n, 3) each, one frame. The axes rotate with the radius; the rotation of their plane, some 1e-6
    rad/s, is neglected.
    """
    relative = relative_states(r1, v1, r2, v2)
    place = relative.position_rtn_km
    turn_rad_s = np.linalg.norm(np.cross(r1, v1), axis=-1) / np.einsum("ni,ni->n", r1, r1)
    turned = turn_rad_s[:, None] * np.stack([-place[:, 1], place[:, 0], np.zeros(len(place))], axis=-1)
    return place, relative.velocity_rtn_km_s - turned


def encounter_plane(
    dr_km: npt.ArrayLike, dv_km_s: npt.ArrayLike, position_covariance_km2: npt.ArrayLike
) -> EncounterPlane:
    """Project relative positions (n, 3) and combined covariances (n, 3, 3) across relative velocities (n, 3).

    All three in one common frame. Rows without relative motion have no such plane and come back as NaN.
    Source: Foster & Estes, NASA JSC-25898 (1992).
    """
    dr, dv = np.atleast_2d(dr_km), np.atleast_2d(dv_km_s)
    covariance = np.asarray(position_covariance_km2, dtype=np.float64).reshape(-1, 3, 3)
    known = np.isfinite(dr).all(axis=-1) & np.isfinite(covariance).all(axis=(-2, -1)) & (dv != 0).any(axis=-1)
    covariance = np.where(known[:, None, None], covariance, np.eye(3))
    across = across_velocity(dv)
    projected = across @ covariance @ across.swapaxes(-1, -2)
    variance, axes = np.linalg.eigh(0.5 * (projected + projected.swapaxes(-1, -2)))
    miss = np.abs(np.einsum("nji,njk,nk->ni", axes, across, dr))
    miss[~known] = np.nan
    sigma = np.sqrt(np.maximum(variance, _LEAST_VARIANCE_KM2))
    repaired: npt.NDArray[np.bool_] = np.any(variance < _LEAST_VARIANCE_KM2, axis=-1)
    return EncounterPlane(miss[:, 0], miss[:, 1], sigma[:, 0], sigma[:, 1], repaired)


def across_velocity(dv: FloatArray) -> FloatArray:
    """Two unit vectors across each velocity, (n, 2, 3), the first starting from the axis least along it."""
    with np.errstate(invalid="ignore"):
        along = np.nan_to_num(dv / np.linalg.norm(dv, axis=-1, keepdims=True), nan=0.6)
    start = np.eye(3)[np.abs(along).argmin(axis=-1)]
    first = np.cross(along, start)
    first /= np.linalg.norm(first, axis=-1, keepdims=True)
    return np.stack([first, np.cross(along, first)], axis=-2)
