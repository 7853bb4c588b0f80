"""A telescope's sightings told apart by motion: which of them are of one object, where nobody names them.

Over a few minutes an object crosses the sky smoothly: its next sighting lies where a polynomial through those before
leads to, within a small part of its last step. Whether an arc is of one orbit is not told here (see
``differential_correction``).
"""

from __future__ import annotations

import numpy as np

from sda_platform.orbits.elements import FloatArray, IntArray

LEAST_SIGHTINGS = 6
"""Twelve numbers for six unknowns: of fewer, noise could hardly contradict any orbit."""
_FASTEST_RAD_S = float(np.radians(1.2))
# Two looks of a usual cadence of ten seconds may be missing.
_LONGEST_GAP_S = 35.0
# By how much of its step an object may miss what is expected, by the degree of the polynomial, and by how much of the
# noise that the prediction makes of its own sightings' and of the next one's.
_MISS = (np.inf, 0.2, 0.05, 0.02)
_NOISE_SIGMAS = 5.0


def angles_only_arcs(direction: FloatArray, time_s: FloatArray, sigma_rad: FloatArray) -> list[IntArray]:
    """VisibleArcs (m,) of one telescope that follow one another smoothly, each in at most one arc; longest arcs first.

    Args:
        direction: (m, 3) unit vectors, inertial.
        time_s: (m,) in ascending order.
        sigma_rad: (m,) noise per axis.

    Returns:
        Positions of each arc's sightings, in order of time; LEAST_SIGHTINGS or more.
    """
    found: list[list[int]] = []
    passed: set[tuple[int, ...]] = set()
    for first in range(len(time_s)):
        for second in _beginnings(direction, time_s, first):
            arc = _followed(direction, time_s, sigma_rad, [first, second], passed)
            if len(arc) >= LEAST_SIGHTINGS:
                found.append(arc)
                passed.update(zip(*(arc[n:] for n in range(len(_MISS))), strict=False))
    free, arcs = np.ones(len(time_s), dtype=bool), []
    for arc in sorted(found, key=lambda each: (-len(each), each)):
        if free[arc].all():
            free[arc] = False
            arcs.append(np.array(arc, dtype=np.int64))
    return arcs


def _beginnings(direction: FloatArray, time_s: FloatArray, first: int) -> list[int]:
    """The sightings that might be the second ones of an arc, by time and speed."""
    ahead = _ahead(time_s, first)
    elapsed_s = time_s[ahead] - time_s[first]
    near = _angle(direction[ahead], direction[first]) <= _FASTEST_RAD_S * elapsed_s
    return [int(row) for row in ahead[near]]


def _followed(
    direction: FloatArray, time_s: FloatArray, sigma_rad: FloatArray, arc: list[int], passed: set[tuple[int, ...]]
) -> list[int]:
    """The arc continued as far as there is a sighting that continues it; empty where it joins one that was found.

    The last four sightings decide what follows: whatever has ``passed`` the same four before is that arc again.
    """
    while (following := _next(direction, time_s, sigma_rad, arc)) is not None:
        arc = [*arc, following]
        if tuple(arc[-len(_MISS) :]) in passed:
            return []
    return arc


def _next(direction: FloatArray, time_s: FloatArray, sigma_rad: FloatArray, arc: list[int]) -> int | None:
    """The earliest sighting that is where the arc leads to."""
    ahead, (before, last) = _ahead(time_s, arc[-1]), arc[-2:]
    degree = min(len(arc), len(_MISS)) - 1
    known = arc[-degree - 1 :]
    powers, wanted = (np.vander((time_s[rows] - time_s[last]) / _LONGEST_GAP_S, degree + 1) for rows in (known, ahead))
    weight = wanted @ np.linalg.inv(powers)
    expected = weight @ direction[known]
    noise_rad = np.sqrt(sigma_rad[ahead] ** 2 + weight**2 @ sigma_rad[known] ** 2)
    rate = _angle(direction[last], direction[before]) / (time_s[last] - time_s[before])
    allowed = _MISS[degree] * rate * (time_s[ahead] - time_s[last]) + _NOISE_SIGMAS * noise_rad
    miss = _angle(direction[ahead], expected / np.linalg.norm(expected, axis=1, keepdims=True)) / allowed
    fits = np.flatnonzero(miss <= 1.0)
    if not len(fits):
        return None
    earliest = fits[time_s[ahead[fits]] == time_s[ahead[fits[0]]]]
    return int(ahead[earliest[np.argmin(miss[earliest])]])


def _ahead(time_s: FloatArray, row: int) -> IntArray:
    """The sightings after that one that may be the next, however far away."""
    begin, end = np.searchsorted(time_s, [time_s[row], time_s[row] + _LONGEST_GAP_S], side="right")
    return np.arange(begin, end, dtype=np.int64)


def _angle(one: FloatArray, other: FloatArray) -> FloatArray:
    """Angles between unit vectors; precise for small ones."""
    return np.asarray(2 * np.arcsin(np.clip(np.linalg.norm(one - other, axis=-1) / 2, 0.0, 1.0)))
