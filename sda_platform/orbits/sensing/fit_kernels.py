"""Compiled kernels of a least-squares fit: they use the design matrix and the residuals, but no measurement model.

``rows`` selects observations; ``design`` (m, 6, 6) and ``residual`` (m, 6) are in units of the noise, as written by
``measurement_model.whiten``; ``group`` (m,) is the number of each observation's group.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from sda_platform.orbits.small_matrices import add_product_transposed, cholesky, product, square


@njit(cache=True, nogil=True)
def apply_step(rows: Any, design: Any, residual: Any, group: Any, steps: Any) -> None:
    """Update the residuals of ``rows``, to first order, for ``steps`` (g, 6) of their groups' unknowns."""
    for row in rows:
        step = steps[group[row]]
        for i in range(6):
            for j in range(6):
                residual[row, i] -= design[row, i, j] * step[j]


@njit(cache=True, nogil=True)
def normal_equations(rows: Any, design: Any, residual: Any, group: Any, counted: Any, groups: Any) -> Any:
    """Accumulate the normal equations of each group over those ``rows`` that are ``counted``.

    Returns normal matrix (g, 6, 6), gradient (g, 6), squared residual (g,).
    """
    normal, gradient, squared = np.zeros((groups, 6, 6)), np.zeros((groups, 6)), np.zeros(groups)
    for row in rows:
        if not counted[row]:
            continue
        g = group[row]
        for i in range(6):
            component = residual[row, i]
            squared[g] += component * component
            for a in range(6):
                factor = design[row, i, a]
                if factor != 0.0:
                    gradient[g, a] += factor * component
                    for b in range(6):
                        normal[g, a, b] += factor * design[row, i, b]
    return normal, gradient, squared


@njit(cache=True, nogil=True)
def deletion_residuals(rows: Any, design: Any, residual: Any, group: Any, posterior: Any, counted: Any) -> Any:
    """Squared deletion residual (k,) of each of ``rows``: against the fit of its group without that observation.

    The covariance of the residual is the noise less the fit's share for an observation in the fit (``counted``). For
    one that was left out it is the noise plus that share.

    Source: Baarda (1968), A Testing Procedure for Use in Geodetic Networks.
    """
    found = np.empty(len(rows))
    left, known = np.empty((6, 6)), np.empty((6, 6))
    solved = np.empty(6)
    for k in range(len(rows)):
        row = rows[k]
        sign = -1.0 if counted[row] else 1.0
        product(design[row], posterior[group[row]], known)
        left[:] = np.eye(6)
        add_product_transposed(sign, known, design[row], left)
        cholesky(left)
        found[k] = square(left, residual[row], solved)
        if math.isnan(found[k]):
            found[k] = math.inf
    return found
