"""Compiled in-place products and factors of 6x6 matrices and 3-vectors, for loops over many observations."""

from __future__ import annotations

import math
from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def cholesky(matrix: Any) -> None:
    """Replace the lower triangle (6, 6) by that of the matrix's Cholesky factor; NaN where not positive definite."""
    for i in range(6):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                matrix[i, i] = math.sqrt(total) if total > 0.0 else math.nan
            else:
                matrix[i, j] = total / matrix[j, j]


@njit(cache=True, nogil=True)
def divide(factor: Any, design: Any, misfit: Any) -> None:
    """Whiten design (6, 6) and residual (6,) in place by the noise's Cholesky factor."""
    for i in range(6):
        for j in range(i):
            misfit[i] -= factor[i, j] * misfit[j]
            for column in range(6):
                design[i, column] -= factor[i, j] * design[j, column]
        misfit[i] /= factor[i, i]
        for column in range(6):
            design[i, column] /= factor[i, i]


@njit(cache=True, nogil=True)
def product(left: Any, right: Any, product: Any) -> None:
    for i in range(6):
        for j in range(6):
            product[i, j] = 0.0
            for k in range(6):
                product[i, j] += left[i, k] * right[k, j]


@njit(cache=True, nogil=True)
def add_product_transposed(sign: float, left: Any, right: Any, total: Any) -> None:
    for i in range(6):
        for j in range(6):
            for k in range(6):
                total[i, j] += sign * left[i, k] * right[j, k]


@njit(cache=True, nogil=True)
def square(factor: Any, vector: Any, solved: Any) -> float:
    """Squared norm of ``vector`` (6,) in units of the covariance with the given Cholesky factor."""
    total = 0.0
    for i in range(6):
        solved[i] = vector[i]
        for j in range(i):
            solved[i] -= factor[i, j] * solved[j]
        solved[i] /= factor[i, i]
        total += solved[i] * solved[i]
    return total


@njit(cache=True, nogil=True)
def dot(left: Any, right: Any) -> float:
    product: float = left[0] * right[0] + left[1] * right[1] + left[2] * right[2]
    return product


@njit(cache=True, nogil=True)
def cross(left: Any, right: Any) -> tuple[float, float, float]:
    return (
        left[1] * right[2] - left[2] * right[1],
        left[2] * right[0] - left[0] * right[2],
        left[0] * right[1] - left[1] * right[0],
    )


@njit(cache=True, nogil=True)
def times(factor: float, vector: Any) -> tuple[float, float, float]:
    return (factor * vector[0], factor * vector[1], factor * vector[2])


@njit(cache=True, nogil=True)
def along(factor: float, direction: Any, origin: Any) -> tuple[float, float, float]:
    """Add ``factor`` times ``direction`` to ``origin``."""
    return (
        origin[0] + factor * direction[0],
        origin[1] + factor * direction[1],
        origin[2] + factor * direction[2],
    )


@njit(cache=True, nogil=True)
def triple(row: Any) -> tuple[float, float, float]:
    """An array (3,) as a tuple, which numba keeps in registers instead of allocating an array per observation."""
    return (row[0], row[1], row[2])
