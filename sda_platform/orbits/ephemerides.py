"""Ephemerides, states at many times: the state and covariance between them.

States are interpolated by Hermite's polynomial through positions and velocities of the nearest states, whatever method
the message proposes: every state has a velocity. Covariances are interpolated linearly in the axes of the orbit, where
they change slowly; a weighted sum of covariances is one.

A stored path may have gaps. A state of zeros, where no object can be, marks each: its neighbours are not connected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import utc_to_tai_ns
from sda_platform.orbits.covariance import SLOW_NOISE_KM2_S3, process_noise, rtn_to_teme, teme_to_rtn, transport
from sda_platform.units import SECOND_NS

_POINTS = 4  # degree 7, which messages propose most
_LOWER = np.tril_indices(6)


@dataclasses.dataclass(frozen=True, eq=False)
class Ephemeris:
    """One object's states (n, 6) at ``state_time_ns`` (n,), covariances (m, 6, 6) at ``covariance_time_ns`` (m,).

    km and km/s, TEME of date; times are Unix times UTC and ascend. ``usable_from_ns`` and ``usable_until_ns`` bound the
    span to interpolate in.
    """

    state_time_ns: IntArray
    state: FloatArray
    covariance_time_ns: IntArray
    covariance: FloatArray
    usable_from_ns: int
    usable_until_ns: int

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Ephemeris:
        """From a row of the table `ephemerides` without an error."""
        return cls(
            np.asarray(row["state_time_ns"], np.int64),
            np.asarray(row["state"], np.float64).reshape(-1, 6),
            np.asarray(row["covariance_time_ns"], np.int64),
            covariances_from_lower(row["covariance"]),
            row["usable_from_ns"],
            row["usable_until_ns"],
        )

    @classmethod
    def pieces_of(cls, row: Mapping[str, Any]) -> tuple[Ephemeris, ...]:
        """Split a row's path, which may have gaps, into its usable stretches, by time."""
        whole = cls.from_row(row)
        is_known = np.concatenate([[False], whole.state.any(axis=1), [False]])
        edges = np.flatnonzero(is_known[1:] != is_known[:-1]).reshape(-1, 2).tolist()
        pieces = [whole._piece(slice(begin, end)) for begin, end in edges]
        return tuple(each for each in pieces if each.usable_from_ns < each.usable_until_ns)

    def at(self, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (k, 6) and covariances (k, 6, 6) at ``time_ns`` (k,).

        NaN outside of the usable span, and covariances where there are none. Before the first covariance and after the
        last one, that one is carried along the orbit, with process noise.
        """
        state = self.states(time_ns)
        known = np.flatnonzero(np.isfinite(state).all(axis=1))
        covariance = np.full((len(time_ns), 6, 6), np.nan)
        if len(self.covariance_time_ns) and len(known):
            covariance[known] = self._covariances(time_ns[known], state[known])
        return state, covariance

    def states(self, time_ns: IntArray) -> FloatArray:
        """States (k, 6) at ``time_ns`` (k,), NaN outside of the usable span."""
        usable = (time_ns >= self.usable_from_ns) & (time_ns <= self.usable_until_ns)
        return np.where(usable[:, None], states_at(self.state_time_ns, self.state, time_ns), np.nan)

    def carried(self, time_ns: IntArray, index: IntArray) -> FloatArray:
        """Propagate covariances number ``index`` (k,) to any ``time_ns`` (k,), with process noise: (k, 6, 6)."""
        state = self._states_of_covariances[index]
        elapsed_s = (time_ns - self.covariance_time_ns[index]) / SECOND_NS
        _, carried = transport(np.zeros((len(index), 6)), self.covariance[index], state[:, :3], state[:, 3:], elapsed_s)
        return np.asarray(carried + process_noise(elapsed_s, SLOW_NOISE_KM2_S3))

    def _piece(self, rows: slice) -> Ephemeris:
        time_ns = self.state_time_ns[rows]
        own = (self.covariance_time_ns >= time_ns[0]) & (self.covariance_time_ns <= time_ns[-1])
        return Ephemeris(
            time_ns,
            self.state[rows],
            self.covariance_time_ns[own],
            self.covariance[own],
            max(self.usable_from_ns, int(time_ns[0])),
            min(self.usable_until_ns, int(time_ns[-1])),
        )

    def _covariances(self, time_ns: IntArray, state: FloatArray) -> FloatArray:
        after = np.searchsorted(self.covariance_time_ns, time_ns)
        last = len(self.covariance_time_ns) - 1
        before, after = np.clip(after - 1, 0, last), np.clip(after, 0, last)
        begin_ns, end_ns = self.covariance_time_ns[before], self.covariance_time_ns[after]
        span_ns = np.maximum(end_ns - begin_ns, 1)
        weight = np.clip((time_ns - begin_ns) / span_ns, 0, 1)[:, None, None]
        in_orbit = (1 - weight) * self._in_rtn[before] + weight * self._in_rtn[after]
        found = rtn_to_teme(in_orbit, state[:, :3], state[:, 3:])
        outside = np.flatnonzero((time_ns < self.covariance_time_ns[0]) | (time_ns > self.covariance_time_ns[-1]))
        if len(outside):
            found[outside] = self.carried(time_ns[outside], before[outside])
        return found

    @cached_property
    def _in_rtn(self) -> FloatArray:
        """The covariances in the RTN axes of the states at their times."""
        state = self._states_of_covariances
        return teme_to_rtn(self.covariance, state[:, :3], state[:, 3:])

    @cached_property
    def _states_of_covariances(self) -> FloatArray:
        times = np.clip(self.covariance_time_ns, self.state_time_ns[0], self.state_time_ns[-1])
        return states_at(self.state_time_ns, self.state, times)


def joined(pieces: Sequence[Ephemeris], first_ns: int, last_ns: int) -> dict[str, Any]:
    """Return the columns of a row that has these pieces, in order of time, of a path that was sent from first
    to last.
    """
    edges = [(int(each.state_time_ns[0]), int(each.state_time_ns[-1])) for each in pieces]
    between = [(end + begin) // 2 for (_, end), (begin, _) in pairwise(edges)]
    ends = [first_ns] if first_ns < edges[0][0] else [], [last_ns] if last_ns > edges[-1][1] else []
    gaps_ns = np.array([*ends[0], *between, *ends[1]], np.int64)
    time_ns = np.concatenate([gaps_ns, *(each.state_time_ns for each in pieces)])
    state = np.concatenate([np.zeros((len(gaps_ns), 6)), *(each.state for each in pieces)])
    order = np.argsort(time_ns, kind="stable")
    covariance = np.concatenate([each.covariance for each in pieces])
    return {
        "state_time_ns": time_ns[order].tolist(),
        "state": state[order].ravel().tolist(),
        "covariance_time_ns": np.concatenate([each.covariance_time_ns for each in pieces]).tolist(),
        "covariance": covariance[:, _LOWER[0], _LOWER[1]].ravel().tolist(),
        "usable_from_ns": pieces[0].usable_from_ns,
        "usable_until_ns": pieces[-1].usable_until_ns,
    }


def gaps_of(row: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Find the gaps in a row's path: begin and end, ns."""
    time_ns = row["state_time_ns"]
    is_known = np.asarray(row["state"], np.float64).reshape(-1, 6).any(axis=1)
    last = len(time_ns) - 1
    return [(time_ns[max(n - 1, 0)], time_ns[min(n + 1, last)]) for n in np.flatnonzero(~is_known).tolist()]


def states_at(epoch_ns: IntArray, state: FloatArray, time_ns: IntArray) -> FloatArray:
    """States (m, 6) at ``time_ns`` (m,) of an object whose states (n, 6) at ``epoch_ns`` (n,), ascending, are known.

    km and km/s in an inertial frame. NaN outside of the known times; a single state holds at its epoch only.
    """
    epoch_ns, time_ns = utc_to_tai_ns(epoch_ns), utc_to_tai_ns(time_ns)
    found = np.full((len(time_ns), 6), np.nan)
    inside = np.flatnonzero((time_ns >= epoch_ns[0]) & (time_ns <= epoch_ns[-1]))
    first, points = nodes_around(np.searchsorted(epoch_ns, time_ns[inside], side="right"), len(epoch_ns))
    curves, curve = np.unique(first, return_inverse=True)
    chosen = curves[:, None] + np.arange(points)
    knots_s = (epoch_ns[chosen] - epoch_ns[curves, None]) / SECOND_NS
    found[inside] = _on_curves(knots_s, state[chosen], curve, (time_ns[inside] - epoch_ns[first]) / SECOND_NS)
    return found


def _on_curves(knots_s: FloatArray, states: FloatArray, curve: IntArray, wanted_s: FloatArray) -> FloatArray:
    """States (m, 6) at ``wanted_s`` (m,), each on the polynomial ``curve`` (m,) of those through ``states`` (c, p, 6).

    Newton's form: at each knot, counted twice, the position, and as its derivative the velocity.
    """
    knots = np.repeat(knots_s, 2, axis=1)
    differences = np.repeat(states[:, :, :3], 2, axis=1)
    terms = [differences[:, 0]]
    for order in range(1, knots.shape[1]):
        span = (knots[:, order:] - knots[:, :-order])[:, :, None]
        slopes = np.diff(differences, axis=1) / np.where(span == 0, 1.0, span)
        if order == 1:
            slopes[:, ::2] = states[:, :, 3:]
        differences = slopes
        terms.append(slopes[:, 0])
    position, velocity = terms[-1][curve], np.zeros((len(curve), 3))
    for order in range(len(terms) - 2, -1, -1):
        beyond = (wanted_s - knots[curve, order])[:, None]
        velocity = velocity * beyond + position
        position = position * beyond + terms[order][curve]
    return np.concatenate([position, velocity], axis=1)


def nodes_around(after: IntArray, count: int) -> tuple[IntArray, int]:
    """Return the first (m,) of the states, and how many, that a curve goes through just before state ``after`` (m,)."""
    points = min(_POINTS, count)
    return np.clip(after - (points + 1) // 2, 0, count - points), points


def covariances_from_lower(terms: npt.ArrayLike) -> FloatArray:
    """Return covariances (m, 6, 6) from their lower triangles (m, 21), row by row."""
    lower = np.asarray(terms, np.float64).reshape(-1, len(_LOWER[0]))
    full = np.zeros((len(lower), 6, 6))
    full[:, _LOWER[0], _LOWER[1]] = lower
    return np.asarray(full + np.tril(full, -1).swapaxes(1, 2))
