"""Long tails of errors, stated by a comment of an object in a conjunction data message: the standard has no keyword.

The covariances alone give the probability of Gaussian errors, and with these degrees of freedom ours.
"""

import re
from collections.abc import Sequence
from math import inf
from typing import Final

_PHRASE: Final = "ERRORS BY STUDENT T, DEGREES OF FREEDOM"
_STATED: Final = re.compile(rf"{_PHRASE}\s*[=:]\s*(\d+(?:\.\d+)?)(?![\d.,e])", re.IGNORECASE)
_LEAST: Final = 1.0


def tails_comment(degrees: float) -> str:
    """Return the comment of an object with this distribution of errors, read by `stated_degrees`."""
    return f"{_PHRASE} = {degrees:.9f}; THE COVARIANCE'S 95 % ELLIPSOID HOLDS 95 %"


def stated_degrees(comments: Sequence[str]) -> float:
    """Return the degrees of freedom in an object's comments; infinite, as of a Gaussian, if none states at least 1."""
    found = next((each for comment in comments if (each := _STATED.search(comment))), None)
    degrees = float(found[1]) if found else inf
    return degrees if degrees >= _LEAST else inf
