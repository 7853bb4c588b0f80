"""Which catalogued object each observation saw, by gated residuals against the SGP4 prediction.

Three stages: a coarse gate on geometry that cannot lose an object the fine gate would accept; the exact residual at
the observation's own time against prior plus measurement covariance; one assignment for all that is left.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.covariance import prior_covariance_rtn
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import ErrorArray, Propagator
from sda_platform.orbits.sensing.linearisation import ISL, innovations
from sda_platform.orbits.sensing.measurements import Measurements, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays, TextArray
from sda_platform.orbits.tracking.assignment import Assignment, assign
from sda_platform.orbits.tracking.gating import coarse_candidates

__all__ = ["Association", "ObservationArrays", "Reason", "associate"]

BoolArray = npt.NDArray[np.bool_]
States = Callable[[IntArray, IntArray], tuple[ErrorArray, FloatArray, FloatArray]]
"""Error, position and velocity (n, ...) of objects (n,) of the catalogue at times (n,), as ``Propagator.at``."""

_DAY_NS = 86_400_000_000_000
_PRIOR_SLOT_NS = 30_000_000_000
_INSTANT_NS = 100_000_000
# The best candidate must be twenty times as likely as the next, else the choice is flagged.
_AMBIGUOUS_BELOW = 2 * float(np.log(20.0))


class Reason(enum.IntEnum):
    """Why an observation was, or was not, given an object."""

    ASSOCIATED = 0
    AMBIGUOUS = 1
    """Given the likelier of two objects that both fit, less than 20 times as likely as the other."""
    NO_CANDIDATE = 2
    """No catalogued object anywhere near."""
    OUTSIDE_GATE = 3
    """Objects near, none within the gate."""
    UNKNOWN_SENSOR = 4
    """The source is not in the sensor registry, or is there as another kind."""
    INCOMPLETE = 5
    """A number this kind of observation needs is missing."""
    CLAIM_REFUTED = 6
    """A link beacon names a catalogued satellite, but reports a state outside that satellite's gate."""
    TAKEN = 7
    """Within the gate of objects which other readings of the same sensor and time saw more likely."""


