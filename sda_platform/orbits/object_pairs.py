"""Pairs of objects by their catalogue numbers."""

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import IntArray

ObjectPairs = frozenset[tuple[int, int]]
"""Pairs of catalogue numbers, the lower one first."""


def are_among(pairs: ObjectPairs, first: IntArray, second: IntArray) -> npt.NDArray[np.bool_]:
    """Tell whether ``first`` (n,) and ``second`` (n,), in either order, are one of ``pairs``, (n,)."""
    found = np.zeros(len(first), np.bool_)
    lower, higher = np.minimum(first, second), np.maximum(first, second)
    # There are a few pairs at most: a comparison each costs less than a join.
    for one, other in pairs:
        found |= (lower == one) & (higher == other)
    return found
