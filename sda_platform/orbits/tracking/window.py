"""A window from its slices: who was seen, decided with all of them, and one fit per object from sums of what they say.

Most is done while the window is still open. What is left at its end does not look at readings any more, only at what
slices have summed up: one assignment, one solution of six equations per object, and whether every slice agrees with
it. Where one does not, where a clock has to be doubted, or where the state is further off than the prior explains, the
object is fitted from its readings (``estimation``), which sorts out outliers; sums cannot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing import quadratic_forms
from sda_platform.orbits.sensing.linearisation import ISL, OPTICAL, RADAR
from sda_platform.orbits.sensing.observations import stacked
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.orbits.tracking.assignment import assign
from sda_platform.orbits.tracking.association import exclusive_slots
from sda_platform.orbits.tracking.estimation import OUTLIER_PROBABILITY, StateFits, fit_windows
from sda_platform.orbits.tracking.problem import states
from sda_platform.orbits.tracking.slices import Reference, Slice

BoolArray = npt.NDArray[np.bool_]

# More than the gate of one reading lets through.
_PLAUSIBLE_SIGMAS = 6.0


@dataclasses.dataclass(frozen=True, eq=False)
class Fused:
    """The fits of a window's ``g`` objects, and which object each reading (m,) is of."""

    objects: IntArray
    """(g,) positions in the catalogue."""
    group: IntArray
    """(m,) position in ``objects``, or -1; readings in the order of the slices."""
    fits: StateFits
    refitted: BoolArray
    """(g,) whose readings had to be looked at again at the end."""


