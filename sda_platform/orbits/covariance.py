"""Covariances of states: rotation, linear propagation, process noise.

The two-body dynamics are in ``orbits.two_body``; covariances of element sets are in ``orbits.element_errors``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.two_body import two_body_stm

SLOW_NOISE_KM2_S3 = 1e-13
"""Density of white acceleration for ephemerides of operators: 70 m after a low orbit."""


def rtn_to_teme(covariance_rtn: npt.ArrayLike, r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike) -> FloatArray:
    """Rotate covariances (n, 6, 6) from the RTN axes of the states (n, 3) into TEME."""
    rotation = _rotation6(rtn_basis(np.atleast_2d(r_teme_km), np.atleast_2d(v_teme_km_s)))
    return symmetric(rotation.swapaxes(-1, -2) @ np.asarray(covariance_rtn, dtype=np.float64) @ rotation)


def tnw_to_teme(covariance_tnw: npt.ArrayLike, r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike) -> FloatArray:
    """Rotate covariances (n, 6, 6) from the TNW axes of the states (n, 3) into TEME.

    T is along the velocity, W along the angular momentum, N = W x T (SANA registry of orbit-relative frames).
    """
    r, v = np.atleast_2d(r_teme_km), np.atleast_2d(v_teme_km_s)
    tangential = v / np.linalg.norm(v, axis=-1, keepdims=True)
    normal = np.cross(r, v)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    rotation = _rotation6(np.stack([tangential, np.cross(normal, tangential), normal], axis=-2))
    return symmetric(rotation.swapaxes(-1, -2) @ np.asarray(covariance_tnw, dtype=np.float64) @ rotation)


def teme_to_rtn(covariance_teme: npt.ArrayLike, r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike) -> FloatArray:
    """Rotate covariances (n, 6, 6) from TEME into the RTN axes of the states (n, 3)."""
    rotation = _rotation6(rtn_basis(np.atleast_2d(r_teme_km), np.atleast_2d(v_teme_km_s)))
    return symmetric(rotation @ np.asarray(covariance_teme, dtype=np.float64) @ rotation.swapaxes(-1, -2))


def transport(
    deviation: npt.ArrayLike,
    covariance: npt.ArrayLike,
    r_teme_km: npt.ArrayLike,
    v_teme_km_s: npt.ArrayLike,
    dt_s: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Propagate deviations and covariances linearly from a reference state to ``dt_s`` later (or earlier).

    The caller propagates the reference (SGP4); two-body dynamics apply to the small difference only. Neglecting J2 in
    the difference costs about 0.1 % of it per radian of perigee or node motion, well below the covariance itself.

    Args:
        deviation: (n, 6) TEME, km and km/s, true minus reference.
        covariance: (n, 6, 6) of the deviation.
        r_teme_km, v_teme_km_s: (n, 3) reference states at the start.
        dt_s: (n,) or scalar seconds.

    Returns:
        deviation (n, 6) and covariance (n, 6, 6) at the end, TEME.
    """
    stm = two_body_stm(r_teme_km, v_teme_km_s, dt_s)
    moved = _moved(stm, deviation)
    return moved, symmetric(stm @ np.asarray(covariance, dtype=np.float64) @ stm.swapaxes(-1, -2))


def deviations_after(
    deviation: npt.ArrayLike, r_teme_km: npt.ArrayLike, v_teme_km_s: npt.ArrayLike, dt_s: npt.ArrayLike
) -> FloatArray:
    """Return the deviations (n, 6) alone that `transport` gives."""
    return _moved(two_body_stm(r_teme_km, v_teme_km_s, dt_s), deviation)


def _moved(stm: FloatArray, deviation: npt.ArrayLike) -> FloatArray:
    return np.asarray(np.einsum("nij,nj->ni", stm, np.atleast_2d(np.asarray(deviation, dtype=np.float64))))


def process_noise(elapsed_s: FloatArray, density_km2_s3: FloatArray | float) -> FloatArray:
    """Covariance (n, 6, 6), km and km/s, that a state gains over ``elapsed_s`` (n,), forwards or backwards, by white
    acceleration of ``density_km2_s3`` (n,) or scalar.

    Source: Bar-Shalom, Li & Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), eq. 6.2.2-12.
    """
    noise = np.zeros((len(elapsed_s), 6, 6))
    dt, unit = elapsed_s[:, None, None], np.eye(3)
    noise[:, :3, :3], noise[:, 3:, 3:] = np.abs(dt) ** 3 / 3 * unit, np.abs(dt) * unit
    noise[:, :3, 3:] = noise[:, 3:, :3] = dt * np.abs(dt) / 2 * unit
    return np.asarray(np.reshape(density_km2_s3, (-1, 1, 1)) * noise)


def _rotation6(basis: FloatArray) -> FloatArray:
    rotation = np.zeros((*basis.shape[:-2], 6, 6))
    rotation[..., :3, :3] = rotation[..., 3:, 3:] = basis
    return rotation


def symmetric(matrix: FloatArray) -> FloatArray:
    """Matrices (..., k, k) without the rounding that differs across the diagonal."""
    return 0.5 * (matrix + matrix.swapaxes(-1, -2))
