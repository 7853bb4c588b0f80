"""A window from its slices: who was seen, decided with all of them, and one fit per object from sums of what they say.

Most is done while the window is still open. What is left at its end does not look at readings any more, only at what
slices have summed up: one assignment, one solution of six equations per object, and whether every slice agrees with
it; what does not is left out. Where sound readings would be missed that leave with an outlier, where a clock has to be
doubted, or where the state is further off than the prior explains, the object is fitted from its readings
(``estimation``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing import quadratic_forms
from sda_platform.orbits.sensing.linearisation import ISL, OPTICAL, RADAR
from sda_platform.orbits.sensing.observations import stacked
from sda_platform.orbits.tracking.assignment import assign
from sda_platform.orbits.tracking.association import exclusive_slots
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform.orbits.tracking.outlier_rejection import agreeing, excesses, solved
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

    def __init__(self, propagator: Propagator, mid_time_ns: int) -> None:
        self.reference = Reference(propagator, mid_time_ns)
        self._propagator, self._mid_time_ns = propagator, mid_time_ns
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
        empty = Window(self._propagator, self._mid_time_ns)
        empty.reference = self.reference
        return empty

    def absorb(self, part: Slice) -> None:
        """Add the next slice, in the order of time: sums come out the same to the last bit for the same order."""
        unit = self._number_units(part)
        claim = self._number_claims(part, unit)
        self._cost[claim] += part.claim_cost
        quadratic_forms.add(part.claim_form, claim, self._forms)
        self._claims["doubted"][claim] += part.claim_doubted
        self._slices.append(part)
        self._claim_of.append(claim)

    def fit(self) -> Fused:
        """Decide and fit with all that was absorbed; more may be absorbed afterwards."""
        chosen = self._chosen()
        objects, of_chosen = np.unique(self._claims["candidate"][chosen], return_inverse=True)
        place = np.full(len(chosen), -1, dtype=np.int64)
        place[chosen] = of_chosen
        # Of each claim of each slice the object that it is of.
        whose = [place[claim] for claim in self._claim_of]
        forms = np.zeros((len(objects), quadratic_forms.SIZE))
        quadratic_forms.add(self._forms[chosen], of_chosen, forms)
        left_out, suspicious = self._sorted_out(whose, forms)
        unknowns, information = solved(forms)
        suspicious |= ~(np.abs(unknowns).max(axis=1, initial=0.0) <= _PLAUSIBLE_SIGMAS)
        suspicious[place[(place >= 0) & (self._claims["doubted"] > 0)]] = True
        group, used = self._of_readings(whose, left_out)
        counts = self._counts(whose, left_out, len(objects))
        prior = self.reference.prior(objects)
        r, v, covariance = states(prior, unknowns, information)
        _, gradient, square = quadratic_forms.parts(forms)
        fits = StateFits(
            r_teme_km=r,
            v_teme_km_s=v,
            covariance_teme=covariance,
            predicted_r_teme_km=prior.r_mid,
            predicted_v_teme_km_s=prior.v_mid,
            chi_square=np.maximum(square - np.einsum("gi,gi->g", gradient, unknowns), 0.0),
            **counts,
            unusable=np.zeros(len(objects), dtype=np.int64),
            iterations=np.ones(len(objects), dtype=np.int64),
            converged=np.ones(len(objects), dtype=bool),
            used=used,
        )
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
            "doubted": np.zeros(new.sum()),
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

    def _sorted_out(self, whose: list[IntArray], forms: FloatArray) -> tuple[list[BoolArray], BoolArray]:
        """Which claims of each slice are left out, and which objects (g,) that does not settle.

        What is left out is taken out of ``forms``.
        """
        left_out = [np.zeros(len(objects), dtype=bool) for objects in whose]
        unsettled = np.zeros(len(forms), dtype=bool)
        fit = solved(forms)
        for part, objects in zip(self._slices, whose, strict=True):
            every = np.ones(len(objects), dtype=bool)
            excess = excesses(part.claim_form, objects, part.claim_dimension, every, *fit)
            unsettled[objects[excess > 1.0]] = True
        again = np.flatnonzero(unsettled)
        if not len(again):
            return left_out, unsettled
        rows = [np.flatnonzero((objects >= 0) & unsettled[objects]) for objects in whose]
        group = np.searchsorted(again, np.concatenate([objects[k] for objects, k in zip(whose, rows, strict=True)]))
        form, dimension, readings = (
            np.concatenate([getattr(part, name)[k] for part, k in zip(self._slices, rows, strict=True)])
            for name in ("claim_form", "claim_dimension", "claim_readings")
        )
        counted, settled = agreeing(form, group, dimension, readings, len(again))
        forms[again] = 0.0
        quadratic_forms.add(form[counted], again[group[counted]], forms)
        unsettled[again] = ~settled
        cuts = np.cumsum([len(k) for k in rows])[:-1]
        for mask, k, kept in zip(left_out, rows, np.split(counted, cuts), strict=True):
            mask[k] = ~kept
        return left_out, unsettled

    def _of_readings(self, whose: list[IntArray], left_out: list[BoolArray]) -> tuple[IntArray, BoolArray]:
        """The object of each reading of the window, or -1, and whether the fits use it."""
        count = sum(len(part.observations) for part in self._slices)
        group, used, start = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=bool), 0
        for part, objects, out in zip(self._slices, whose, left_out, strict=True):
            mine = objects[part.pair_claim] >= 0
            rows, claim = start + part.pair_reading[mine], part.pair_claim[mine]
            group[rows], used[rows] = objects[claim], ~out[claim]
            start += len(part.observations)
        return group, used

    def _counts(self, whose: list[IntArray], left_out: list[BoolArray], count: int) -> dict[str, IntArray]:
        """What the fits (g,) rest on."""
        kinds = {"radar_count": RADAR, "optical_count": OPTICAL, "isl_count": ISL}
        names = ("degrees_of_freedom", *kinds, "outliers_rejected")
        found = {name: np.zeros(count, dtype=np.int64) for name in names}
        for part, objects, out in zip(self._slices, whose, left_out, strict=True):
            kept = (objects >= 0) & ~out
            of_kind = {name: kept & (part.claim_kind == kind) for name, kind in kinds.items()}
            np.add.at(found["degrees_of_freedom"], objects[kept], part.claim_dimension[kept])
            np.add.at(found["outliers_rejected"], objects[out], part.claim_readings[out])
            for name, rows in of_kind.items():
                np.add.at(found[name], objects[rows], part.claim_readings[rows])
        return found

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
        fresh = fit_windows(stacked(taken), number[group[rows]], self._propagator, objects[again], middle_ns)
        for field in dataclasses.fields(fits):
            getattr(fits, field.name)[rows if field.name == "used" else again] = getattr(fresh, field.name)
        return fits


_UNIT_COLUMNS = ("source", "named", "time_ns", "readings")
_CLAIM_COLUMNS = ("unit", "candidate", "doubted")


def _extended(columns: dict[str, IntArray], more: Mapping[str, Any]) -> dict[str, IntArray]:
    return {name: np.concatenate([columns[name], np.asarray(more[name], dtype=np.int64)]) for name in columns}
