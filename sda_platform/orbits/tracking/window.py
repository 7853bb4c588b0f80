"""Combines the accumulated slices of a window: one global assignment, then one least-squares fit per object.

Most work is done while the window is open. Closing it needs only the accumulated equations: one assignment, one
solution of six equations per object, and one consistency test per slice; inconsistent blocks are rejected. An object
is fitted from its observations (``estimation``) in three cases: a rejected block would lose sound observations, a
contributing clock is uncertain, or the state is further off than the prior explains.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing import accumulated_equations
from sda_platform.orbits.sensing.measurement_model import ISL, OPTICAL, RADAR
from sda_platform.orbits.sensing.observations import stacked
from sda_platform.orbits.tracking.assignment import assign
from sda_platform.orbits.tracking.association import exclusion_groups
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform.orbits.tracking.outlier_rejection import consistent_blocks, normalised_deletion_residuals, solve
from sda_platform.orbits.tracking.problem import states
from sda_platform.orbits.tracking.slices import Reference, Slice

# Wider than the gate of one observation.
_PLAUSIBLE_SIGMAS = 6.0


@dataclasses.dataclass(frozen=True, eq=False)
class FusedWindow:
    """The fits of a window's ``g`` objects, and the object of each observation (m,)."""

    objects: IntArray
    """(g,) positions in the catalogue."""
    group: IntArray
    """(m,) position in ``objects``, or -1; observations in the order of the slices."""
    is_near: BoolArray
    """(m,) observations within the gate of some object, their own or another."""
    fits: StateFits
    refitted: BoolArray
    """(g,) objects that were fitted from their observations."""
    is_manoeuvred: BoolArray
    """(g,) objects beyond their gates: the prior of their fits allows for a manoeuvre (`manoeuvred_objects`)."""