class Window:
    """One window of time, filled with its slices one after another."""

    def __init__(self, propagator: Propagator, mid_time_ns: int, sensors: Mapping[str, Sensor] | None = None) -> None:
        self.reference = Reference(propagator, mid_time_ns)
        self._propagator, self._mid_time_ns, self._sensors = propagator, mid_time_ns, sensors
        self._slices: list[Slice] = []
        self._claim_of: list[IntArray] = []
        self._unit_numbers: dict[object, int] = {}
        self._source_numbers: dict[str, int] = {}
        self._claim_numbers: dict[int, int] = {}
        self._units: dict[str, IntArray] = {name: np.zeros(0, dtype=np.int64) for name in _UNIT_COLUMNS}
        self._claims: dict[str, IntArray] = {name: np.zeros(0, dtype=np.int64) for name in _CLAIM_COLUMNS}
        self._cost: FloatArray = np.zeros(0)
        self._forms: FloatArray = np.zeros((0, quadratic_forms.SIZE))

    def emptied(self) -> Window:
        """The same window, without any slice."""
        empty = Window(self._propagator, self._mid_time_ns, self._sensors)
        empty.reference = self.reference
        return empty

    def absorb(self, part: Slice) -> None:
        """Add the next slice, in the order of time: sums come out the same to the last bit for the same order."""
        unit = self._number_units(part)
        claim = self._number_claims(part, unit)
        self._cost[claim] += part.claim_cost
        quadratic_forms.add(part.claim_form, claim, self._forms)
        for name in ("dimension", "readings", "doubted"):
            self._claims[name][claim] += getattr(part, f"claim_{name}")
        self._slices.append(part)
        self._claim_of.append(claim)

    def fit(self) -> Fused:
        """Decide and fit with all that was absorbed; more may be absorbed afterwards."""
        chosen = self._chosen()
        objects, of_chosen = np.unique(self._claims["candidate"][chosen], return_inverse=True)
        place = np.full(len(chosen), -1, dtype=np.int64)
        place[chosen] = of_chosen
        group = np.concatenate([self._groups(n, place) for n in range(len(self._slices))] or [of_chosen])
        forms = np.zeros((len(objects), quadratic_forms.SIZE))
        quadratic_forms.add(self._forms[chosen], of_chosen, forms)
        fits, unknowns, information = self._solved(objects, forms, place, group)
        suspicious = self._suspicious(place, unknowns, information)
        return Fused(objects, group, self._refitted(objects, group, fits, suspicious), suspicious)

    def _number_units(self, part: Slice) -> IntArray:
        numbers, fresh = self._unit_numbers, len(self._slices)
        names = [name or (fresh, row) for row, name in enumerate(part.unit_name)]
        known = len(numbers)
        unit = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
        new = unit >= known
        first = part.unit_first[new]
        sources = part.observations.source_id[first].tolist()
        columns = {
            "source": [self._source_numbers.setdefault(name, len(self._source_numbers)) for name in sources],
            "named": [name is not None for name, is_new in zip(part.unit_name, new.tolist(), strict=True) if is_new],
            "time_ns": part.observations.sensor_time_ns[first],
            "readings": np.zeros(len(first)),
        }
        self._units = _extended(self._units, columns)
        self._units["readings"][unit] += part.unit_readings
        return unit

    def _number_claims(self, part: Slice, unit: IntArray) -> IntArray:
        numbers = self._claim_numbers
        known = len(numbers)
        keys = (unit[part.claim_unit] * len(self._propagator) + part.claim_candidate).tolist()
        claim = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        new = claim >= known
        columns = {
            "unit": unit[part.claim_unit[new]],
            "candidate": part.claim_candidate[new],
            "kind": part.claim_kind[new],
            **{name: np.zeros(new.sum()) for name in ("dimension", "readings", "doubted")},
        }
        self._claims = _extended(self._claims, columns)
        self._cost = np.concatenate([self._cost, np.zeros(new.sum())])
        self._forms = np.concatenate([self._forms, np.zeros((new.sum(), quadratic_forms.SIZE))])
        return claim

    def _chosen(self) -> BoolArray:
        """Which claims hold: decided for all units of the window at once."""
        units = self._units
        slot = exclusive_slots(units["source"], (units["named"] > 0) & (units["readings"] > 1), units["time_ns"])
        unit, candidate = self._claims["unit"], self._claims["candidate"]
        return np.asarray(assign(unit, candidate, self._cost, slot).candidate[unit] == candidate)

    def _groups(self, number: int, place: IntArray) -> IntArray:
        part = self._slices[number]
        group = np.full(len(part.observations), -1, dtype=np.int64)
        of_pair = place[self._claim_of[number][part.pair_claim]]
        group[part.pair_reading[of_pair >= 0]] = of_pair[of_pair >= 0]
        return group

    def _solved(
        self, objects: IntArray, forms: FloatArray, place: IntArray, group: IntArray
    ) -> tuple[StateFits, FloatArray, FloatArray]:
        """The fits by sums alone, with unknowns and information in the priors' coordinates."""
        count, prior = len(objects), self.reference.prior(objects)
        normal, gradient, square = quadratic_forms.parts(forms)
        information = np.asarray(normal + np.eye(6), dtype=np.float64)
        unknowns = np.asarray(np.linalg.solve(information, gradient[:, :, None])[:, :, 0], dtype=np.float64)
        r, v, covariance = states(prior, unknowns, information)
        chosen = place >= 0

        def total(values: IntArray) -> IntArray:
            return np.bincount(place[chosen], values[chosen], minlength=count).astype(np.int64)

        kind, readings = self._claims["kind"], self._claims["readings"]
        fits = StateFits(
            r_teme_km=r,
            v_teme_km_s=v,
            covariance_teme=covariance,
            predicted_r_teme_km=prior.r_mid,
            predicted_v_teme_km_s=prior.v_mid,
            chi_square=np.maximum(square - np.einsum("gi,gi->g", gradient, unknowns), 0.0),
            degrees_of_freedom=total(self._claims["dimension"]),
            radar_count=total(np.where(kind == RADAR, readings, 0)),
            optical_count=total(np.where(kind == OPTICAL, readings, 0)),
            isl_count=total(np.where(kind == ISL, readings, 0)),
            outliers_rejected=np.zeros(count, dtype=np.int64),
            unusable=np.zeros(count, dtype=np.int64),
            iterations=np.ones(count, dtype=np.int64),
            converged=np.ones(count, dtype=bool),
            used=group >= 0,
        )
        return fits, unknowns, information

    def _suspicious(self, place: IntArray, unknowns: FloatArray, information: FloatArray) -> BoolArray:
        """Which objects' sums are not to be relied on."""
        suspicious = np.asarray(~(np.abs(unknowns).max(axis=1, initial=0.0) <= _PLAUSIBLE_SIGMAS))
        suspicious[place[(place >= 0) & (self._claims["doubted"] > 0)]] = True
        for part, claim in zip(self._slices, self._claim_of, strict=True):
            of_block = place[claim]
            surprise = quadratic_forms.surprises(part.claim_form, of_block, unknowns, information)
            bound = _bounds(int(part.claim_dimension.max(initial=0)))
            suspicious[of_block[surprise > bound[part.claim_dimension]]] = True
        return suspicious

    def _refitted(self, objects: IntArray, group: IntArray, fits: StateFits, suspicious: BoolArray) -> StateFits:
        """The fits with those of the suspicious from their readings."""
        again = np.flatnonzero(suspicious)
        if not len(again):
            return fits
        number = np.full(len(objects) + 1, -1, dtype=np.int64)
        number[again] = np.arange(len(again))
        rows = np.flatnonzero(number[group] >= 0)
        starts = np.cumsum([0, *(len(part.observations) for part in self._slices)])
        cuts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
        taken = [
            part.observations.take(cut - start) for part, cut, start in zip(self._slices, cuts, starts, strict=False)
        ]
        middle_ns = np.full(len(again), self._mid_time_ns)
        fresh = fit_windows(
            stacked(taken), number[group[rows]], self._propagator, objects[again], middle_ns, self._sensors
        )
        for field in dataclasses.fields(fits):
            getattr(fits, field.name)[rows if field.name == "used" else again] = getattr(fresh, field.name)
        return fits


@cache
def _bounds(dimension: int) -> FloatArray:
    """What the squared misfit of as many numbers (0, 1, ... ``dimension``) may be by chance."""
    return np.asarray(chi2.isf(OUTLIER_PROBABILITY, np.arange(dimension + 1)))


_UNIT_COLUMNS = ("source", "named", "time_ns", "readings")
_CLAIM_COLUMNS = ("unit", "candidate", "kind", "dimension", "readings", "doubted")


def _extended(columns: dict[str, IntArray], more: Mapping[str, Any]) -> dict[str, IntArray]:
    return {name: np.concatenate([columns[name], np.asarray(more[name], dtype=np.int64)]) for name in columns}
