"""What a plan does to the risk of one satellite: all its approaches before and after, and the least burn that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.planned_trajectory import Burn, PlanError, PlannedTrajectory, burned
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets, FloatArray, IntArray
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.probability import assess
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.volumes import Volume

# A pass before and one after the plan are one encounter if their TCAs are nearer than this: below half a revolution.
_SAME_ENCOUNTER_NS = 20 * 60 * NANOSECONDS_PER_SECOND
_REFINEMENTS = 4
_BURN_TIMES, _FIRST_M_S, _LADDER, _HALVINGS, _MOST_SCREENED = 24, 1e-3, 1.3, 6, 6


@dataclass(frozen=True)
class Encounter:
    """One approach of the primary: the secondary's row in the catalogue, TCA, miss, and Pc (NaN: there is none)."""

    row: int
    tca_ns: int
    miss_km: float
    probability: float


@dataclass(frozen=True)
class Outcome:
    """An encounter before and after a plan; None: the pair is farther apart than the threshold then."""

    before: Encounter | None
    after: Encounter | None


@dataclass(frozen=True)
class Avoidance:
    """A burn that brings all events to the goal, and all encounters after it; ``screened`` plans were tried in full."""

    burn: Burn
    dv_m_s: float
    after: tuple[Encounter, ...]
    screened: int


