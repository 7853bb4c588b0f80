"""Normal equations of six unknowns, accumulated over observations and stored as 28 numbers that add.

A block is the lower triangle of the product of the seven whitened columns with themselves: the design (6) and the
residual at unknowns of zero. Normal matrix, gradient and squared residual at any unknowns follow from it, without the
observations.

Source: Bierman, Factorization Methods for Discrete Sequential Estimation (1977), chapter II.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.orbits.small_matrices import cholesky, square

SIZE = 28
_ROW, _COLUMN = np.tril_indices(7)


def parts(equations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Normal matrix (g, 6, 6), gradient (g, 6) and squared residual (g,) at unknowns of zero, of blocks (g, 28)."""
    whole = np.empty((len(equations), 7, 7))
    whole[:, _ROW, _COLUMN] = whole[:, _COLUMN, _ROW] = equations
    return whole[:, :6, :6], whole[:, 6, :6], whole[:, 6, 6]


@njit(cache=True, nogil=True)
def accumulate(design: Any, residual: Any, group: Any, unknowns: Any) -> Any:
    """Blocks (g, 28) of the rows of each group, linearised at ``unknowns`` (g, 6).

    Design (m, 6, 6) and residual (m, 6) are those at ``unknowns``, in units of noise.
    """
    equations = np.zeros((len(unknowns), SIZE))
    column = np.empty(7)
    for row in range(len(design)):
        block, at = equations[group[row]], unknowns[group[row]]
        for i in range(6):
            column[6] = residual[row, i]
            for j in range(6):
                column[j] = design[row, i, j]
                column[6] += column[j] * at[j]
            position = 0
            for a in range(7):
                for b in range(a + 1):
                    block[position] += column[a] * column[b]
                    position += 1
    return equations


@njit(cache=True, nogil=True)
def add(equations: Any, position: Any, total: Any) -> None:
    """Add each of the blocks (k, 28) to ``total`` (g, 28) at its index, in the given order."""
    for k in range(len(equations)):
        into = total[position[k]]
        for i in range(SIZE):
            into[i] += equations[k, i]


@njit(cache=True, nogil=True)
def deletion_residuals(equations: Any, group: Any, unknowns: Any, information: Any, is_used: Any) -> Any:
    """Squared deletion residual of each block (k,) against the fit of its group, (g, 6) and (g, 6, 6), without that
    block.

    A block that the fit used (``is_used``, (k,)) is removed from it first. Zero where the group is negative.
    """
    found = np.zeros(len(equations))
    reduced, gradient, solved = np.empty((6, 6)), np.empty(6), np.empty(6)
    for k in range(len(equations)):
        if group[k] < 0:
            continue
        block, y, fit = equations[k], unknowns[group[k]], information[group[k]]
        sign = -1.0 if is_used[k] else 1.0
        found[k] = block[27]
        for a in range(6):
            gradient[a] = block[21 + a]
            for b in range(6):
                normal = block[a * (a + 1) // 2 + b] if b <= a else block[b * (b + 1) // 2 + a]
                reduced[a, b] = fit[a, b] + sign * normal
                gradient[a] -= normal * y[b]
            found[k] -= y[a] * (block[21 + a] + gradient[a])
        cholesky(reduced)
        found[k] -= sign * square(reduced, gradient, solved)
        if math.isnan(found[k]):
            found[k] = math.inf
    return found
