"""A warning for results that rest on old element sets: what commands print beside them."""

from typing import Final

import numpy as np

from sda_platform.arrays import IntArray
from sda_platform.units import DAY_NS

OLD_DAYS: Final = 7.0
"""Errors of element sets are measured up to a week; after it sets of low orbits are off by tens of kilometres."""


def age_warning(norad_id: IntArray, epoch_ns: IntArray, from_ns: IntArray, until_ns: IntArray) -> str | None:
    """How many sets (n,) are used more than a week from their epochs, between ``from_ns`` and ``until_ns`` (n,).

    None: none is.
    """
    if not len(norad_id):
        return None
    days = np.maximum(np.abs(from_ns - epoch_ns), np.abs(until_ns - epoch_ns)) / DAY_NS
    old = days > OLD_DAYS
    if not old.any():
        return None
    objects, every = len(np.unique(norad_id[old])), len(np.unique(norad_id))
    oldest = int(np.argmax(days))
    which = f"{norad_id[oldest]} is {days[oldest]:,.1f} days from its epoch"
    return (
        f"warning: the element sets of {objects:,} of {every:,} objects are more than {OLD_DAYS:g} days from their "
        f"epoch in the span (that of {which}): they may be tens of kilometres off, and approaches and passes missing"
    )
