"""Association of observations with catalogued objects, by gated residuals against the SGP4 prediction.

Three stages: a coarse gate on geometry that retains every object the fine gate would accept; the exact residual at
the observation's own time against prior plus measurement covariance; one global assignment of the remaining
hypotheses.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, ErrorArray, FloatArray, IntArray, TextArray
from sda_platform.orbits.chi_square import square_holding
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.measurement_model import ISL, innovations
from sda_platform.orbits.sensing.measurements import Measurements, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.assignment import Assignment, assign
from sda_platform.orbits.tracking.gating import coarse_candidates

__all__ = ["Association", "ObservationArrays", "Reason", "associate"]

States = Callable[[IntArray, IntArray], tuple[ErrorArray, FloatArray, FloatArray]]
"""Error, position and velocity (n, ...) of catalogue objects (n,) at times (n,), as ``Propagator.at``."""

_PRIOR_INTERVAL_NS = 30_000_000_000
_INSTANT_NS = 100_000_000
# The best candidate must be twenty times as likely as the next; otherwise the association is flagged as
# ambiguous.
_AMBIGUOUS_BELOW = 2 * float(np.log(20.0))


class Reason(enum.IntEnum):
    """Outcome of the association of one observation."""

    ASSOCIATED = 0
    AMBIGUOUS = 1
    """Assigned the likelier of two objects within the gate, less than 20 times as likely as the other."""
    NO_CANDIDATE = 2
    """No catalogued object within the coarse gate."""
    OUTSIDE_GATE = 3
    """Objects within the coarse gate, none within the fine gate."""
    UNKNOWN_SENSOR = 4
    """The source is not in the sensor registry, or is registered as another kind."""
    INCOMPLETE = 5
    """A number that this kind of observation requires is missing."""
    REPORTED_ID_REFUTED = 6
    """A link beacon names a catalogued satellite, but reports a state outside that satellite's gate."""
    ASSIGNED_ELSEWHERE = 7
    """Within the gate only of objects assigned to likelier observations of the same sensor and time."""


