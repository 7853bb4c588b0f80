"""Compiled gate of observers in orbit: objects near rays, each from a place of its own at its own time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from scipy.spatial import KDTree

from sda_platform.arrays import FloatArray, IntArray

_TOGETHER = 32


def rays_near(
    site: FloatArray,
    direction: FloatArray,
    elapsed_s: FloatArray,
    slack: FloatArray,
    angle: FloatArray,
    place: FloatArray,
    speed: FloatArray,
    radius: FloatArray,
) -> IntArray:
    """Pairs (p, 2) of ray (m,) and object (n,), km, km/s and rad, whose distance a true pair could have, in order.

    Objects at ``place`` move straight on for ``elapsed_s``, and are known to ``radius``. A ray begins at ``site``,
    known to ``slack``, and widens by ``angle``. An object that may be where the observer is is left out, as is the
    observer: its direction has no information. Objects without a place are near no ray.

    Neighbours are looked at together first: a ray passes most of them by.
    """
    known = np.flatnonzero(np.isfinite(place).all(axis=1) & np.isfinite(speed).all(axis=1))
    if not len(known):
        return np.empty((0, 2), np.int64)
    order, first = _neighbours(place[known])
    chosen = known[order]
    place, speed, radius = place[chosen], speed[chosen], radius[chosen]
    count = np.diff(first, append=len(chosen))
    centre = np.add.reduceat(place, first) / count[:, None]
    spread = np.maximum.reduceat(np.linalg.norm(place - np.repeat(centre, count, axis=0), axis=1), first)
    fastest = np.maximum.reduceat(np.linalg.norm(speed, axis=1), first)
    widest = np.maximum.reduceat(radius, first)
    groups = (np.append(first, len(chosen)), centre, spread, fastest, widest)
    pairs = _near(site, direction, elapsed_s, slack, angle, place, speed, radius, *groups)
    pairs[:, 1] = chosen[pairs[:, 1]]
    return np.asarray(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])


def _neighbours(place: FloatArray) -> tuple[IntArray, IntArray]:
    """An order of the objects in which neighbours follow each other, and where in it each group of them begins."""
    leaves, waiting = [], [KDTree(place, leafsize=_TOGETHER).tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, KDTree.leafnode):
            leaves.append(node.idx)
        else:
            waiting += [node.less, node.greater]
    return np.concatenate(leaves), np.cumsum([0, *map(len, leaves[:-1])])


@njit(cache=True, nogil=True)
def _near(
    site: Any,
    direction: Any,
    elapsed_s: Any,
    slack: Any,
    angle: Any,
    place: Any,
    speed: Any,
    radius: Any,
    first: Any,
    centre: Any,
    spread: Any,
    fastest: Any,
    widest: Any,
) -> Any:
    found = np.empty((1024, 2), np.int64)
    count = 0
    for ray in range(len(site)):
        for group in range(len(centre)):
            ahead, square = 0.0, 0.0
            for axis in range(3):
                line = centre[group, axis] - site[ray, axis]
                ahead += line * direction[ray, axis]
                square += line * line
            # No member is farther from the centre, nor is its reach longer.
            apart = spread[group] + abs(elapsed_s[ray]) * fastest[group]
            reach = slack[ray] + widest[group]
            wide = apart + reach + angle[ray] * (math.sqrt(square) + apart)
            if ahead < -(apart + reach) or square - ahead * ahead > wide * wide:
                continue
            for each in range(first[group], first[group + 1]):
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
