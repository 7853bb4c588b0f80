"""Readings summed up: what they say of six unknowns, to first order, in 28 numbers that add.

The form of some readings is the sum of the products, two by two, of their seven columns in units of noise: the design
(6) and what the readings are off at unknowns of zero. From it follow normal matrix, gradient and squared misfit at
any unknowns, without the readings.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.small_matrices import cholesky, square

SIZE = 28
_ROW, _COLUMN = np.tril_indices(7)


def parts(forms: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Normal matrix (g, 6, 6), gradient (g, 6) and squared misfit (g,) at unknowns of zero, of forms (g, 28)."""
    whole = np.empty((len(forms), 7, 7))
    whole[:, _ROW, _COLUMN] = whole[:, _COLUMN, _ROW] = forms
    return whole[:, :6, :6], whole[:, 6, :6], whole[:, 6, 6]


@njit(cache=True, nogil=True)
def summed(design: Any, misfit: Any, group: Any, unknowns: Any) -> Any:
    """Forms (g, 28) of the rows of each group, linearised at ``unknowns`` (g, 6).

    Design (m, 6, 6) and misfit (m, 6) are those there, in units of noise.
    """
    forms = np.zeros((len(unknowns), SIZE))
    column = np.empty(7)
    for row in range(len(design)):
        form, at = forms[group[row]], unknowns[group[row]]
        for i in range(6):
            column[6] = misfit[row, i]
            for j in range(6):
                column[j] = design[row, i, j]
                column[6] += column[j] * at[j]
            place = 0
            for a in range(7):
                for b in range(a + 1):
                    form[place] += column[a] * column[b]
                    place += 1
    return forms


@njit(cache=True, nogil=True)
def add(forms: Any, place: Any, total: Any) -> None:
    """Add each of ``forms`` (k, 28) to ``total`` (g, 28) at its place, in the order in which they come."""
    for k in range(len(forms)):
        into = total[place[k]]
        for i in range(SIZE):
            into[i] += forms[k, i]


@njit(cache=True, nogil=True)
def surprises(forms: Any, group: Any, unknowns: Any, information: Any, counted: Any) -> Any:
    """Squared misfit of each form (k,) against a fit of its group (g, 6), (g, 6, 6) that never saw it.

    What is ``counted`` (k,) in the fit is taken out of it again. Zero where the group is negative.
    """
    found = np.zeros(len(forms))
    known, gradient, solved = np.empty((6, 6)), np.empty(6), np.empty(6)
    for k in range(len(forms)):
        if group[k] < 0:
            continue
        form, y, fit = forms[k], unknowns[group[k]], information[group[k]]
        sign = -1.0 if counted[k] else 1.0
        found[k] = form[27]
        for a in range(6):
            gradient[a] = form[21 + a]
            for b in range(6):
                normal = form[a * (a + 1) // 2 + b] if b <= a else form[b * (b + 1) // 2 + a]
                known[a, b] = fit[a, b] + sign * normal
                gradient[a] -= normal * y[b]
            found[k] -= y[a] * (form[21 + a] + gradient[a])
        cholesky(known)
        found[k] -= sign * square(known, gradient, solved)
        if math.isnan(found[k]):
            found[k] = math.inf
    return found
