"""Angles-only arcs: groups a telescope's untagged observations by smooth motion across the sky.

Over a few minutes an object's next direction lies near the polynomial through its previous ones, within a small part
of its last step. Whether an arc belongs to one orbit is decided later (see ``differential_correction``).
"""

from __future__ import annotations

import numpy as np

from sda_platform.arrays import FloatArray, IntArray

MIN_ARC_OBSERVATIONS = 6
"""Twelve components for six unknowns: with fewer, noise could hardly contradict any orbit."""
_FASTEST_RAD_S = float(np.radians(1.2))
# At the usual cadence of ten seconds, two observations may be missing.
_LONGEST_GAP_S = 35.0
# Largest deviation from the extrapolation: as a share of the step, by polynomial degree, plus a multiple of the
# noise of the extrapolation and of the next observation.
_MISS_SHARE = (np.inf, 0.2, 0.05, 0.02)
_NOISE_SIGMAS = 5.0


def angles_only_arcs(direction: FloatArray, time_s: FloatArray, sigma_rad: FloatArray) -> list[IntArray]:
    """Smooth sequences among observations (m,) of one telescope, each observation in at most one arc; longest arcs
    first.

    Args:
        direction: (m, 3) unit vectors, inertial.
        time_s: (m,) in ascending order.
        sigma_rad: (m,) noise per axis.

    Returns:
        Positions of each arc's observations, in order of time; MIN_ARC_OBSERVATIONS or more.
    """
    found: list[list[int]] = []
    visited: set[tuple[int, ...]] = set()
    for first in range(len(time_s)):
        for second in _second_observations(direction, time_s, first):
            arc = _continued(direction, time_s, sigma_rad, [first, second], visited)
            if len(arc) >= MIN_ARC_OBSERVATIONS:
                found.append(arc)
                visited.update(zip(*(arc[n:] for n in range(len(_MISS_SHARE))), strict=False))
    free, arcs = np.ones(len(time_s), dtype=bool), []
    for arc in sorted(found, key=lambda each: (-len(each), each)):
        if free[arc].all():
            free[arc] = False
            arcs.append(np.array(arc, dtype=np.int64))
    return arcs


def _second_observations(direction: FloatArray, time_s: FloatArray, first: int) -> list[int]:
    """Return the observations that may be the second one of an arc, by time and angular speed."""
    ahead = _following(time_s, first)
    elapsed_s = time_s[ahead] - time_s[first]
    near = _angle(direction[ahead], direction[first]) <= _FASTEST_RAD_S * elapsed_s
    return [int(row) for row in ahead[near]]


def _continued(
    direction: FloatArray, time_s: FloatArray, sigma_rad: FloatArray, arc: list[int], visited: set[tuple[int, ...]]
) -> list[int]:
    """Return the arc, extended while an observation continues it; empty where it joins a known arc.

    The last four observations determine the next: an arc with four observations in ``visited`` is a known one.
    """
    while (following := _next(direction, time_s, sigma_rad, arc)) is not None:
        arc = [*arc, following]
        if tuple(arc[-len(_MISS_SHARE) :]) in visited:
            return []
    return arc


def _next(direction: FloatArray, time_s: FloatArray, sigma_rad: FloatArray, arc: list[int]) -> int | None:
    """Return the earliest observation consistent with the extrapolated arc."""
    ahead, (before, last) = _following(time_s, arc[-1]), arc[-2:]
    degree = min(len(arc), len(_MISS_SHARE)) - 1
    known = arc[-degree - 1 :]
    powers, wanted = (np.vander((time_s[rows] - time_s[last]) / _LONGEST_GAP_S, degree + 1) for rows in (known, ahead))
    weight = wanted @ np.linalg.inv(powers)
    expected = weight @ direction[known]
    noise_rad = np.sqrt(sigma_rad[ahead] ** 2 + weight**2 @ sigma_rad[known] ** 2)
    rate = _angle(direction[last], direction[before]) / (time_s[last] - time_s[before])
    allowed = _MISS_SHARE[degree] * rate * (time_s[ahead] - time_s[last]) + _NOISE_SIGMAS * noise_rad
    miss = _angle(direction[ahead], expected / np.linalg.norm(expected, axis=1, keepdims=True)) / allowed
    fits = np.flatnonzero(miss <= 1.0)
    if not len(fits):
        return None
    earliest = fits[time_s[ahead[fits]] == time_s[ahead[fits[0]]]]
    return int(ahead[earliest[np.argmin(miss[earliest])]])


def _following(time_s: FloatArray, row: int) -> IntArray:
    """Return the later observations within the longest gap."""
    begin, end = np.searchsorted(time_s, [time_s[row], time_s[row] + _LONGEST_GAP_S], side="right")
    return np.arange(begin, end, dtype=np.int64)


def _angle(one: FloatArray, other: FloatArray) -> FloatArray:
    """Angles between unit vectors; precise for small ones."""
    return np.asarray(2 * np.arcsin(np.clip(np.linalg.norm(one - other, axis=-1) / 2, 0.0, 1.0)))