@dataclasses.dataclass(frozen=True, eq=False)
class Association:
    """The association of ``m`` observations, each array (m,)."""

    index: IntArray
    """Position of the object in the propagator's elements, or -1."""
    runner_up: IntArray
    """Position of the second likeliest object within the gate, or -1."""
    mahalanobis2: FloatArray
    """Squared Mahalanobis distance to the assigned object, else to the nearest candidate, else NaN."""
    reason: npt.NDArray[np.uint8]
    """The ``Reason`` of each."""


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Gated pairs (p,) of observation and candidate object."""

    observation: IntArray
    candidate: IntArray
    r_teme_km: FloatArray
    """(p, 3) and (p, 3): the object's prediction at the observation's time."""
    v_teme_km_s: FloatArray
    mahalanobis2: FloatArray
    score: FloatArray
    inside: BoolArray
    widest_gate: float
    """The gate of an observation with six components."""

    def take(self, index: npt.ArrayLike) -> Pairs:
        """Return the pairs at ``index`` (positions or a boolean mask), in that order."""
        chosen = np.asarray(index)
        columns = {f.name: getattr(self, f.name)[chosen] for f in dataclasses.fields(self) if f.name != "widest_gate"}
        return Pairs(**columns, widest_gate=self.widest_gate)

    def cost(self) -> FloatArray:
        """Assignment cost (p,) of each pair inside the gate; no assignment costs zero.

        An observation outside a candidate's gate costs its own least likely candidate plus the gate.
        """
        worst = np.full(int(self.observation.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(worst, self.observation, self.score)
        return np.asarray(self.score - worst[self.observation] - self.widest_gate)


def associate(
    observations: ObservationArrays,
    propagator: Propagator,
    *,
    tracks: TextArray | None = None,
    gate_probability: float = 0.999,
) -> Association:
    """Assign all observations jointly to the catalogued objects that most likely produced them.

    Cost of a pair within the gate: squared Mahalanobis distance plus log determinant of the innovation covariance.
    The distance alone would favour poorly known objects, whose gates contain everything. A sensor's own track is
    assigned as one cluster. A sensor's tracks of one half minute, and its single observations of one instant, exclude
    each other: ambiguities are resolved by the least total cost (``assignment``). A link beacon's reported identity
    holds if its state is within that satellite's gate.

    Args:
        observations: (m,) in any order.
        propagator: the catalogue.
        tracks: (m,) the sensors' own track names, empty where there is none; unique within one source only.
        gate_probability: share of true pairs inside the gate (chi-square of the observation's dimension).

    Source: Blackman & Popoli, Design and Analysis of Modern Tracking Systems (1999), section 6.4.
    """
    measurements = prepare(observations)
    pairs, refuted = possible_pairs(observations, measurements, propagator, gate_probability)
    cluster, exclusion_group = _clusters(observations, tracks)
    verdict = _per_observation(pairs, cluster, assign(*_cluster_costs(pairs, cluster), exclusion_group))
    verdict.reason[refuted] = Reason.REPORTED_ID_REFUTED
    verdict.reason[~measurements.complete] = Reason.INCOMPLETE
    verdict.reason[~measurements.known_source] = Reason.UNKNOWN_SENSOR
    return verdict


def possible_pairs(
    observations: ObservationArrays,
    measurements: Measurements,
    propagator: Propagator,
    gate_probability: float = 0.999,
    states: States | None = None,
    further_rtn: FloatArray | None = None,
) -> tuple[Pairs, BoolArray]:
    """Pairs of every observation with its candidates, and which (m,) report an identity that their state refutes.

    ``measurements`` are the prepared observations; ``states`` replaces the propagator as source of predictions;
    ``further_rtn`` (6, 6) is added to the covariance of each prediction. A pair depends on its observation and its
    object alone.
    """
    usable = np.flatnonzero(measurements.usable)
    gate = np.concatenate([[0.0], square_holding(gate_probability, np.arange(1, 7))])
    further = np.zeros((6, 6)) if further_rtn is None else further_rtn
    further_km = float(np.sqrt(np.diag(further)[:3].max()))
    rows, candidates = coarse_candidates(measurements.take(usable), propagator, float(np.sqrt(gate[6])), further_km)
    pairs = _compare(measurements, propagator, usable[rows], candidates, gate, states or propagator.at, further)
    reported = _reported_object(observations, measurements, propagator)
    return _apply_reported_ids(pairs, reported, len(observations))


def _compare(
    measurements: Measurements,
    propagator: Propagator,
    rows: IntArray,
    candidates: IntArray,
    gate: FloatArray,
    states: States,
    further_rtn: FloatArray,
) -> Pairs:
    time_ns = measurements.time_ns[rows]
    error, r_teme_km, v_teme_km_s = states(candidates, time_ns)
    # In RTN axes the prior is nearly constant over half a minute: one prior serves all pairs of an object in an
    # interval.
    exclusion_group = _pair_key(candidates, time_ns // _PRIOR_INTERVAL_NS)
    _, first, which = np.unique(exclusion_group, return_index=True, return_inverse=True)
    middle_ns = time_ns[first] // _PRIOR_INTERVAL_NS * _PRIOR_INTERVAL_NS + _PRIOR_INTERVAL_NS // 2
    _, r_middle, v_middle = states(candidates[first], middle_ns)
    prior = tracking_prior_rtn(propagator, candidates[first], middle_ns, r_middle, v_middle) + further_rtn
    known = (error == 0) & np.isfinite(prior[which, 0, 0])
    rows, candidates, which = rows[known], candidates[known], which[known]
    r_teme_km, v_teme_km_s = r_teme_km[known], v_teme_km_s[known]
    mahalanobis2, log_determinant = innovations(measurements.columns, rows, r_teme_km, v_teme_km_s, prior, which)
    inside = mahalanobis2 <= gate[measurements.dimension[rows]]
    return Pairs(
        observation=rows,
        candidate=candidates,
        r_teme_km=r_teme_km,
        v_teme_km_s=v_teme_km_s,
        mahalanobis2=mahalanobis2,
        score=mahalanobis2 + log_determinant,
        inside=inside,
        widest_gate=float(gate[6]),
    )


def _reported_object(observations: ObservationArrays, measurements: Measurements, propagator: Propagator) -> IntArray:
    """Catalogue position (m,) of the satellite that a link beacon names, -1 where the catalogue has none."""
    reported = np.full(len(observations), -1, dtype=np.int64)
    beacons = np.flatnonzero(measurements.kind == ISL)
    if len(beacons):
        by_id = _position_by_number(propagator)
        for row in beacons.tolist():
            _, _, number = str(observations.source_id[row]).partition("-")
            reported[row] = by_id.get(int(number), -1) if number.isdecimal() else -1
    return reported


@lru_cache(maxsize=2)
def _position_by_number(propagator: Propagator) -> dict[int, int]:
    return {norad_id: row for row, norad_id in enumerate(propagator.elements.norad_id.tolist())}


def _apply_reported_ids(pairs: Pairs, reported: IntArray, count: int) -> tuple[Pairs, BoolArray]:
    """Keep only the reported object's pair, where an identity is reported; also which observations (m,) are refuted."""
    has_report = reported >= 0
    matches = pairs.candidate == reported[pairs.observation]
    confirmed = np.zeros(count, dtype=bool)
    confirmed[pairs.observation[matches & pairs.inside]] = True
    keep = ~has_report[pairs.observation] | matches
    return pairs.take(keep), has_report & ~confirmed


def _cluster_costs(pairs: Pairs, cluster: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Cluster, candidate and cost (q,) of every hypothesis with at least one observation inside the gate."""
    inside = pairs.take(pairs.inside)
    clusters, candidates, which = hypotheses(cluster[inside.observation], inside.candidate)
    cost: FloatArray = np.bincount(which, inside.cost(), minlength=len(clusters)).astype(np.float64)
    return clusters, candidates, cost


def hypotheses(cluster: IntArray, candidate: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct association hypotheses, cluster (q,) and candidate (q,), and the hypothesis index of each pair."""
    _, first, which = np.unique(_pair_key(cluster, candidate), return_index=True, return_inverse=True)
    return cluster[first], candidate[first], np.asarray(which, dtype=np.int64)


def _per_observation(pairs: Pairs, cluster: IntArray, found: Assignment) -> Association:
    """Return the association of each observation, from the assignment of its cluster."""
    count = len(cluster)
    index, mahalanobis2 = np.full(count, -1, dtype=np.int64), np.full(count, np.nan)
    reason = np.full(count, Reason.NO_CANDIDATE, dtype=np.uint8)
    nearest = np.full(count, np.inf)
    np.minimum.at(nearest, pairs.observation, pairs.mahalanobis2)
    near = np.isfinite(nearest)
    reason[near], mahalanobis2[near] = Reason.OUTSIDE_GATE, nearest[near]
    gated = np.unique(pairs.observation[pairs.inside])
    reason[gated[found.candidate[cluster[gated]] < 0]] = Reason.ASSIGNED_ELSEWHERE
    assigned = np.flatnonzero(pairs.inside & (pairs.candidate == found.candidate[cluster[pairs.observation]]))
    seen = pairs.observation[assigned]
    index[seen], mahalanobis2[seen] = pairs.candidate[assigned], pairs.mahalanobis2[assigned]
    reason[seen] = np.where(found.lead[cluster[seen]] < _AMBIGUOUS_BELOW, Reason.AMBIGUOUS, Reason.ASSOCIATED)
    runner_up = np.where(index >= 0, found.runner_up[cluster], -1)
    return Association(index=index, runner_up=runner_up, mahalanobis2=mahalanobis2, reason=reason)


def _clusters(observations: ObservationArrays, tracks: TextArray | None) -> tuple[IntArray, IntArray]:
    """Return the cluster of each observation (m,), and the exclusion group (u,) of each cluster.

    A sensor's tracks of one half minute are different objects; so are its single observations of one instant. A track
    of one observation counts as a single observation, because some sensors number every observation.
    """
    count = len(observations)
    label = np.full(count, "", dtype=np.str_) if tracks is None else tracks
    _, source = np.unique(observations.source_id, return_inverse=True)
    _, name = np.unique(label, return_inverse=True)
    half_minute = observations.sensor_time_ns // _PRIOR_INTERVAL_NS
    named = _pair_key(_pair_key(source, name), half_minute)
    _, track, counts = np.unique(named, return_inverse=True, return_counts=True)
    tracked = (label != "") & (counts[track] > 1)
    exclusion_group = exclusion_groups(source, tracked, observations.sensor_time_ns)
    own = np.where(tracked, track, count + np.arange(count))
    _, first, cluster = np.unique(_pair_key(exclusion_group, own), return_index=True, return_inverse=True)
    return np.asarray(cluster, dtype=np.int64), exclusion_group[first]


def exclusion_groups(source: IntArray, tracked: BoolArray, time_ns: IntArray) -> IntArray:
    """Exclusion group (n,) of each cluster of a source: one per half minute for tracks, else one per instant."""
    time = np.where(tracked, time_ns // _PRIOR_INTERVAL_NS, time_ns // _INSTANT_NS)
    _, exclusion_group = np.unique(_pair_key(source * 2 + tracked, time), return_inverse=True)
    return np.asarray(exclusion_group, dtype=np.int64)


def _pair_key(major: IntArray, minor: IntArray) -> IntArray:
    """One integer (m,) per pair, in the sort order of the pairs; integers sort many times faster than pairs."""
    if not len(minor):
        return np.zeros(0, dtype=np.int64)
    least = minor.min()
    return np.asarray(major * (minor.max() - least + 1) + (minor - least), dtype=np.int64)
