"""Numerically integrated motion of simulated objects, from SGP4's state at a first time.

States at multiples of ten minutes after it are kept. Every other state is integrated from the one before, so that it
depends on no other request: the same arguments give the same bytes in any order and process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import SECOND_NS

_STRETCH_NS = 600 * SECOND_NS
# Knots between which cubics are exact to a hundredth of a millimetre.
_KNOT_NS = 5 * SECOND_NS
_KNOTS = _STRETCH_NS // _KNOT_NS + 1


@dataclass(eq=False)
class Motion:
    """Kept states of objects, GCRF; rows are those of the propagator."""

    dynamics: Dynamics = field(default_factory=Dynamics)
    kept: dict[tuple[int, int], FloatArray] = field(default_factory=dict)
    """State (6,) at the beginning of a row's stretch, by row and number of the stretch."""
    newest: dict[int, int] = field(default_factory=dict)

    def states(
        self, propagator: Propagator, ahead_ns: IntArray, from_ns: IntArray, index: IntArray, time_ns: IntArray
    ) -> tuple[ErrorArray, FloatArray]:
        """Error (m,) and state (m, 6), TEME, of rows ``index`` (m,) at ``time_ns`` (m,).

        Args:
            propagator: SGP4 of all rows.
            ahead_ns: time by which each row is ahead of its elements.
            from_ns: the first time of each row; before it, SGP4 counts.
            index: (m,)
            time_ns: (m,)
        """
        error, r, v = propagator.at(index, time_ns + ahead_ns[index])
        states = np.hstack([r, v])
        stretch = (time_ns - from_ns[index]) // _STRETCH_NS
        moving = np.flatnonzero((stretch >= 0) & (error == 0))
        if not len(moving):
            return error, states
        pairs, inverse = np.unique(np.stack([index[moving], stretch[moving]]), axis=1, return_inverse=True)
        row, number = pairs
        begin_ns = from_ns[row] + number * _STRETCH_NS
        areas = _areas(propagator, row)
        starts = self._starts(propagator, ahead_ns, from_ns, row, number)
        knots_ns = begin_ns[:, None] + np.arange(_KNOTS) * _KNOT_NS
        knots = self.dynamics.states(starts, areas, begin_ns, knots_ns)
        found = _between(knots, inverse, time_ns[moving] - begin_ns[inverse])
        states[moving] = teme_of_gcrf(found, time_ns[moving])
        return np.where(np.isfinite(states).all(axis=1), error, np.uint8(6)), states

    def _starts(
        self, propagator: Propagator, ahead_ns: IntArray, from_ns: IntArray, row: IntArray, number: IntArray
    ) -> FloatArray:
        """States (n, 6) at the beginnings of stretches ``number`` of ``row``; missing ones are integrated and kept."""
        new = np.array(sorted(set(row.tolist()) - set(self.newest)), dtype=np.int64)
        if len(new):
            _, r, v = propagator.at(new, from_ns[new] + ahead_ns[new])
            for each, state in zip(new.tolist(), gcrf_of_teme(np.hstack([r, v]), from_ns[new]), strict=True):
                self.kept[each, 0], self.newest[each] = state, 0
        most = dict(zip(row.tolist(), number.tolist(), strict=True))
        for each, wanted in zip(row.tolist(), number.tolist(), strict=True):
            if (each, wanted) not in self.kept and wanted < self.newest[each]:
                self.newest[each] = 0  # of an earlier time again: from the first state
        while behind := sorted(each for each, wanted in most.items() if self.newest[each] < wanted):
            rows = np.array(behind, dtype=np.int64)
            last = np.array([self.newest[each] for each in behind], dtype=np.int64)
            begin_ns = from_ns[rows] + last * _STRETCH_NS
            states = np.array([self.kept[each, self.newest[each]] for each in behind])
            after = self.dynamics.states(states, _areas(propagator, rows), begin_ns, begin_ns[:, None] + _STRETCH_NS)
            for each, state in zip(behind, after[:, 0], strict=True):
                self.newest[each] += 1
                self.kept[each, self.newest[each]] = state
        wanted_pairs = list(zip(row.tolist(), number.tolist(), strict=True))
        found = np.array([self.kept[pair] for pair in wanted_pairs])
        least = min(number.tolist())
        # The newest state of a row stays, however old: the row's next state follows from it.
        for each, before in [pair for pair in self.kept if 0 < pair[1] < min(least, self.newest[pair[0]])]:
            del self.kept[each, before]
        return found


def _areas(propagator: Propagator, rows: IntArray) -> FloatArray:
    return first_coefficients(propagator.elements.bstar_per_earth_radius[rows])[0]


def _between(knots: FloatArray, row: npt.NDArray[np.int64], elapsed_ns: IntArray) -> FloatArray:
    """States (m, 6) by Hermite cubics between the knots (n, k, 6) of ``row`` (m,)."""
    low = np.minimum(elapsed_ns // _KNOT_NS, _KNOTS - 2)
    h = _KNOT_NS / 1e9
    u = ((elapsed_ns - low * _KNOT_NS) / _KNOT_NS)[:, None]
    (p, v), (q, w) = ((each[:, :3], h * each[:, 3:]) for each in (knots[row, low], knots[row, low + 1]))
    c2, c3 = 3 * (q - p) - 2 * v - w, 2 * (p - q) + v + w
    return np.hstack([p + u * (v + u * (c2 + u * c3)), (v + u * (2 * c2 + 3 * u * c3)) / h])
