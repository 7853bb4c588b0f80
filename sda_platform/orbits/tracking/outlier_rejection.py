"""Outlier rejection on accumulated normal equations: finds blocks inconsistent with the rest of their group."""

from __future__ import annotations

from functools import cache

import numpy as np

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.chi_square import square_exceeded_by
from sda_platform.orbits.sensing import accumulated_equations
from sda_platform.orbits.tracking.estimation import MAX_SELECTIONS, OUTLIER_PROBABILITY, REJECT_TOGETHER

# Without a twentieth of the observations the sigmas grow by a fortieth.
_NEGLIGIBLE_SHARE = 0.05


def solve(equations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Unknowns (g, 6) and their information (g, 6, 6), prior included, from accumulated equations (g, 28)."""
    normal, gradient, _ = accumulated_equations.parts(equations)
    information = np.asarray(normal + np.eye(6), dtype=np.float64)
    return np.asarray(np.linalg.solve(information, gradient[:, :, None])[:, :, 0], dtype=np.float64), information


def normalised_deletion_residuals(
    equations: FloatArray,
    group: IntArray,
    dimension: IntArray,
    is_used: BoolArray,
    unknowns: FloatArray,
    information: FloatArray,
) -> FloatArray:
    """Deletion residual of each block (k,), in units of the bound that chance exceeds once in 100,000.

    ``is_used``: (k,) whether the fit contains the block, which is then removed from it. Zero where the group is
    negative.
    """
    deletion_residual = accumulated_equations.deletion_residuals(equations, group, unknowns, information, is_used)
    return np.asarray(deletion_residual / _bounds(int(dimension.max(initial=1)))[dimension])


def consistent_blocks(
    equations: FloatArray, group: IntArray, dimension: IntArray, observations: IntArray, groups: int
) -> tuple[BoolArray, BoolArray]:
    """Find which blocks (k,) of each group are mutually consistent, and for which groups (g,) that is conclusive.

    Selected as ``estimation`` selects observations. Inconclusive where no majority of observations is consistent.
    Also inconclusive where a rejected block holds several observations, of which sound ones would be lost in number.
    """
    is_used: BoolArray = np.ones(len(equations), dtype=bool)
    changed: BoolArray = np.ones(groups, dtype=bool)
    for _ in range(MAX_SELECTIONS):
        total = np.zeros((groups, accumulated_equations.SIZE))
        accumulated_equations.add(equations[is_used], group[is_used], total)
        excess = normalised_deletion_residuals(equations, group, dimension, is_used, *solve(total))
        worst = np.zeros(groups)
        np.maximum.at(worst, group, np.where(is_used, excess, 0.0))
        chosen = (excess <= 1.0) | (excess < REJECT_TOGETHER * worst[group])
        changed = np.bincount(group[chosen != is_used], minlength=groups) > 0
        if not changed.any():
            break
        is_used = chosen
    kept, total_count = (np.bincount(group, observations * which, minlength=groups) for which in (is_used, 1))
    has_mixed_blocks = np.bincount(group[~is_used & (observations > 1)], minlength=groups) > 0
    return is_used, ~changed & (2 * kept > total_count) & (
        ~has_mixed_blocks | (kept >= (1.0 - _NEGLIGIBLE_SHARE) * total_count)
    )


@cache
def _bounds(dimension: int) -> FloatArray:
    """Upper bounds of the squared residual of 0, 1, ... ``dimension`` components at the outlier probability."""
    return np.asarray(square_exceeded_by(OUTLIER_PROBABILITY, np.maximum(np.arange(dimension + 1), 1)))
