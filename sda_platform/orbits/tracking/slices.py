"""Slices of half a second of a window: association hypotheses and their accumulated normal equations.

A slice is accumulated when its time has passed and depends on its own observations alone. Slices may be accumulated
in any order, again, or all at once; ``window`` combines them. Equations refer to SGP4 at the window's middle, as in
``estimation``. Each hypothesis is linearised where its own observations lead in one step.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np

from sda_platform.arrays import BoolArray, ErrorArray, FloatArray, IntArray, TextArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing import accumulated_equations
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.association import hypotheses, possible_pairs
from sda_platform.orbits.tracking.problem import Prior, Problem, prior_at

SLICE_NS = 500_000_000
# Through six states ten seconds apart a polynomial errs by micrometres in a low orbit. Positions and velocities
# are interpolated separately, because SGP4's velocity is not exactly the derivative of its position.
_KNOT_NS = 10_000_000_000
_KNOTS, _POINTS = 9, 6
_INTERPOLATED_NS = 20_000_000_000
# In ten microseconds no object moves by a hundredth of a sensor's noise.
_UNCERTAIN_CLOCK_S = 1e-5


class Reference:
    """Predicted states and priors of catalogue objects around one window, computed on first use.

    Priors refer to the window's middle. States in between are interpolated to SGP4's own precision.
    """

    def __init__(self, propagator: Propagator, mid_time_ns: int) -> None:
        self.propagator, self.mid_time_ns = propagator, mid_time_ns
        self._first_ns = mid_time_ns - _KNOTS // 2 * _KNOT_NS
        count = len(propagator)
        self._computed, known = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self._prior = Prior(np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 6, 6)), known)
        self._knots, self._error = np.zeros((count, _KNOTS, 6)), np.zeros(count, dtype=np.uint8)

    def prior(self, index: IntArray) -> Prior:
        """Priors at the window's middle of the objects at catalogue positions (k,)."""
        self._compute(index)
        return self._prior.take(index)

    def at(self, index: IntArray, time_ns: IntArray) -> tuple[ErrorArray, FloatArray, FloatArray]:
        """Propagate object ``index[k]`` to ``time_ns[k]``, as ``Propagator.at``."""
        self._compute(index)
        step = (time_ns - self._first_ns) / _KNOT_NS
        base = np.clip(np.floor(step).astype(np.int64) - 2, 0, _KNOTS - _POINTS)
        states = self._knots[index[:, None], base[:, None] + np.arange(_POINTS)]
        weights = _lagrange_weights(step - base)
        # Summed term by term, so that a result does not depend on the number of rows in the call.
        state = sum(weight[:, None] * states[:, point] for point, weight in enumerate(weights))
        error, r_teme_km, v_teme_km_s = self._error[index], state[:, :3], state[:, 3:]
        beyond = np.flatnonzero(np.abs(time_ns - self.mid_time_ns) > _INTERPOLATED_NS)
        if len(beyond):
            exact = self.propagator.at(index[beyond], time_ns[beyond])
            error[beyond], r_teme_km[beyond], v_teme_km_s[beyond] = exact
        return error, r_teme_km, v_teme_km_s

    def _compute(self, index: IntArray) -> None:
        new = np.unique(index[~self._computed[index]])
        if not len(new):
            return
        prior = prior_at(self.propagator, new, np.full(len(new), self.mid_time_ns))
        times_ns = self._first_ns + np.arange(_KNOTS) * _KNOT_NS
        error, r, v = self.propagator.at(np.repeat(new, _KNOTS), np.tile(times_ns, len(new)))
        for field in dataclasses.fields(prior):
            getattr(self._prior, field.name)[new] = getattr(prior, field.name)
        self._knots[new] = np.hstack([r, v]).reshape(len(new), _KNOTS, 6)
        self._error[new] = error.reshape(len(new), _KNOTS).max(axis=1)
        self._computed[new] = True


def _lagrange_weights(x: FloatArray) -> list[FloatArray]:
    """Weights (k,) of the values at 0, 1, ... 5 for the value at ``x`` (k,)."""
    points = range(_POINTS)
    return [
        np.asarray(math.prod((x - other) / (point - other) for other in points if other != point)) for point in points
    ]


