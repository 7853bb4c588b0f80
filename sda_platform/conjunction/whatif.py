"""What a plan does to the risk of one satellite: all its approaches before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.conjunction.best_states import BestStates
from sda_platform.conjunction.known_states import KnownStates, described
from sda_platform.conjunction.known_trajectory import StatesNear, Trajectory, Unchanged
from sda_platform.conjunction.planned_trajectory import BurnErrors, Stated
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets, apogee_altitude_km, perigee_altitude_km
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.gaussian_parts import assess_passes, probability_2d
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import MINUTE_NS, SECOND_NS

# A pass before and one after the plan are one encounter if their TCAs are nearer than this: below half a revolution.
_SAME_ENCOUNTER_NS = 20 * MINUTE_NS
# Numbers of paths in a search, above those of all objects.
_FIRST_PATH = 2 * 10**9
_REFINEMENTS, _ROUGH_REFINEMENTS = 4, 2
# Heights of orbits vary by less than this about those of their mean elements.
_SHELL_MARGIN_KM = 60.0
# Below this 2D probability, at ordinary speed, no better method is asked.
_PLAN = "plan"
_LEAST_PROBABILITY, _SLOW_KM_S = 1e-9, 0.1


@dataclass(frozen=True)
class Encounter:
    """One approach of the primary: the secondary's number, TCA, miss, and Pc (NaN: there is none)."""

    norad_id: int
    tca_ns: int
    miss_km: float
    probability: float
    sigmas: float = float("nan")
    """Miss across the relative velocity in sigmas of both errors."""
    states: tuple[str, str] = ("", "")
    """What the states of primary and secondary rest on."""


@dataclass(frozen=True)
class Outcome:
    """An encounter before and after a plan; None: the pair is farther apart than what counts then.

    ``is_planned``: the plan covers the encounter. Where it does not, nothing is known of the risk after it.
    """

    before: Encounter | None
    after: Encounter | None
    is_planned: bool = True