@dataclasses.dataclass(frozen=True, eq=False)
class Association:
    """The verdict on ``m`` observations, each array (m,)."""

    index: IntArray
    """Position of the object in the propagator's elements, or -1."""
    runner_up: IntArray
    """Position of the second likeliest object within the gate, or -1."""
    mahalanobis2: FloatArray
    """Squared Mahalanobis distance to the chosen object, else to the likeliest refused one, else NaN."""
    reason: npt.NDArray[np.uint8]
    """A ``Reason`` each."""


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Observation-object pairs (p,) under comparison."""

    observation: IntArray
    candidate: IntArray
    r_teme_km: FloatArray
    """(p, 3) and (p, 3): the object as predicted for the observation's time."""
    v_teme_km_s: FloatArray
    mahalanobis2: FloatArray
    score: FloatArray
    inside: BoolArray
    widest_gate: float
    """The gate of an observation of six numbers."""

    def take(self, index: npt.ArrayLike) -> Pairs:
        """The pairs at ``index`` (positions or a boolean mask), in that order."""
        chosen = np.asarray(index)
        columns = {f.name: getattr(self, f.name)[chosen] for f in dataclasses.fields(self) if f.name != "widest_gate"}
        return Pairs(**columns, widest_gate=self.widest_gate)

    def cost(self) -> FloatArray:
        """(p,) how much it costs, of pairs inside the gate, to give the observation this object; to give none is free.

        A reading outside a candidate's gate counts as the unlikeliest of its own candidates and the gate on top.
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
    """Choose for all observations together the catalogued objects they most likely saw.

    Cost of a pair within the gate: squared Mahalanobis distance plus log determinant of the innovation covariance
    (the distance alone would favour badly known objects, to which everything is near). What a sensor itself
    follows as one track is decided as one, and its tracks of a half minute, like its readings of one instant, are
    of different objects: ambiguities are resolved by the least total cost (``assignment``). A link beacon's
    own name decides as long as its state is within that satellite's gate.

    Args:
        observations: (m,) in any order.
        propagator: the catalogue.
        tracks: (m,) names the sensors' own trackers give, alike in all readings of one track, empty where there is
            none; a name means something within its source only.
        gate_probability: share of true pairs the gate lets through (chi-square of the observation's size).

    Source: Blackman & Popoli, Design and Analysis of Modern Tracking Systems (1999), section 6.4.
    """
    measurements = prepare(observations)
    pairs, refuted = possible_pairs(observations, measurements, propagator, gate_probability)
    unit, slot = _units(observations, tracks)
    verdict = _verdicts(pairs, unit, assign(*_together(pairs, unit), slot))
    verdict.reason[refuted] = Reason.CLAIM_REFUTED
    verdict.reason[~measurements.complete] = Reason.INCOMPLETE
    verdict.reason[~measurements.known_source] = Reason.UNKNOWN_SENSOR
    return verdict


def possible_pairs(
    observations: ObservationArrays,
    measurements: Measurements,
    propagator: Propagator,
    gate_probability: float = 0.999,
    states: States | None = None,
) -> tuple[Pairs, BoolArray]:
    """Every observation with every object near it, and which (m,) claim to be a satellite that they do not fit.

    ``measurements`` are the observations, prepared; ``states`` says where objects are, if not the propagator itself.
    What a pair says depends on its observation and object alone.
    """
    usable = np.flatnonzero(measurements.usable)
    gate = np.concatenate([[0.0], chi2.ppf(gate_probability, np.arange(1, 7))])
    rows, candidates = coarse_candidates(measurements.take(usable), propagator, float(np.sqrt(gate[6])))
    pairs = _compare(measurements, propagator, usable[rows], candidates, gate, states or propagator.at)
    claimed = _claimed_index(observations, measurements, propagator)
    return _keep_claims(pairs, claimed, len(observations))


def _compare(
    measurements: Measurements,
    propagator: Propagator,
    rows: IntArray,
    candidates: IntArray,
    gate: FloatArray,
    states: States,
) -> Pairs:
    time_ns = measurements.time_ns[rows]
    error, r_teme_km, v_teme_km_s = states(candidates, time_ns)
    # In its own axes a prior hardly changes within half a minute: that of its middle serves all of an object's pairs.
    slot = _pair_key(candidates, time_ns // _PRIOR_SLOT_NS)
    _, first, which = np.unique(slot, return_index=True, return_inverse=True)
    middle_ns = time_ns[first] // _PRIOR_SLOT_NS * _PRIOR_SLOT_NS + _PRIOR_SLOT_NS // 2
    _, r_middle, v_middle = states(candidates[first], middle_ns)
    age_days = (middle_ns - propagator.elements.epoch_time_ns[candidates[first]]) / _DAY_NS
    prior = prior_covariance_rtn(r_middle, v_middle, age_days)
    known = (error == 0) & np.isfinite(prior[which, 0, 0])
    rows, candidates, which = rows[known], candidates[known], which[known]
    r_teme_km, v_teme_km_s = r_teme_km[known], v_teme_km_s[known]
    mahalanobis2, log_determinant = innovations(measurements.readings, rows, r_teme_km, v_teme_km_s, prior, which)
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


def _claimed_index(observations: ObservationArrays, measurements: Measurements, propagator: Propagator) -> IntArray:
    """Position (m,) of the satellite a link beacon says it is, -1 where that is none in the catalogue."""
    claimed = np.full(len(observations), -1, dtype=np.int64)
    beacons = np.flatnonzero(measurements.kind == ISL)
    if len(beacons):
        by_id = _position_by_number(propagator)
        for row in beacons.tolist():
            _, _, number = str(observations.source_id[row]).partition("-")
            claimed[row] = by_id.get(int(number), -1) if number.isdecimal() else -1
    return claimed


@lru_cache(maxsize=2)
def _position_by_number(propagator: Propagator) -> dict[int, int]:
    return {norad_id: row for row, norad_id in enumerate(propagator.elements.norad_id.tolist())}


def _keep_claims(pairs: Pairs, claimed: IntArray, count: int) -> tuple[Pairs, BoolArray]:
    """Drop the rivals of a claimed object; also which observations (m,) claim an object they do not fit."""
    has_claim = claimed >= 0
    matches = pairs.candidate == claimed[pairs.observation]
    confirmed = np.zeros(count, dtype=bool)
    confirmed[pairs.observation[matches & pairs.inside]] = True
    keep = ~has_claim[pairs.observation] | matches
    return pairs.take(keep), has_claim & ~confirmed


def _together(pairs: Pairs, unit: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Unit, candidate and cost (q,) of every candidate that one of a unit's readings lets through its gate."""
    inside = pairs.take(pairs.inside)
    units, candidates, which = claims(unit[inside.observation], inside.candidate)
    cost: FloatArray = np.bincount(which, inside.cost(), minlength=len(units)).astype(np.float64)
    return units, candidates, cost


def claims(unit: IntArray, candidate: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The different pairs of unit and candidate, (q,) and (q,), and which of them each of the given ones is."""
    _, first, which = np.unique(_pair_key(unit, candidate), return_index=True, return_inverse=True)
    return unit[first], candidate[first], np.asarray(which, dtype=np.int64)


def _verdicts(pairs: Pairs, unit: IntArray, found: Assignment) -> Association:
    """What the units' assignment means for each reading."""
    count = len(unit)
    index, mahalanobis2 = np.full(count, -1, dtype=np.int64), np.full(count, np.nan)
    reason = np.full(count, Reason.NO_CANDIDATE, dtype=np.uint8)
    nearest = np.full(count, np.inf)
    np.minimum.at(nearest, pairs.observation, pairs.mahalanobis2)
    near = np.isfinite(nearest)
    reason[near], mahalanobis2[near] = Reason.OUTSIDE_GATE, nearest[near]
    let_in = np.unique(pairs.observation[pairs.inside])
    reason[let_in[found.candidate[unit[let_in]] < 0]] = Reason.TAKEN
    mine = np.flatnonzero(pairs.inside & (pairs.candidate == found.candidate[unit[pairs.observation]]))
    seen = pairs.observation[mine]
    index[seen], mahalanobis2[seen] = pairs.candidate[mine], pairs.mahalanobis2[mine]
    reason[seen] = np.where(found.lead[unit[seen]] < _AMBIGUOUS_BELOW, Reason.AMBIGUOUS, Reason.ASSOCIATED)
    runner_up = np.where(index >= 0, found.runner_up[unit], -1)
    return Association(index=index, runner_up=runner_up, mahalanobis2=mahalanobis2, reason=reason)


def _units(observations: ObservationArrays, tracks: TextArray | None) -> tuple[IntArray, IntArray]:
    """Which readings (m,) are decided together, and the slot (u,) in which their unit excludes others.

    A sensor's tracks of one half minute are different objects; so are its lone readings of one instant. A track of one
    reading is a lone reading: some sensors number every reading.
    """
    count = len(observations)
    label = np.full(count, "", dtype=np.str_) if tracks is None else tracks
    _, source = np.unique(observations.source_id, return_inverse=True)
    _, name = np.unique(label, return_inverse=True)
    half_minute = observations.sensor_time_ns // _PRIOR_SLOT_NS
    named = _pair_key(_pair_key(source, name), half_minute)
    _, track, readings = np.unique(named, return_inverse=True, return_counts=True)
    tracked = (label != "") & (readings[track] > 1)
    slot = exclusive_slots(source, tracked, observations.sensor_time_ns)
    own = np.where(tracked, track, count + np.arange(count))
    _, first, unit = np.unique(_pair_key(slot, own), return_index=True, return_inverse=True)
    return np.asarray(unit, dtype=np.int64), slot[first]


def exclusive_slots(source: IntArray, tracked: BoolArray, time_ns: IntArray) -> IntArray:
    """The slot (n,) in which a unit of a source excludes its others: a half minute for tracks, else an instant."""
    time = np.where(tracked, time_ns // _PRIOR_SLOT_NS, time_ns // _INSTANT_NS)
    _, slot = np.unique(_pair_key(source * 2 + tracked, time), return_inverse=True)
    return np.asarray(slot, dtype=np.int64)


def _pair_key(major: IntArray, minor: IntArray) -> IntArray:
    """One number (m,) for each pair, which sorts as the pairs do: sorting numbers is many times faster."""
    if not len(minor):
        return np.zeros(0, dtype=np.int64)
    least = minor.min()
    return np.asarray(major * (minor.max() - least + 1) + (minor - least), dtype=np.int64)
