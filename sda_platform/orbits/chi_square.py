"""The chi-square distribution: of squared distances in sigmas, by their degrees of freedom.

`scipy.special` has it under short names; `scipy.stats` takes half a second to import.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, chdtrc, chdtri, gammaincinv


def share_below(square: npt.ArrayLike, degrees: npt.ArrayLike) -> Any:
    """Return how probable a smaller square is, same shape; of one that rounding made negative, 0."""
    return chdtr(degrees, np.maximum(square, 0.0))


def share_above(square: npt.ArrayLike, degrees: npt.ArrayLike) -> Any:
    """Return how probable a larger square is, same shape; of one that rounding made negative, 1."""
    return chdtrc(degrees, np.maximum(square, 0.0))


def square_exceeded_by(share: npt.ArrayLike, degrees: npt.ArrayLike) -> Any:
    """Return the square above which chance is with the probability ``share``."""
    return chdtri(degrees, share)


def square_holding(share: npt.ArrayLike, degrees: npt.ArrayLike) -> Any:
    """Return the square below which chance is with the probability ``share``."""
    return 2 * gammaincinv(np.asarray(degrees) / 2, share)
