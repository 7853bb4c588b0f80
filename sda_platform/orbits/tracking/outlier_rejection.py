"""Which of an object's sums contradict the others, and what the others say without them; no reading is looked at."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.sensing import quadratic_forms
from sda_platform.orbits.tracking.estimation import LEAVE_TOGETHER, MAX_CHOICES, OUTLIER_PROBABILITY

BoolArray = npt.NDArray[np.bool_]

# A twentieth of the readings is worth a fortieth of a sigma's size.
_NOT_MISSED = 0.05


def solved(forms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Unknowns (g, 6) and their information (g, 6, 6), prior included, by forms (g, 28)."""
    normal, gradient, _ = quadratic_forms.parts(forms)
    information = np.asarray(normal + np.eye(6), dtype=np.float64)
    return np.asarray(np.linalg.solve(information, gradient[:, :, None])[:, :, 0], dtype=np.float64), information


def excesses(
    forms: FloatArray,
    group: IntArray,
    dimension: IntArray,
    counted: BoolArray,
    unknowns: FloatArray,
    information: FloatArray,
) -> FloatArray:
    """How far each form (k,) is from a fit of its group that never saw it, of what chance would do once in 100,000.

    ``counted``: (k,) whether the fit did see it, and has to be rid of it. Zero where the group is negative.
    """
    surprise = quadratic_forms.surprises(forms, group, unknowns, information, counted)
    return np.asarray(surprise / _bounds(int(dimension.max(initial=1)))[dimension])


def agreeing(
    forms: FloatArray, group: IntArray, dimension: IntArray, readings: IntArray, groups: int
) -> tuple[BoolArray, BoolArray]:
    """Which forms (k,) of each group (g,) agree with one another, and of which groups that settles it.

    Chosen as ``estimation`` chooses readings. It settles nothing where no majority of readings agrees, or where forms
    of several readings would have to leave, of which some may be sound, and these would be missed.
    """
    counted: BoolArray = np.ones(len(forms), dtype=bool)
    changed: BoolArray = np.ones(groups, dtype=bool)
    for _ in range(MAX_CHOICES):
        total = np.zeros((groups, quadratic_forms.SIZE))
        quadratic_forms.add(forms[counted], group[counted], total)
        excess = excesses(forms, group, dimension, counted, *solved(total))
        worst = np.zeros(groups)
        np.maximum.at(worst, group, np.where(counted, excess, 0.0))
        chosen = (excess <= 1.0) | (excess < LEAVE_TOGETHER * worst[group])
        changed = np.bincount(group[chosen != counted], minlength=groups) > 0
        if not changed.any():
            break
        counted = chosen
    kept, all_of_it = (np.bincount(group, readings * which, minlength=groups) for which in (counted, 1))
    torn = np.bincount(group[~counted & (readings > 1)], minlength=groups) > 0
    return counted, ~changed & (2 * kept > all_of_it) & (~torn | (kept >= (1.0 - _NOT_MISSED) * all_of_it))


@cache
def _bounds(dimension: int) -> FloatArray:
    """What the squared misfit of as many numbers (0, 1, ... ``dimension``) may be by chance."""
    return np.asarray(chi2.isf(OUTLIER_PROBABILITY, np.maximum(np.arange(dimension + 1), 1)))
