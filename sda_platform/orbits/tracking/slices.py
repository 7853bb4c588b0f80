"""A window's evidence, slice by slice: which objects the readings of half a second may be of, and what they would say.

A slice is weighed by itself, when its time has passed, and is a function of its own readings alone: slices may be
weighed in any order, again, or all at once at the end. ``window`` puts them together. Linear algebra is about SGP4 at
the window's middle, as in ``estimation``; each claim is linearised where its own readings lead, which is as near to
the answer as one reading of that sensor can tell.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import ErrorArray, Propagator
from sda_platform.orbits.sensing import quadratic_forms
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays, TextArray
from sda_platform.orbits.tracking.association import claims, possible_pairs
from sda_platform.orbits.tracking.problem import Prior, Problem, prior_at

BoolArray = npt.NDArray[np.bool_]

SLICE_NS = 500_000_000
# Through six states ten seconds apart a polynomial errs by micrometres in a low orbit. Positions and velocities each by
# themselves: SGP4's velocity is not quite the derivative of its position.
_KNOT_NS = 10_000_000_000
_KNOTS, _POINTS = 9, 6
_WELL_WITHIN_NS = 20_000_000_000
# In a hundred thousandth of a second nothing moves by a hundredth of a sensor's noise.
_DOUBTED_CLOCK_S = 1e-5


class Reference:
    """Where a catalogue's objects should be around one window, each worked out when it is first asked for.

    Priors at the window's middle; states in between by interpolation, as good as SGP4's own.
    """

    def __init__(self, propagator: Propagator, mid_time_ns: int) -> None:
        self.propagator, self.mid_time_ns = propagator, mid_time_ns
        self._first_ns = mid_time_ns - _KNOTS // 2 * _KNOT_NS
        count = len(propagator)
        self._asked, known = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self._prior = Prior(np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 6, 6)), known)
        self._knots, self._error = np.zeros((count, _KNOTS, 6)), np.zeros(count, dtype=np.uint8)

    def prior(self, index: IntArray) -> Prior:
        """Of the objects at these positions (k,) in the catalogue, at the middle."""
        self._ask(index)
        return self._prior.take(index)

    def at(self, index: IntArray, time_ns: IntArray) -> tuple[ErrorArray, FloatArray, FloatArray]:
        """As ``Propagator.at``: object ``index[k]`` at ``time_ns[k]``."""
        self._ask(index)
        step = (time_ns - self._first_ns) / _KNOT_NS
        base = np.clip(np.floor(step).astype(np.int64) - 2, 0, _KNOTS - _POINTS)
        states = self._knots[index[:, None], base[:, None] + np.arange(_POINTS)]
        weights = _lagrange_weights(step - base)
        # One by one: sums must not depend on how many are asked for at once.
        state = sum(weight[:, None] * states[:, point] for point, weight in enumerate(weights))
        error, r_teme_km, v_teme_km_s = self._error[index], state[:, :3], state[:, 3:]
        beyond = np.flatnonzero(np.abs(time_ns - self.mid_time_ns) > _WELL_WITHIN_NS)
        if len(beyond):
            exact = self.propagator.at(index[beyond], time_ns[beyond])
            error[beyond], r_teme_km[beyond], v_teme_km_s[beyond] = exact
        return error, r_teme_km, v_teme_km_s

    def _ask(self, index: IntArray) -> None:
        new = np.unique(index[~self._asked[index]])
        if not len(new):
            return
        prior = prior_at(self.propagator, new, np.full(len(new), self.mid_time_ns))
        times_ns = self._first_ns + np.arange(_KNOTS) * _KNOT_NS
        error, r, v = self.propagator.at(np.repeat(new, _KNOTS), np.tile(times_ns, len(new)))
        for field in dataclasses.fields(prior):
            getattr(self._prior, field.name)[new] = getattr(prior, field.name)
        self._knots[new] = np.hstack([r, v]).reshape(len(new), _KNOTS, 6)
        self._error[new] = error.reshape(len(new), _KNOTS).max(axis=1)
        self._asked[new] = True


def _lagrange_weights(x: FloatArray) -> list[FloatArray]:
    """Weights (k,) of each of the values at 0, 1, ... 5 for that at ``x`` (k,)."""
    points = range(_POINTS)
    return [
        np.asarray(math.prod((x - other) / (point - other) for other in points if other != point)) for point in points
    ]


@dataclasses.dataclass(frozen=True, eq=False)
class Slice:
    """What the readings (m,) of one slice say.

    A unit is what is decided together: a sensor's own track, or a lone reading. A claim is that a unit is of an object.
    """

    observations: ObservationArrays
    unit_name: list[tuple[str, str] | None]
    """Of each unit (u): source and track; None of a lone reading."""
    unit_first: IntArray
    """(u,) its first reading."""
    unit_readings: IntArray
    claim_unit: IntArray
    claim_candidate: IntArray
    """(k,) position in the catalogue."""
    claim_cost: FloatArray
    claim_form: FloatArray
    """(k, 28) of the readings within the gate (``quadratic_forms``)."""
    claim_kind: IntArray
    claim_dimension: IntArray
    claim_readings: IntArray
    claim_doubted: BoolArray
    """(k,) whether a clock behind it is off enough to count."""
    pair_reading: IntArray
    pair_claim: IntArray
    """(p,) and (p,): which reading is within the gate of which claim."""

    def split(self, cuts: IntArray) -> list[Slice]:
        """The parts between readings at which no unit goes on."""
        readings = [0, *cuts.tolist(), len(self.observations)]
        units = np.searchsorted(self.unit_first, readings).tolist()
        claim_ends = np.searchsorted(self.claim_unit, units).tolist()
        pairs = np.searchsorted(self.pair_claim, claim_ends).tolist()
        bounds = zip(*(pairwise(ends) for ends in (readings, units, claim_ends, pairs)), strict=True)
        return [self._part(*(slice(*ends) for ends in part)) for part in bounds]

    def _part(self, readings: slice, units: slice, claims: slice, pairs: slice) -> Slice:
        columns = {name: getattr(self, name)[claims] for name in vars(self) if name.startswith("claim_")}
        columns["claim_unit"] = columns["claim_unit"] - units.start
        return Slice(
            observations=self.observations.take(np.arange(readings.start, readings.stop)),
            unit_name=self.unit_name[units],
            unit_first=self.unit_first[units] - readings.start,
            unit_readings=self.unit_readings[units],
            pair_reading=self.pair_reading[pairs] - readings.start,
            pair_claim=self.pair_claim[pairs] - claims.start,
            **columns,
        )


def weigh(
    observations: ObservationArrays,
    tracks: TextArray,
    number: IntArray,
    reference: Reference,
) -> list[Slice]:
    """Weigh the readings (m,) of some slices, in order of their ``number`` (m,), each by itself.

    ``tracks`` (m,) are the sensors' own names, empty where there is none. Many at once cost little more than one.
    """
    measurements = prepare(observations)
    pairs, _ = possible_pairs(observations, measurements, reference.propagator, states=reference.at)
    pairs = pairs.take(pairs.inside & reference.prior(pairs.candidate).known)
    names, unit, first = _units(number.tolist(), observations.source_id.tolist(), tracks.tolist())
    claim_unit, candidate, claim = claims(unit[pairs.observation], pairs.candidate)
    rank = np.empty(len(observations), dtype=np.int64)
    rank[observations.canonical_order(np.zeros(len(rank), dtype=np.int64))] = np.arange(len(rank))
    order = np.lexsort((rank[pairs.observation], claim))
    pairs, claim = pairs.take(order), claim[order]
    rows = measurements.take(pairs.observation)
    count = len(candidate)
    middle_ns = np.full(len(claim), reference.mid_time_ns)
    problem = Problem.of(rows, claim, reference.prior(candidate), pairs.r_teme_km, pairs.v_teme_km_s, middle_ns)
    together = Slice(
        observations=observations,
        unit_name=names,
        unit_first=first,
        unit_readings=np.bincount(unit, minlength=len(names)),
        claim_unit=claim_unit,
        claim_candidate=candidate,
        claim_cost=np.bincount(claim, pairs.cost(), minlength=count).astype(np.float64),
        claim_form=_forms(problem),
        claim_kind=rows.kind[np.flatnonzero(np.diff(claim, prepend=-1))],
        claim_dimension=np.bincount(claim, rows.dimension, minlength=count).astype(np.int64),
        claim_readings=np.bincount(claim, minlength=count),
        claim_doubted=np.bincount(claim, rows.time_sigma_s > _DOUBTED_CLOCK_S, minlength=count) > 0,
        pair_reading=pairs.observation,
        pair_claim=claim,
    )
    return together.split(np.flatnonzero(np.diff(number)) + 1)


def _forms(problem: Problem) -> FloatArray:
    """(k, 28) of each claim's readings, linearised where prior and these lead in one step."""
    count, rows = len(problem.prior.r_mid), np.arange(len(problem.group))
    design, misfit = np.empty((len(rows), 6, 6)), np.empty((len(rows), 6))
    at: FloatArray = np.zeros((count, 6))
    problem.look(rows, at, problem.group, design, misfit)
    normal, gradient, _ = quadratic_forms.parts(quadratic_forms.summed(design, misfit, problem.group, at))
    at = np.asarray(np.linalg.solve(normal + np.eye(6), gradient[:, :, None])[:, :, 0], dtype=np.float64)
    problem.look(rows, at, problem.group, design, misfit)
    return quadratic_forms.summed(design, misfit, problem.group, at)  # type: ignore[no-any-return]


def _units(
    number: list[int], source: list[str], track: list[str]
) -> tuple[list[tuple[str, str] | None], IntArray, IntArray]:
    """Names of the units, the unit of each reading, and the first reading of each unit."""
    units: dict[object, int] = {}
    names: list[tuple[str, str] | None] = []
    unit, first = [], []
    for row, name in enumerate(zip(source, track, strict=True)):
        mine = units.setdefault((number[row], name) if name[1] else row, len(names))
        if mine == len(names):
            names.append(name if name[1] else None)
            first.append(row)
        unit.append(mine)
    return names, np.array(unit, dtype=np.int64), np.array(first, dtype=np.int64)
