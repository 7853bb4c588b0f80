"""Element sets that contradict the history of their object, and that no later set bears out.

A set is compared with the last one before it that was borne out: at its epoch, in units of the object's own usual
deviation, as jumps are (`element_jumps`). Of an object with fewer than LEAST_SETS sets it is that of its regime
(`element_errors`). A set that deviates by more than HELD_FROM is right only if the next set agrees with it: then the
object has manoeuvred. The result for a set depends on the sets in the 30 days before it and on the next one alone. The
order in which they arrived has no effect.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.element_history import HISTORY_NS
from sda_platform.orbits.element_jumps import (
    BAD_FIT,
    CROSS_TAG,
    LEAST_DEVIATION_KM,
    LEAST_SETS,
    OTHER_ORBIT_KM,
    UNSETTLED,
    deviations_km,
    grown_km,
)
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_NS, MINUTE_NS

HELD_FROM: Final = 60.0
"""Times the usual deviation of the object from which a set is held."""
_MEDIAN_SIGMAS: Final = 0.6745
APART_NS: Final = 10 * MINUTE_NS
"""Sets of an object with epochs closer than this are the same set to a comparison."""


@dataclass(frozen=True, eq=False)
class Contradictions:
    """Sets that are held (m,).

    Attributes:
        row: rows of the sets.
        reference: rows of the sets that they contradict.
        score: deviations from these, times the usual one.
        deviation_km: (m, 3) the same in km: radial, in-track, across the plane.
        kind: positions in `element_jumps.KINDS`: unsettled where no set follows; else a bad fit or a cross-tag.
    """

    row: IntArray
    reference: IntArray
    score: FloatArray
    deviation_km: FloatArray
    kind: npt.NDArray[np.int8]


def contradictions(
    elements: ElementSets, is_witness: BoolArray, is_judged: BoolArray, *, at_arrival: bool = False
) -> Contradictions:
    """Find the sets that are held among those that are judged.

    Args:
        elements: (n,) sets ordered by object, then epoch.
        is_witness: (n,) whether a set may speak for or against others: it was observed, and is no plan.
        is_judged: (n,) whether a set is judged. Of its object all sets of the 30 days before it must be there.
        at_arrival: judge each set as if none had followed it.
    """
    sets = _Sets(elements, is_witness)
    rows = np.flatnonzero(is_judged)
    before = sets.before(rows)
    rows, before = rows[before >= 0], before[before >= 0]
    following = np.full(len(rows), -1) if at_arrival else sets.following(rows)
    # A score cannot be greater than by the least usual deviation.
    deviation_km, days = sets.deviations(sets.witness[before], rows), sets.days(sets.witness[before], rows)
    is_far = _scores(deviation_km, days, LEAST_DEVIATION_KM) > HELD_FROM
    rows, before, following, deviation_km = rows[is_far], before[is_far], following[is_far], deviation_km[is_far]
    first = sets.first_of_history(rows, before)
    steps = sets.steps(first, before)
    spans = zip(first.tolist(), before.tolist(), rows.tolist(), deviation_km, following.tolist(), strict=True)
    found = [_History(sets, start, end, steps, row, off).judged(after) for start, end, row, off, after in spans]
    held = [each for each in found if each is not None]
    row, reference, score, kind = zip(*held, strict=True) if held else ((), (), (), ())
    held_rows, references = np.array(row, np.int64), np.array(reference, np.int64)
    deviation_km = sets.deviations(references, held_rows)
    return Contradictions(held_rows, references, np.array(score, np.float64), deviation_km, np.array(kind, np.int8))


def agree_with_last(elements: ElementSets, is_witness: BoolArray, rows: IntArray) -> BoolArray:
    """Return whether each of ``rows`` (m,) is certain not to be held: the witness before it is there, and agrees."""
    sets = _Sets(elements, is_witness)
    before = sets.before(rows)
    is_there = before >= 0
    early, late = sets.witness[before[is_there]], rows[is_there]
    agrees = is_there.copy()
    agrees[is_there] = ~(_scores(sets.deviations(early, late), sets.days(early, late), LEAST_DEVIATION_KM) > HELD_FROM)
    return agrees


def has_witness_before(elements: ElementSets, is_witness: BoolArray, rows: IntArray) -> BoolArray:
    """Return whether each of ``rows`` (m,) has a witness in the 30 days before it."""
    return np.asarray(_Sets(elements, is_witness).before(rows) >= 0)


class _Sets:
    """Sets of objects, and those among them that are witnesses, by their rows."""

    def __init__(self, elements: ElementSets, is_witness: BoolArray) -> None:
        self._propagator = Propagator(elements)
        self._ids, self._epoch_ns = elements.norad_id, elements.epoch_time_ns
        witness = np.flatnonzero(is_witness)
        is_new = np.append(True, np.diff(self._ids[witness]) != 0)[: len(witness)]
        is_new[1:] |= np.diff(self._epoch_ns[witness]) >= APART_NS
        self.witness = witness[is_new]

    def before(self, rows: IntArray) -> IntArray:
        """Return the place among the witnesses of the last one before each of ``rows``, -1 without one in 30 days."""
        return self._near(rows, -1)

    def following(self, rows: IntArray) -> IntArray:
        """Return the place among the witnesses of the first one after each of ``rows``, -1 without one in 30 days."""
        return self._near(rows, 1)

    def _near(self, rows: IntArray, step: int) -> IntArray:
        if not len(self.witness):
            return np.full(len(rows), -1)
        place = np.searchsorted(self.witness, rows, side="right" if step > 0 else "left") + min(step, 0)
        while True:
            is_there = (place >= 0) & (place < len(self.witness))
            found = self.witness[np.where(is_there, place, 0)]
            apart_ns = np.abs(self._epoch_ns[rows] - self._epoch_ns[found])
            is_own = is_there & (self._ids[rows] == self._ids[found])
            is_close = is_own & (apart_ns < APART_NS)
            if not is_close.any():
                return np.where(is_own & (apart_ns < HISTORY_NS), place, -1)
            place = place + step * is_close

    def first_of_history(self, rows: IntArray, before: IntArray) -> IntArray:
        """Return the place of the first witness in the 30 days before each of ``rows``; ``before``: the last one."""
        first = before.copy()
        while len(first):
            earlier = self.witness[np.maximum(first - 1, 0)]
            is_recent = self._epoch_ns[rows] - self._epoch_ns[earlier] < HISTORY_NS
            is_more = (first > 0) & (self._ids[earlier] == self._ids[rows]) & is_recent
            if not is_more.any():
                break
            first = first - is_more
        return first

    def steps(self, first: IntArray, last: IntArray) -> FloatArray:
        """Deviations (w, 3) of the witnesses from those after them, at the place of the later one.

        Those of the spans after ``first`` up to ``last`` are computed; others are NaN.
        """
        found, ends = np.full((len(self.witness), 3), np.nan), np.zeros(len(self.witness) + 1, np.int64)
        np.add.at(ends, first + 1, 1)
        np.add.at(ends, last + 1, -1)
        late = np.flatnonzero(np.cumsum(ends)[:-1] > 0)
        found[late] = self.deviations(self.witness[late - 1], self.witness[late])
        return found

    def days(self, early: IntArray, late: IntArray) -> FloatArray:
        """Days between the epochs of two rows (m,)."""
        return np.asarray((self._epoch_ns[late] - self._epoch_ns[early]) / DAY_NS)

    def sigmas_km(self, early: IntArray, late: IntArray) -> FloatArray:
        """One-sigma deviations (m, 3) of rows ``early`` from ``late`` by the errors of their regimes."""
        time_ns = self._epoch_ns[late]
        states = self._propagator.at(late, time_ns)[1:]
        both = [element_covariance_rtn(self._propagator, rows, time_ns, *states) for rows in (early, late)]
        return np.asarray(np.sqrt(np.einsum("nii->ni", both[0] + both[1])[:, :3]))

    def deviations(self, early: IntArray, late: IntArray) -> FloatArray:
        """Deviations (m, 3) of rows ``early`` from ``late`` at the epochs of ``late``, km."""
        return deviations_km(self._propagator, early, late) if len(late) else np.zeros((0, 3))


class _History:
    """A set, and the witnesses of its object in the 30 days before it."""

    def __init__(
        self, sets: _Sets, first: int, last: int, steps_km: FloatArray, row: int, deviation_km: FloatArray
    ) -> None:
        self._sets, self._row, self._rows = sets, row, sets.witness[first : last + 1].tolist()
        rows = np.array([*self._rows, row])
        early, late = rows[:-1], rows[1:]
        days, steps_km = sets.days(early, late), np.vstack([steps_km[first + 1 : last + 1], deviation_km])
        self._usual_km: FloatArray | None = None
        if len(self._rows) >= LEAST_SETS:
            own_km = np.nanmedian(grown_km(steps_km[:-1], days[:-1]), axis=0)
            self._usual_km = np.maximum(own_km, LEAST_DEVIATION_KM)
        known = self._scores(early, late, steps_km).tolist()
        self._known: dict[tuple[int, int], float] = dict(
            zip(zip(early.tolist(), late.tolist(), strict=True), known, strict=True)
        )

    def judged(self, after: int) -> tuple[int, int, float, int] | None:
        """Return the set, what it contradicts, by how much, and what it is; None: it is not held.

        ``after`` is the place of the witness that follows it.
        """
        row = self._row
        if self._agrees(self._rows[-1], row):
            return None
        reference, held = self._borne_out()
        if reference is None or self._agrees(reference, row) or (held is not None and self._is_borne_out(held, row)):
            return None
        if after < 0:
            return row, reference, self._score(reference, row), UNSETTLED
        if self._is_borne_out(row, int(self._sets.witness[after])):
            return None
        distance_km = np.abs(self._sets.deviations(np.array([reference]), np.array([row]))).max()
        return row, reference, self._score(reference, row), CROSS_TAG if distance_km > OTHER_ORBIT_KM else BAD_FIT

    def _borne_out(self) -> tuple[int | None, int | None]:
        """Return the last witness that agrees with one before it, and the one after it that contradicts it, if any."""
        reference, held, is_borne_out = self._rows[0], None, False
        for row in self._rows[1:]:
            if self._agrees(reference, row) or (held is not None and self._is_borne_out(held, row)):
                reference, held, is_borne_out = row, None, True
            else:
                held = row
        return reference if is_borne_out else None, held

    def _agrees(self, early: int, late: int) -> bool:
        """Return whether ``early`` does not contradict ``late``; without a state then it cannot."""
        return not self._score(early, late) > HELD_FROM

    def _is_borne_out(self, early: int, late: int) -> bool:
        return self._score(early, late) <= HELD_FROM

    def _score(self, early: int, late: int) -> float:
        if (early, late) not in self._known:
            pair = np.array([early]), np.array([late])
            self._known[early, late] = float(self._scores(*pair, self._sets.deviations(*pair))[0])
        return self._known[early, late]

    def _scores(self, early: IntArray, late: IntArray, deviation_km: FloatArray) -> FloatArray:
        days = self._sets.days(early, late)
        if self._usual_km is not None:
            return _scores(deviation_km, days, self._usual_km)
        by_regime = np.abs(deviation_km) / (_MEDIAN_SIGMAS * self._sets.sigmas_km(early, late))
        return np.asarray(
            np.minimum(by_regime.max(axis=1, initial=-np.inf), _scores(deviation_km, days, LEAST_DEVIATION_KM))
        )


def _scores(deviation_km: FloatArray, days: FloatArray, usual_km: FloatArray) -> FloatArray:
    """Greatest component of deviations (m, 3), times the usual one (3,), (m,); NaN where there is no state."""
    return np.asarray((grown_km(deviation_km, days) / usual_km).max(axis=1, initial=-np.inf))
