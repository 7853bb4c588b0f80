"""Covariances that lack information: detection, and linear algebra that does not fail on them."""

from __future__ import annotations

import numpy as np

from sda_platform.arrays import BoolArray, FloatArray

# Part of the largest eigenvalue. Rotating a singular block leaves 1e-16; a metre against 1,000 km is 1e-12.
_SINGULAR = 1e-14
# No object about the Earth is less certain than this; squares and products of larger numbers overflow.
LARGEST_SIGMA_KM, LARGEST_SIGMA_KM_S = 1e7, 1e4


DEFAULT_SIGMA_KM = 1e3
"""Messages mark an unknown covariance by such sigmas or larger ones: 10 Earth radii, one, or 1,000 km."""


def without_default(covariance: FloatArray) -> FloatArray:
    """A stated covariance (6, 6), km and km/s, or zero where a sigma of its position marks it as unknown."""
    is_default = np.sqrt(np.diagonal(covariance)[:3].max(initial=0.0)) >= DEFAULT_SIGMA_KM
    return np.zeros_like(covariance) if is_default else covariance


def is_usable(covariance: FloatArray) -> BoolArray:
    """Return whether covariances (n, 6, 6) of km and km/s are finite and of a computable size, (n,)."""
    limit = np.array([LARGEST_SIGMA_KM] * 3 + [LARGEST_SIGMA_KM_S] * 3)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(covariance) <= np.outer(limit, limit)).all(axis=(-2, -1)))


def is_rank_deficient(covariance: FloatArray) -> BoolArray:
    """Return whether blocks (n, 3, 3) are zero, singular or without a positive eigenvalue, (n,): some direction has no
    error.

    A block with one clearly negative eigenvalue is excluded: it is clipped and has its own flag.
    """
    value = np.linalg.eigvalsh(covariance)
    size = np.abs(value)
    return np.asarray((size.min(axis=-1) <= _SINGULAR * size.max(axis=-1)) | (value[:, -1] <= 0))


def solve_or_nan(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve linear equations for matrices (n, k, k) and vectors (n, k); NaN, (n, k), where a matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.array([_solved(each, vector) for each, vector in zip(matrix, right, strict=True)])


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return np.full(len(right), np.nan)
