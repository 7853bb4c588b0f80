"""Compiled gate of observers in orbit: objects near rays, each from a place of its own at its own time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rays_near(
    site: Any, direction: Any, elapsed_s: Any, slack: Any, angle: Any, place: Any, speed: Any, radius: Any
) -> Any:
    """Pairs (p, 2) of ray (m,) and object (n,), km, km/s and rad, whose distance a true pair could have.

    Objects at ``place`` move straight on for ``elapsed_s``, and are known to ``radius``. A ray begins at ``site``,
    known to ``slack``, and widens by ``angle``. An object that may be where the observer is is left out, as is the
    observer: its direction has no information.
    """
    found = np.empty((1024, 2), np.int64)
    count = 0
    for ray in range(len(site)):
        for each in range(len(place)):
            reach = slack[ray] + radius[each]
            ahead, square = 0.0, 0.0
            for axis in range(3):
                line = place[each, axis] + elapsed_s[ray] * speed[each, axis] - site[ray, axis]
                ahead += line * direction[ray, axis]
                square += line * line
            if ahead < -reach or square <= reach * reach:
                continue
            reach += angle[ray] * math.sqrt(square)
            if square - ahead * ahead <= reach * reach:
                if count == len(found):
                    larger = np.empty((2 * count, 2), np.int64)
                    larger[:count] = found
                    found = larger
                found[count, 0], found[count, 1] = ray, each
                count += 1
    return found[:count]