@dataclasses.dataclass(frozen=True, eq=False)
class Slice:
    """Association hypotheses of the observations (m,) of one slice.

    A cluster is a set of observations assigned as one: a sensor's own track, or a single observation. A hypothesis
    assigns a cluster to an object.
    """

    observations: ObservationArrays
    cluster_name: list[tuple[str, str] | None]
    """Of each cluster (u): source and track; None for a single observation."""
    cluster_first: IntArray
    """(u,) its first observation."""
    cluster_observations: IntArray
    hypothesis_cluster: IntArray
    hypothesis_candidate: IntArray
    """(k,) position in the catalogue."""
    hypothesis_cost: FloatArray
    hypothesis_equations: FloatArray
    """(k, 28) accumulated normal equations of the observations within the gate (``accumulated_equations``)."""
    hypothesis_kind: IntArray
    hypothesis_dimension: IntArray
    hypothesis_observations: IntArray
    hypothesis_clock_uncertain: BoolArray
    """(k,) whether a contributing clock has a significant time-tag error."""
    pair_observation: IntArray
    pair_hypothesis: IntArray
    """(p,) and (p,): observation and hypothesis of each pair within the gate."""

    def split(self, cuts: IntArray) -> list[Slice]:
        """Split between observations at positions where no cluster continues."""
        readings = [0, *cuts.tolist(), len(self.observations)]
        clusters = np.searchsorted(self.cluster_first, readings).tolist()
        hypothesis_ends = np.searchsorted(self.hypothesis_cluster, clusters).tolist()
        pairs = np.searchsorted(self.pair_hypothesis, hypothesis_ends).tolist()
        bounds = zip(*(pairwise(ends) for ends in (readings, clusters, hypothesis_ends, pairs)), strict=True)
        return [self._part(*(slice(*ends) for ends in part)) for part in bounds]

    def _part(self, readings: slice, clusters: slice, hypotheses: slice, pairs: slice) -> Slice:
        columns = {name: getattr(self, name)[hypotheses] for name in vars(self) if name.startswith("hypothesis_")}
        columns["hypothesis_cluster"] = columns["hypothesis_cluster"] - clusters.start
        return Slice(
            observations=self.observations.take(np.arange(readings.start, readings.stop)),
            cluster_name=self.cluster_name[clusters],
            cluster_first=self.cluster_first[clusters] - readings.start,
            cluster_observations=self.cluster_observations[clusters],
            pair_observation=self.pair_observation[pairs] - readings.start,
            pair_hypothesis=self.pair_hypothesis[pairs] - hypotheses.start,
            **columns,
        )


def accumulate_slices(
    observations: ObservationArrays,
    tracks: TextArray,
    number: IntArray,
    reference: Reference,
) -> list[Slice]:
    """Accumulate the observations (m,) of several slices, in order of their slice ``number`` (m,), each
    independently.

    ``tracks`` (m,) are the sensors' own track names, empty where there is none. Many slices at once cost little more
    than one.
    """
    measurements = prepare(observations)
    pairs, _ = possible_pairs(observations, measurements, reference.propagator, states=reference.at)
    pairs = pairs.take(pairs.inside & reference.prior(pairs.candidate).known)
    names, cluster, first = _clusters(number.tolist(), observations.source_id.tolist(), tracks.tolist())
    hypothesis_cluster, candidate, hypothesis = hypotheses(cluster[pairs.observation], pairs.candidate)
    rank = np.empty(len(observations), dtype=np.int64)
    rank[observations.canonical_order(np.zeros(len(rank), dtype=np.int64))] = np.arange(len(rank))
    order = np.lexsort((rank[pairs.observation], hypothesis))
    pairs, hypothesis = pairs.take(order), hypothesis[order]
    rows = measurements.take(pairs.observation)
    count = len(candidate)
    middle_ns = np.full(len(hypothesis), reference.mid_time_ns)
    problem = Problem.of(rows, hypothesis, reference.prior(candidate), pairs.r_teme_km, pairs.v_teme_km_s, middle_ns)
    combined = Slice(
        observations=observations,
        cluster_name=names,
        cluster_first=first,
        cluster_observations=np.bincount(cluster, minlength=len(names)),
        hypothesis_cluster=hypothesis_cluster,
        hypothesis_candidate=candidate,
        hypothesis_cost=np.bincount(hypothesis, pairs.cost(), minlength=count).astype(np.float64),
        hypothesis_equations=_accumulated(problem),
        hypothesis_kind=rows.kind[np.flatnonzero(np.diff(hypothesis, prepend=-1))],
        hypothesis_dimension=np.bincount(hypothesis, rows.dimension, minlength=count).astype(np.int64),
        hypothesis_observations=np.bincount(hypothesis, minlength=count),
        hypothesis_clock_uncertain=np.bincount(hypothesis, rows.time_sigma_s > _UNCERTAIN_CLOCK_S, minlength=count) > 0,
        pair_observation=pairs.observation,
        pair_hypothesis=hypothesis,
    )
    return combined.split(np.flatnonzero(np.diff(number)) + 1)


def _accumulated(problem: Problem) -> FloatArray:
    """Normal equations (k, 28) of each hypothesis, linearised where one step from the prior leads."""
    count, rows = len(problem.prior.r_mid), np.arange(len(problem.group))
    design, residual = np.empty((len(rows), 6, 6)), np.empty((len(rows), 6))
    at: FloatArray = np.zeros((count, 6))
    problem.linearise(rows, at, problem.group, design, residual)
    normal, gradient, _ = accumulated_equations.parts(
        accumulated_equations.accumulate(design, residual, problem.group, at)
    )
    at = np.asarray(np.linalg.solve(normal + np.eye(6), gradient[:, :, None])[:, :, 0], dtype=np.float64)
    problem.linearise(rows, at, problem.group, design, residual)
    return accumulated_equations.accumulate(design, residual, problem.group, at)  # type: ignore[no-any-return]


def _clusters(
    number: list[int], source: list[str], track: list[str]
) -> tuple[list[tuple[str, str] | None], IntArray, IntArray]:
    """Names of the clusters, the cluster of each observation, and the first observation of each cluster."""
    clusters: dict[object, int] = {}
    names: list[tuple[str, str] | None] = []
    cluster, first = [], []
    for row, name in enumerate(zip(source, track, strict=True)):
        own = clusters.setdefault((number[row], name) if name[1] else row, len(names))
        if own == len(names):
            names.append(name if name[1] else None)
            first.append(row)
        cluster.append(own)
    return names, np.array(cluster, dtype=np.int64), np.array(first, dtype=np.int64)
