"""The path of a primary as it is known, and what any path of a primary gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.conjunction.best_states import BestStates
from sda_platform.conjunction.known_states import KnownStates
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets
from sda_platform.orbits.long_tails import Tails
from sda_platform.orbits.propagation import Propagator

State = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class SearchSets:
    """Element sets of the primary for a search, by time, and how much farther it must look than they do."""

    elements: ElementSets
    from_ns: IntArray
    until_ns: IntArray
    margin_km: float


class StatesNear(Protocol):
    """The states of some objects, (n,)."""

    def at(self, time_ns: IntArray) -> State:
        """Position (n, 3) km, velocity (n, 3) km/s and covariance (n, 6, 6) at ``time_ns`` (n,), TEME."""

    def tails(self, time_ns: IntArray, r_km: FloatArray, v_km_s: FloatArray) -> Tails:
        """Distributions of errors (n,) of the states ``r_km`` and ``v_km_s`` (n, 3) at ``time_ns`` (n,)."""


class Trajectory(Protocol):
    """A path of the primary."""

    def near(self, time_ns: IntArray) -> StatesNear:
        """Prepare the states of the path near each of ``time_ns`` (n,)."""

    def search_sets(self, start_ns: int, end_ns: int) -> SearchSets:
        """Sets for a search over [start, end). Raises PlanError where SGP4 cannot follow."""

    def span(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Return the part of [start, end) that the path covers. Raises PlanError where it covers nothing."""


@dataclass(frozen=True, eq=False)
class Unchanged:
    """The path of an object as assessments know it: its ephemeris, its track or its set."""

    known: KnownStates
    norad_id: int

    def near(self, time_ns: IntArray) -> BestStates:
        return self.known.of(np.full(len(time_ns), self.norad_id), time_ns)

    def search_sets(self, _start_ns: int, _end_ns: int) -> SearchSets:
        catalogue = self.known.paths.catalogue
        rows = catalogue.positions([self.norad_id])
        elements = catalogue.propagator.elements.take(rows)
        margin_km = self.known.paths.margins_km.get(self.norad_id, 0.0)
        if catalogue.terms is None:
            return SearchSets(elements, np.array([ALWAYS_NS]), np.array([FOREVER_NS]), margin_km)
        return SearchSets(elements, catalogue.terms.from_ns[rows], catalogue.terms.until_ns[rows], margin_km)

    def span(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        return start_ns, end_ns

    def sampled(self, time_ns: IntArray) -> FloatArray:
        """States (n, 6) at ``time_ns`` (n,), ascending, of the sets of the search."""
        sets = self.search_sets(int(time_ns[0]), int(time_ns[-1]))
        row = np.searchsorted(sets.until_ns, time_ns, side="right")
        return np.hstack(Propagator(sets.elements).at(row, time_ns)[1:])