class FitWindow:
    """One window of time, to which slices are added in order."""

    def __init__(self, propagator: Propagator, mid_time_ns: int) -> None:
        self.reference = Reference(propagator, mid_time_ns)
        self._propagator, self._mid_time_ns = propagator, mid_time_ns
        self._slices: list[Slice] = []
        self._hypothesis_of: list[IntArray] = []
        self._cluster_numbers: dict[object, int] = {}
        self._source_numbers: dict[str, int] = {}
        self._hypothesis_numbers: dict[int, int] = {}
        self._clusters: dict[str, IntArray] = {name: np.zeros(0, dtype=np.int64) for name in _CLUSTER_COLUMNS}
        self._hypotheses: dict[str, IntArray] = {name: np.zeros(0, dtype=np.int64) for name in _HYPOTHESIS_COLUMNS}
        self._cost: FloatArray = np.zeros(0)
        self._equations: FloatArray = np.zeros((0, accumulated_equations.SIZE))

    def cleared(self) -> FitWindow:
        """Return the window without its slices."""
        empty = FitWindow(self._propagator, self._mid_time_ns)
        empty.reference = self.reference
        return empty

    def add(self, part: Slice) -> None:
        """Add the next slice in time order; the same order gives the same sums to the last bit."""
        cluster = self._number_clusters(part)
        hypothesis = self._number_hypotheses(part, cluster)
        self._cost[hypothesis] += part.hypothesis_cost
        accumulated_equations.add(part.hypothesis_equations, hypothesis, self._equations)
        self._hypotheses["clock_uncertain"][hypothesis] += part.hypothesis_clock_uncertain
        self._slices.append(part)
        self._hypothesis_of.append(hypothesis)

    def fit(self) -> FusedWindow:
        """Assign and fit with all slices added so far; more may be added afterwards."""
        assigned = self._assigned()
        objects, object_of_assigned = np.unique(self._hypotheses["candidate"][assigned], return_inverse=True)
        place = np.full(len(assigned), -1, dtype=np.int64)
        place[assigned] = object_of_assigned
        # The object of each hypothesis of each slice.
        object_of = [place[hypothesis] for hypothesis in self._hypothesis_of]
        equations = np.zeros((len(objects), accumulated_equations.SIZE))
        accumulated_equations.add(self._equations[assigned], object_of_assigned, equations)
        rejected, needs_refit = self._reject_outliers(object_of, equations)
        unknowns, information = solve(equations)
        needs_refit |= ~(np.abs(unknowns).max(axis=1, initial=0.0) <= _PLAUSIBLE_SIGMAS)
        needs_refit[place[(place >= 0) & (self._hypotheses["clock_uncertain"] > 0)]] = True
        group, is_near, used = self._assigned_objects(object_of, rejected)
        counts = self._counts(object_of, rejected, len(objects))
        prior = self.reference.prior(objects)
        r, v, covariance = states(prior, unknowns, information)
        _, gradient, square = accumulated_equations.parts(equations)
        fits = StateFits(
            r_teme_km=r,
            v_teme_km_s=v,
            covariance_teme=covariance,
            predicted_r_teme_km=prior.r_mid,
            predicted_v_teme_km_s=prior.v_mid,
            prior_covariance_teme=prior.covariance,
            chi_square=np.maximum(square - np.einsum("gi,gi->g", gradient, unknowns), 0.0),
            **counts,
            unusable=np.zeros(len(objects), dtype=np.int64),
            iterations=np.ones(len(objects), dtype=np.int64),
            converged=np.ones(len(objects), dtype=bool),
            used=used,
        )
        fits = self._refitted(objects, group, fits, needs_refit)
        return FusedWindow(objects, group, is_near, fits, needs_refit, np.zeros(len(objects), dtype=np.bool_))

    def _number_clusters(self, part: Slice) -> IntArray:
        numbers, fresh = self._cluster_numbers, len(self._slices)
        names = [name or (fresh, row) for row, name in enumerate(part.cluster_name)]
        known = len(numbers)
        cluster = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
        new = cluster >= known
        first = part.cluster_first[new]
        sources = part.observations.source_id[first].tolist()
        columns = {
            "source": [self._source_numbers.setdefault(name, len(self._source_numbers)) for name in sources],
            "named": [name is not None for name, is_new in zip(part.cluster_name, new.tolist(), strict=True) if is_new],
            "time_ns": part.observations.sensor_time_ns[first],
            "observations": np.zeros(len(first)),
        }
        self._clusters = _extended(self._clusters, columns)
        self._clusters["observations"][cluster] += part.cluster_observations
        return cluster

    def _number_hypotheses(self, part: Slice, cluster: IntArray) -> IntArray:
        numbers = self._hypothesis_numbers
        known = len(numbers)
        keys = (cluster[part.hypothesis_cluster] * len(self._propagator) + part.hypothesis_candidate).tolist()
        hypothesis = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        new = hypothesis >= known
        columns = {
            "cluster": cluster[part.hypothesis_cluster[new]],
            "candidate": part.hypothesis_candidate[new],
            "clock_uncertain": np.zeros(new.sum()),
        }
        self._hypotheses = _extended(self._hypotheses, columns)
        self._cost = np.concatenate([self._cost, np.zeros(new.sum())])
        self._equations = np.concatenate([self._equations, np.zeros((new.sum(), accumulated_equations.SIZE))])
        return hypothesis

    def _assigned(self) -> BoolArray:
        """Return which hypotheses hold: one assignment over all clusters of the window."""
        clusters = self._clusters
        exclusion_group = exclusion_groups(
            clusters["source"], (clusters["named"] > 0) & (clusters["observations"] > 1), clusters["time_ns"]
        )
        cluster, candidate = self._hypotheses["cluster"], self._hypotheses["candidate"]
        return np.asarray(assign(cluster, candidate, self._cost, exclusion_group).candidate[cluster] == candidate)

    def _reject_outliers(self, object_of: list[IntArray], equations: FloatArray) -> tuple[list[BoolArray], BoolArray]:
        """Return which hypotheses of each slice are rejected, and which objects (g,) stay unresolved.

        Rejected blocks are removed from ``equations``.
        """
        rejected = [np.zeros(len(objects), dtype=bool) for objects in object_of]
        unresolved = np.zeros(len(equations), dtype=bool)
        fit = solve(equations)
        for part, objects in zip(self._slices, object_of, strict=True):
            every = np.ones(len(objects), dtype=bool)
            excess = normalised_deletion_residuals(
                part.hypothesis_equations, objects, part.hypothesis_dimension, every, *fit
            )
            unresolved[objects[excess > 1.0]] = True
        again = np.flatnonzero(unresolved)
        if not len(again):
            return rejected, unresolved
        rows = [np.flatnonzero((objects >= 0) & unresolved[objects]) for objects in object_of]
        group = np.searchsorted(again, np.concatenate([objects[k] for objects, k in zip(object_of, rows, strict=True)]))
        equation_block, dimension, observations = (
            np.concatenate([getattr(part, name)[k] for part, k in zip(self._slices, rows, strict=True)])
            for name in ("hypothesis_equations", "hypothesis_dimension", "hypothesis_observations")
        )
        is_used, resolved = consistent_blocks(equation_block, group, dimension, observations, len(again))
        equations[again] = 0.0
        accumulated_equations.add(equation_block[is_used], again[group[is_used]], equations)
        unresolved[again] = ~resolved
        cuts = np.cumsum([len(k) for k in rows])[:-1]
        for mask, k, kept in zip(rejected, rows, np.split(is_used, cuts), strict=True):
            mask[k] = ~kept
        return rejected, unresolved

    def _assigned_objects(
        self, object_of: list[IntArray], rejected: list[BoolArray]
    ) -> tuple[IntArray, BoolArray, BoolArray]:
        """Return the object of each observation, or -1; whether it is within any gate; whether its fit uses it."""
        count = sum(len(part.observations) for part in self._slices)
        group, start = np.full(count, -1, dtype=np.int64), 0
        is_near, used = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        for part, objects, out in zip(self._slices, object_of, rejected, strict=True):
            mine = objects[part.pair_hypothesis] >= 0
            rows, hypothesis = start + part.pair_observation[mine], part.pair_hypothesis[mine]
            group[rows], used[rows] = objects[hypothesis], ~out[hypothesis]
            is_near[start + part.pair_observation] = True
            start += len(part.observations)
        return group, is_near, used

    def _counts(self, object_of: list[IntArray], rejected: list[BoolArray], count: int) -> dict[str, IntArray]:
        """Observation counts and degrees of freedom of the fits (g,)."""
        kinds = {"radar_count": RADAR, "optical_count": OPTICAL, "isl_count": ISL}
        names = ("degrees_of_freedom", *kinds, "outliers_rejected")
        found = {name: np.zeros(count, dtype=np.int64) for name in names}
        for part, objects, out in zip(self._slices, object_of, rejected, strict=True):
            kept = (objects >= 0) & ~out
            of_kind = {name: kept & (part.hypothesis_kind == kind) for name, kind in kinds.items()}
            np.add.at(found["degrees_of_freedom"], objects[kept], part.hypothesis_dimension[kept])
            np.add.at(found["outliers_rejected"], objects[out], part.hypothesis_observations[out])
            for name, rows in of_kind.items():
                np.add.at(found[name], objects[rows], part.hypothesis_observations[rows])
        return found

    def _refitted(self, objects: IntArray, group: IntArray, fits: StateFits, needs_refit: BoolArray) -> StateFits:
        """Return the fits, with those that need it fitted from their observations."""
        again = np.flatnonzero(needs_refit)
        if not len(again):
            return fits
        number = np.full(len(objects) + 1, -1, dtype=np.int64)
        number[again] = np.arange(len(again))
        rows = np.flatnonzero(number[group] >= 0)
        starts = np.cumsum([0, *(len(part.observations) for part in self._slices)])
        cuts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
        parts = [
            part.observations.take(cut - start) for part, cut, start in zip(self._slices, cuts, starts, strict=False)
        ]
        middle_ns = np.full(len(again), self._mid_time_ns)
        fresh = fit_windows(stacked(parts), number[group[rows]], self._propagator, objects[again], middle_ns)
        for field in dataclasses.fields(fits):
            getattr(fits, field.name)[rows if field.name == "used" else again] = getattr(fresh, field.name)
        return fits


_CLUSTER_COLUMNS = ("source", "named", "time_ns", "observations")
_HYPOTHESIS_COLUMNS = ("cluster", "candidate", "clock_uncertain")


def _extended(columns: dict[str, IntArray], more: Mapping[str, Any]) -> dict[str, IntArray]:
    return {name: np.concatenate([columns[name], np.asarray(more[name], dtype=np.int64)]) for name in columns}