@dataclass(frozen=True, eq=False)
class Scene:
    """The other objects, the span, and how approaches of the primary to them are found and judged.

    An approach counts within ``threshold_km``, or within ``reach_km`` if its miss is at most ``sigmas`` of both errors.
    """

    known: KnownStates
    primary: int
    start_ns: int
    end_ns: int
    primary_radius_m: float
    sizes: ObjectSizes
    threshold_km: float = 5.0
    sigmas: float = 3.0
    reach_km: float = 50.0
    errors: BurnErrors = field(default_factory=BurnErrors)
    processes: int = 1
    report: Callable[[int, int], None] = field(default=lambda _done, _total: None)

    @cached_property
    def unchanged(self) -> Unchanged:
        """The primary's path without a plan."""
        return Unchanged(self.known, self.primary)

    def encounters(self, path: Trajectory) -> tuple[Encounter, ...]:
        """All approaches on ``path`` that count, by TCA."""
        return self.encounters_of([path])[0]

    def encounters_of(self, paths: Sequence[Trajectory]) -> list[tuple[Encounter, ...]]:
        """Return the approaches of `encounters` for each of ``paths`` (at least one), found by one search.

        The search takes about as long for some paths as for one: most of it is the motion of the other objects.
        """
        catalogue = self.known.paths.catalogue
        spans = [path.span(self.start_ns, self.end_ns) for path in paths]
        own = [path.search_sets(*span) for path, span in zip(paths, spans, strict=True)]
        searched_km = max(self.threshold_km, self.reach_km) + max(each.margin_km for each in own)
        searched_km += max(self.known.paths.margins_km.values(), default=0.0)
        others = self._near_shell(ElementSets.stack([each.elements for each in own]), searched_km)
        # Each path is an object of its own to the search: their sets must not follow one another.
        numbered = [each.elements.of_object(_FIRST_PATH + n) for n, each in enumerate(own)]
        elements = ElementSets.stack([catalogue.propagator.elements.take(others), *numbered])
        always, forever = np.full(len(catalogue), ALWAYS_NS), np.full(len(catalogue), FOREVER_NS)
        terms = catalogue.terms or Terms(np.arange(len(catalogue)), always, forever)
        both = Terms(
            np.arange(len(elements)),
            np.concatenate([terms.from_ns[others], *(each.from_ns for each in own)]),
            np.concatenate([terms.until_ns[others], *(each.until_ns for each in own)]),
        )
        found = screen_elements(
            elements,
            both,
            [(Volume.sphere(searched_km), np.arange(len(others), len(elements)))],
            np.arange(len(others)),
            min(begin_ns for begin_ns, _ in spans),
            max(end_ns for _, end_ns in spans),
            processes=self.processes,
            report=self.report,
        ).events
        # Paths have the larger numbers, so they are the second of each pair.
        norad_id, of_path = catalogue.norad_id[others[found.lo]], elements.norad_id[found.hi] - _FIRST_PATH
        judged = []
        for number, (path, (begin_ns, end_ns)) in enumerate(zip(paths, spans, strict=True)):
            is_its = (of_path == number) & (found.tca_time_ns >= begin_ns) & (found.tca_time_ns < end_ns)
            judged.append(self.judged(path, norad_id[is_its], found.tca_time_ns[is_its]))
        return judged

    def _near_shell(self, own: ElementSets, searched_km: float) -> IntArray:
        """Return rows of other objects whose heights meet those of the primary."""
        catalogue, margin_km = self.known.paths.catalogue, searched_km + _SHELL_MARGIN_KM
        elements = catalogue.propagator.elements
        meets = perigee_altitude_km(elements) <= apogee_altitude_km(own).max() + margin_km
        meets &= apogee_altitude_km(elements) >= perigee_altitude_km(own).min() - margin_km
        # What is docked to the primary moves with it.
        moves_with_it = catalogue.are_docked(np.arange(len(catalogue)), catalogue.positions([self.primary])[:1])
        return np.flatnonzero(meets & (catalogue.norad_id != self.primary) & ~moves_with_it)

    def judged(self, path: Trajectory, norad_id: IntArray, tca_ns: IntArray) -> tuple[Encounter, ...]:
        """Return the encounters with objects ``norad_id`` (n,) near ``tca_ns`` (n,) that count, by TCA."""
        if not len(norad_id):
            return ()
        other, span = self.known.of(norad_id, tca_ns), path.span(self.start_ns, self.end_ns)
        tca_ns, passes = self._passes(path.near(tca_ns), other, span, tca_ns)
        of_primary = [_PLAN] * len(norad_id)
        if not isinstance(path, Stated):
            of_primary = described(self.unchanged.near(tca_ns), tca_ns)
        states = list(zip(of_primary, described(other, tca_ns), strict=True))
        _, unique = np.unique(np.stack([norad_id, tca_ns // SECOND_NS]), axis=1, return_index=True)
        plane = assess_passes(passes)
        miss_km = np.linalg.norm(passes.dr_km, axis=1)
        counts = miss_km <= self.threshold_km
        counts |= (miss_km <= self.reach_km) & (plane.mahalanobis_distance <= self.sigmas)
        kept = np.intersect1d(np.flatnonzero(counts), unique)
        probability = plane.probability.copy()
        is_slow = np.linalg.norm(passes.dv_km_s, axis=1) < _SLOW_KM_S
        further = np.intersect1d(kept, np.flatnonzero(is_slow | ~(probability < _LEAST_PROBABILITY)))
        probability[further] = best_probabilities(passes.take(further)).probability
        found = [
            Encounter(
                int(norad_id[row]),
                int(tca_ns[row]),
                float(miss_km[row]),
                float(probability[row]),
                float(plane.mahalanobis_distance[row]),
                states[row],
            )
            for row in kept.tolist()
        ]
        return tuple(sorted(found, key=lambda each: each.tca_ns))

    def probability_2d(self, own: StatesNear, other: BestStates, tca_ns: IntArray) -> FloatArray:
        """2D Pc (n,) of encounters of ``own`` with ``other`` (n,) near ``tca_ns`` (n,); infinite without one."""
        _, passes = self._passes(own, other, (self.start_ns, self.end_ns), tca_ns, _ROUGH_REFINEMENTS)
        found = probability_2d(passes)
        return np.where(np.isfinite(found), found, np.inf)

    def _passes(
        self,
        own: StatesNear,
        other: BestStates,
        span: tuple[int, int],
        tca_ns: IntArray,
        refinements: int = _REFINEMENTS,
    ) -> tuple[IntArray, Encounters]:
        for _ in range(refinements):
            (r1, v1, _), (r2, v2, _) = own.at(tca_ns), other.at(tca_ns)
            dr, dv = r2 - r1, v2 - v1
            step_s = -np.einsum("ni,ni->n", dr, dv) / np.einsum("ni,ni->n", dv, dv)
            step_ns = np.rint(np.nan_to_num(step_s) * SECOND_NS).astype(np.int64)
            tca_ns = np.clip(tca_ns + step_ns, *span)
        catalogue = other.catalogue
        names = [catalogue.object_names[row] for row in other.index.tolist()]
        radius_m = self.primary_radius_m + np.array(self.sizes.of(catalogue.norad_id[other.index].tolist(), names)[0])
        first, second = own.at(tca_ns), other.at(tca_ns)
        tails = own.tails(tca_ns, *first[:2]), other.tails(tca_ns, *second[:2])
        return tca_ns, Encounters(*first, *second, radius_m / 1000, tails=tails)


def compared(
    before: Sequence[Encounter], after: Sequence[Encounter], span: tuple[int, int] = (ALWAYS_NS, FOREVER_NS)
) -> list[Outcome]:
    """Encounters before and after a plan, which covers the times ``span``; paired by secondary and TCA; by TCA."""
    left, outcomes = list(after), []
    for one in before:
        same = [each for each in left if each.norad_id == one.norad_id]
        same = [each for each in same if abs(each.tca_ns - one.tca_ns) < _SAME_ENCOUNTER_NS]
        other = min(same, key=lambda each, tca_ns=one.tca_ns: abs(each.tca_ns - tca_ns), default=None)  # type: ignore[misc]
        # The plan may move a TCA near its end past it.
        inside = span[0] <= one.tca_ns - _SAME_ENCOUNTER_NS and one.tca_ns + _SAME_ENCOUNTER_NS < span[1]
        outcomes.append(Outcome(one, other, is_planned=inside or other is not None))
        if other is not None:
            left.remove(other)
    outcomes += [Outcome(None, each) for each in left]
    return sorted(outcomes, key=lambda o: (o.before or o.after).tca_ns)  # type: ignore[union-attr]  # one is there


def total(encounters: Sequence[Encounter], after_ns: int = ALWAYS_NS) -> float:
    """Return the sum of Pc of encounters later than ``after_ns``."""
    return float(np.nansum([each.probability for each in encounters if each.tca_ns > after_ns]))