@dataclass(frozen=True, eq=False)
class Scene:
    """The other objects, the span, and how approaches of the primary to them are found and judged.

    ``primary`` is its published set (1,), ``primary_radius_m`` its own radius; ``sizes`` give the others'.
    """

    catalogue: Catalogue
    primary: Propagator
    start_ns: int
    end_ns: int
    threshold_km: float
    primary_radius_m: float
    sizes: ObjectSizes
    processes: int = 1

    def encounters(self, path: PlannedTrajectory) -> tuple[Encounter, ...]:
        """All approaches on ``path`` within the threshold, by TCA."""
        others = np.flatnonzero(self.catalogue.norad_id != self.primary.elements.norad_id[0])
        terms = self.catalogue.terms or Terms(
            np.arange(len(self.catalogue)),
            np.full(len(self.catalogue), ALWAYS_NS),
            np.full(len(self.catalogue), FOREVER_NS),
        )
        elements = ElementSets.stack([self.catalogue.propagator.elements.take(others), path.elements])
        both = Terms(
            np.arange(len(elements)),
            np.concatenate([terms.from_ns[others], path.from_ns]),
            np.concatenate([terms.until_ns[others], path.until_ns]),
        )
        start_ns, end_ns = self._span(path)
        found = screen_elements(
            elements,
            both,
            [(Volume.sphere(self.threshold_km + path.margin_km), np.arange(len(others), len(elements)))],
            np.arange(len(others)),
            start_ns,
            end_ns,
            processes=self.processes,
            report=lambda _done, _total: None,
        ).events
        is_primary_first = found.lo >= len(others)
        rows = others[np.where(is_primary_first, found.hi, found.lo)]
        judged = self.judged(path, rows, found.tca_time_ns)
        return tuple(each for each in judged if each.miss_km <= self.threshold_km)

    def judged(self, path: PlannedTrajectory, rows: IntArray, tca_ns: IntArray) -> Iterator[Encounter]:
        """The encounters with the catalogue's ``rows`` (n,) near ``tca_ns`` (n,), with the best Pc there is."""
        if not len(rows):
            return
        tca_ns, passes = self._passes(path, rows, tca_ns)
        probability = best_probabilities(passes).probability
        miss_km = np.linalg.norm(passes.dr_km, axis=1)
        columns = zip(rows.tolist(), tca_ns.tolist(), miss_km.tolist(), probability.tolist(), strict=True)
        yield from (Encounter(*each) for each in columns)

    def largest_2d(self, path: PlannedTrajectory, known: Sequence[Encounter]) -> float:
        """The largest 2D Pc of encounters near the ``known`` ones; infinite where there is none."""
        rows, tcas = (np.array([getattr(each, name) for each in known], np.int64) for name in ("row", "tca_ns"))
        _, passes = self._passes(path, rows, tcas)
        position = (passes.covariance_1 + passes.covariance_2)[:, :3, :3]
        plane = assess(passes.dr_km, passes.dv_km_s, position, 1000 * passes.radius_km)
        largest = float(np.max(plane.probability, initial=0.0))
        return largest if np.isfinite(largest) else float("inf")

    def _span(self, path: PlannedTrajectory) -> tuple[int, int]:
        if path.ephemeris is None:
            return self.start_ns, self.end_ns
        start_ns = max(self.start_ns, path.ephemeris.usable_from_ns)
        end_ns = min(self.end_ns, path.ephemeris.usable_until_ns)
        if end_ns <= start_ns:
            raise PlanError("the ephemeris covers nothing of the span")
        return start_ns, end_ns

    def _passes(self, path: PlannedTrajectory, rows: IntArray, tca_ns: IntArray) -> tuple[IntArray, Encounters]:
        start_ns, end_ns = self._span(path)
        for _ in range(_REFINEMENTS):
            (r1, v1, _), (r2, v2, _) = path.at(tca_ns), self._secondaries(rows, tca_ns)
            dr, dv = r2 - r1, v2 - v1
            step_s = -np.einsum("ni,ni->n", dr, dv) / np.einsum("ni,ni->n", dv, dv)
            step_ns = np.rint(np.nan_to_num(step_s) * NANOSECONDS_PER_SECOND).astype(np.int64)
            tca_ns = np.clip(tca_ns + step_ns, start_ns, end_ns)
        names = [self.catalogue.object_names[row] for row in rows.tolist()]
        radius_m = self.primary_radius_m + np.array(self.sizes.of(self.catalogue.norad_id[rows].tolist(), names)[0])
        states = (*path.at(tca_ns), *self._secondaries(rows, tca_ns))
        return tca_ns, Encounters(*states, radius_m / 1000)

    def _secondaries(self, rows: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        _, r, v = self.catalogue.propagator.at(rows, time_ns)
        return r, v, rtn_to_teme(element_covariance_rtn(self.catalogue.propagator, rows, time_ns, r, v), r, v)


def compared(before: Sequence[Encounter], after: Sequence[Encounter]) -> list[Outcome]:
    """Encounters before and after a plan, paired by secondary and TCA; by TCA."""
    left, outcomes = list(after), []
    for one in before:
        same = [each for each in left if each.row == one.row and abs(each.tca_ns - one.tca_ns) < _SAME_ENCOUNTER_NS]
        other = min(same, key=lambda each, tca_ns=one.tca_ns: abs(each.tca_ns - tca_ns), default=None)  # type: ignore[misc]
        outcomes.append(Outcome(one, other))
        if other is not None:
            left.remove(other)
    outcomes += [Outcome(None, each) for each in left]
    return sorted(outcomes, key=lambda o: (o.before or o.after).tca_ns)  # type: ignore[union-attr]  # one is there


def least_burn(
    scene: Scene, before: Sequence[Encounter], window: tuple[int, int], goal: float, most_m_s: float
) -> Avoidance | None:
    """The smallest burn along the track within ``window`` (ns) after which every event is at or below ``goal``.

    Burns at 24 times and in both directions are tried against the known events by their 2D Pc. The smallest ones are
    then screened in full, in their order, until one has no event above the goal; None: no burn of at most ``most_m_s``
    has been found, six full screenings included.
    """
    found: list[tuple[float, Burn]] = []
    for time_ns in np.linspace(*window, _BURN_TIMES).astype(np.int64).tolist():
        for sign in (1.0, -1.0):
            unit = Burn(time_ns, (0.0, sign, 0.0))
            size = _smallest(scene, before, unit, goal, most_m_s)
            if size is not None:
                found.append((size, replace(unit, dv_rtn_m_s=(0.0, sign * size, 0.0))))
    for number, (size, burn) in enumerate(sorted(found, key=lambda each: each[0])[:_MOST_SCREENED], start=1):
        after = scene.encounters(burned(scene.primary, [burn]))
        if all(each.probability <= goal for each in after):
            return Avoidance(burn, size, after, number)
    return None


def _smallest(scene: Scene, known: Sequence[Encounter], unit: Burn, goal: float, most_m_s: float) -> float | None:
    """The smallest size, m/s, of a burn in the direction of ``unit`` that brings ``known`` events to ``goal``."""

    def suffices(size: float) -> bool:
        radial, transverse, normal = unit.dv_rtn_m_s
        burn = replace(unit, dv_rtn_m_s=(size * radial, size * transverse, size * normal))
        try:
            return scene.largest_2d(burned(scene.primary, [burn]), known) <= goal
        except PlanError:
            return False

    low, high = 0.0, min(_FIRST_M_S, most_m_s)
    while not suffices(high):
        if high >= most_m_s:
            return None
        low, high = high, min(high * _LADDER, most_m_s)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
