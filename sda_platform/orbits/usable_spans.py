"""Whether an element set is usable at a time: the judgement beside SGP4's own error code.

Drag enters SGP4 by polynomials in time. Beyond their range SGP4 accepts a decayed set again, and gives states that no
orbit has. So a set that is refused once is refused from there on, away from its epoch in both directions. Refused is
what SGP4 refuses, a state beyond what the elements allow, and a time after the decay that the source states. So are
elements that lead through the Earth.

The judgement depends on the set and the time alone, not on what else is asked. The bounds of `secular_drag` prove most
sets harmless over months. The others are followed through SGP4, outwards from the epoch, at the first need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from sgp4.api import Satrec

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.elements import FOREVER_NS, WGS72_MU_KM3_S2, WGS72_RADIUS_KM, ElementSets, semi_major_axis_km
from sda_platform.orbits.secular_drag import secular_drag
from sda_platform.units import DAY_MIN, MINUTE_NS

STATED_DECAY: Final = 8
IMPOSSIBLE: Final = 9
BEFORE, AFTER = 0, 1
"""Sides of an epoch."""

_MARGIN = 1.1
_DEEP_BELOW_REV_PER_DAY, _MOST_PULL = 6.4, 0.2
_FIRST_PROOFS_MIN = (2 * DAY_MIN, 8 * DAY_MIN, 16 * DAY_MIN, 64 * DAY_MIN)
_FIRST_STRETCH_MIN = 2 * DAY_MIN
_INSTANT_MIN = 1 / 60
_MOST_REVOLUTIONS = 64
# SGP4's published verification goes to 0.995. Above, an orbit within its reach leads through the Earth, and the theory
# gives it any rate, or none.
_MOST_ECCENTRICITY = 0.996
# Dense about the perigee, where a decaying orbit is refused first.
_HALF = np.pi * (np.arange(1, 13) / 12) ** 2
_ECCENTRIC_ANOMALY = np.concatenate([-_HALF[:-1], [0.0], _HALF])


class UsableSpans:
    """For each of n sets the span about its epoch in which it is usable, found as far as it was asked for."""

    def __init__(self, elements: ElementSets) -> None:
        self._epoch_ns = elements.epoch_time_ns
        self._drag = secular_drag(elements)
        with np.errstate(all="ignore"):
            axis_km, e = semi_major_axis_km(elements), elements.eccentricity
            # Sun and Moon change the shape of a high orbit, but not its energy.
            pulled = np.where(elements.mean_motion_rev_per_day < _DEEP_BELOW_REV_PER_DAY, _MOST_PULL, 0.0)
            self._farthest_km = _MARGIN * axis_km * (1 + np.minimum(e + pulled, 1))
            perigee_km = np.maximum(axis_km * (1 - np.minimum(e + pulled, 1)), WGS72_RADIUS_KM)
            self._fastest_km_s = _MARGIN * np.sqrt(WGS72_MU_KM3_S2 * (2 / perigee_km - 1 / axis_km))
            self._largest_axis_km = _MARGIN * axis_km
        self._eccentricity = e
        self._decay_min = np.full(len(elements), np.inf)
        states_decay = elements.decay_time_ns < FOREVER_NS
        span_ns = elements.decay_time_ns[states_decay] - self._epoch_ns[states_decay]
        self._decay_min[states_decay] = span_ns / MINUTE_NS
        self._harmless_min = np.full(len(elements), -1.0)
        self._proven_min = np.full(len(elements), -1.0)
        for proof_min in _FIRST_PROOFS_MIN:
            self._prove(np.arange(len(elements)), np.full(len(elements), proof_min))
        self._is_sharpened = np.zeros(len(elements), np.bool_)
        self._searched_min = np.zeros((2, len(elements)))
        self._refused_min = np.full((2, len(elements)), np.inf)
        self._code = np.zeros((2, len(elements)), np.uint8)

    def doubtful(self, rows: IntArray, time_ns: IntArray | np.int64 | int) -> npt.NDArray[np.bool_]:
        """Return whether the sets ``rows`` (m,) are not proven usable at ``time_ns``, (m,) or a number."""
        from_epoch_min = np.abs(time_ns - self._epoch_ns[rows]) / MINUTE_NS
        found = np.flatnonzero(from_epoch_min > self._harmless_min[rows])
        if len(found):
            self._prove(rows[found], _stretch_end(from_epoch_min[found]))
        is_doubtful = np.zeros(len(rows), np.bool_)
        is_doubtful[found] = from_epoch_min[found] > self._harmless_min[rows[found]]
        return is_doubtful

    def judged(
        self,
        satrec_of: Callable[[int], Satrec],
        rows: IntArray,
        time_ns: IntArray,
        error: ErrorArray,
        r_km: FloatArray,
        v_km_s: FloatArray,
    ) -> ErrorArray:
        """Return the codes (m,) of states that SGP4 gave with the codes ``error`` (m,) for the sets ``rows`` (m,)."""
        with np.errstate(all="ignore"):
            is_wrong = self._is_impossible(rows, r_km, v_km_s)
        judged = np.where((error == 0) & is_wrong, np.uint8(IMPOSSIBLE), error)
        from_epoch_min = (time_ns - self._epoch_ns[rows]) / MINUTE_NS
        for side, distance in ((BEFORE, -from_epoch_min), (AFTER, from_epoch_min)):
            on_side = np.flatnonzero(distance >= 0)
            asked, place = np.unique(rows[on_side], return_inverse=True)
            farthest = np.zeros(len(asked))
            np.maximum.at(farthest, place, distance[on_side])
            self._sharpen(satrec_of, asked)
            self._prove(asked, _stretch_end(farthest))
            for row, upto_min in zip(asked.tolist(), farthest.tolist(), strict=True):
                self._follow(satrec_of, row, side, upto_min)
            chosen = rows[on_side]
            is_beyond = distance[on_side] >= self._refused_min[side, chosen]
            codes = np.where(error[on_side] == 0, self._code[side, chosen], error[on_side])
            judged[on_side] = np.where(is_beyond, codes, judged[on_side])
        return np.where((judged == 0) & (from_epoch_min >= self._decay_min[rows]), np.uint8(STATED_DECAY), judged)

    def ends(
        self, satrec_of: Callable[[int], Satrec], rows: IntArray, start_ns: int, end_ns: int
    ) -> tuple[IntArray, IntArray, ErrorArray]:
        """Return the part of [start, end] in which each of ``rows`` (m,) is usable, and the code of what ends it (0:
        nothing).

        Where a set is usable at no time of it, the part ends at its beginning.
        """
        from_ns, until_ns = np.full(len(rows), start_ns), np.full(len(rows), end_ns)
        code = np.zeros(len(rows), np.uint8)
        is_doubtful = self.doubtful(rows, start_ns) | self.doubtful(rows, end_ns)
        self._sharpen(satrec_of, rows[is_doubtful])
        for place in np.flatnonzero(is_doubtful).tolist():
            row = int(rows[place])
            epoch_ns = int(self._epoch_ns[row])
            for side, upto_ns in ((BEFORE, epoch_ns - start_ns), (AFTER, end_ns - epoch_ns)):
                if upto_ns >= 0:
                    self._follow(satrec_of, row, side, upto_ns / MINUTE_NS)
            first = epoch_ns - _to_ns(self._refused_min[BEFORE, row])
            decay_min, refused_min = self._decay_min[row], self._refused_min[AFTER, row]
            last = epoch_ns + _to_ns(min(decay_min, refused_min))
            if last < end_ns:
                code[place] = STATED_DECAY if decay_min < refused_min else self._code[AFTER, row]
            elif first >= start_ns and np.isfinite(self._refused_min[BEFORE, row]):
                code[place] = self._code[BEFORE, row]
            from_ns[place] = min(max(start_ns, first), end_ns)
            until_ns[place] = max(min(end_ns, last), from_ns[place])
        return from_ns, until_ns, code

    def _is_impossible(self, rows: IntArray, r_km: FloatArray, v_km_s: FloatArray) -> npt.NDArray[np.bool_]:
        distance, speed = np.linalg.norm(r_km, axis=-1), np.linalg.norm(v_km_s, axis=-1)
        fits_energy = speed**2 <= WGS72_MU_KM3_S2 * (2 / distance - 1 / self._largest_axis_km[rows])
        fits = fits_energy & (distance <= self._farthest_km[rows]) & (speed <= self._fastest_km_s[rows])
        return np.asarray(~fits)

    def _follow(self, satrec_of: Callable[[int], Satrec], row: int, side: int, upto_min: float) -> None:
        """Ask SGP4 outwards from the epoch until ``upto_min`` minutes from it, or until the set is refused."""
        if upto_min <= self._harmless_min[row] or upto_min <= self._searched_min[side, row]:
            return
        if self._eccentricity[row] > _MOST_ECCENTRICITY:
            self._searched_min[side, row], self._refused_min[side, row] = np.inf, 0.0
            self._code[side, row] = IMPOSSIBLE
        while self._searched_min[side, row] < upto_min and np.isinf(self._refused_min[side, row]):
            begin = self._searched_min[side, row]
            end = float(_stretch_end(np.array([2 * begin]))[0])
            self._prove(np.array([row]), np.array([end]))
            if end > self._harmless_min[row]:
                found = self._first_refusal(satrec_of(row), row, side, begin, end)
                if found is not None:
                    self._refused_min[side, row], self._code[side, row] = found
            self._searched_min[side, row] = end

    def _sharpen(self, satrec_of: Callable[[int], Satrec], rows: IntArray) -> None:
        """Replace the bounds of the pull of Sun and Moon on ``rows`` (m,) by those of SGP4's own terms, once."""
        fresh = rows[~self._is_sharpened[rows]]
        if len(fresh):
            self._drag.sharpen(fresh, [satrec_of(row) for row in fresh.tolist()])
            self._is_sharpened[fresh] = True
            self._proven_min[fresh] = -1.0

    def _prove(self, rows: IntArray, minutes: FloatArray) -> None:
        """Note of ``rows`` (m,) which are harmless within ``minutes`` (m,) of their epochs."""
        fresh = minutes > self._proven_min[rows]
        if not fresh.any():
            return
        rows, minutes = rows[fresh], minutes[fresh]
        is_proven = self._drag.take(rows).is_harmless(minutes)
        np.maximum.at(self._proven_min, rows, minutes)
        np.maximum.at(self._harmless_min, rows[is_proven], minutes[is_proven])
        np.minimum.at(self._harmless_min, rows, self._decay_min[rows])

    def _first_refusal(
        self, satrec: Satrec, row: int, side: int, begin: float, end: float
    ) -> tuple[float, np.uint8] | None:
        """Return the distance from the epoch and the code of the first refusal in [begin, end], to a second."""
        minutes, is_complete = self._samples(satrec, row, side, begin, end)
        codes = self._codes(satrec, row, side, minutes)
        wrong = np.flatnonzero(codes)
        if not len(wrong):
            return None
        first, code = int(wrong[0]), codes[wrong[0]]
        if first == 0:
            return begin, code
        begin, end = float(minutes[first - 1]), float(minutes[first])
        if not is_complete:
            return self._first_refusal(satrec, row, side, begin, end)
        while end - begin > _INSTANT_MIN:
            middle = 0.5 * (begin + end)
            found = self._codes(satrec, row, side, np.array([middle]))[0]
            begin, end, code = (begin, middle, found) if found else (middle, end, code)
        return end, code

    def _samples(self, satrec: Satrec, row: int, side: int, begin: float, end: float) -> tuple[FloatArray, bool]:
        """Distances from the epoch to ask at, and whether they include every revolution; dense about the perigees."""
        # Of an orbit through the Earth SGP4's rate may be many times the mean motion, with revolutions without number.
        period = 2 * np.pi / max(min(2 * satrec.no_kozai, satrec.mdot), 1e-9)
        sign = -1.0 if side == BEFORE else 1.0
        e = min(float(np.nan_to_num(self._eccentricity[row])), 0.999)
        anomaly = np.mod(sign * (_ECCENTRIC_ANOMALY - e * np.sin(_ECCENTRIC_ANOMALY) - satrec.mo), 2 * np.pi)
        offsets = np.sort(anomaly / (2 * np.pi) * period)
        first, last = int(begin // period), int(end // period)
        count = last - first + 1
        revolutions = np.unique(np.linspace(first, last, min(count, _MOST_REVOLUTIONS)).round())
        within = (revolutions[:, None] * period + offsets).ravel()
        within = within[(within > begin) & (within < end)]
        return np.concatenate([[begin], within, [end]]), count <= _MOST_REVOLUTIONS

    def _codes(self, satrec: Satrec, row: int, side: int, minutes: FloatArray) -> ErrorArray:
        days = (-minutes if side == BEFORE else minutes) / DAY_MIN
        whole = np.floor(days)
        day, fraction = satrec.jdsatepoch + whole, satrec.jdsatepochF + (days - whole)
        error, r_km, v_km_s = satrec.sgp4_array(day, fraction)
        rows = np.full(len(minutes), row)
        with np.errstate(all="ignore"):
            is_wrong = self._is_impossible(rows, r_km, v_km_s)
        return np.where((error == 0) & is_wrong, np.uint8(IMPOSSIBLE), error).astype(np.uint8)


def _stretch_end(minutes: FloatArray) -> FloatArray:
    """Return the end of the stretch that holds each distance from the epoch (m,): two days, four, eight."""
    return np.asarray(_FIRST_STRETCH_MIN * 2.0 ** np.ceil(np.log2(np.maximum(minutes / _FIRST_STRETCH_MIN, 1))))


def _to_ns(minutes: float) -> int:
    return FOREVER_NS if np.isinf(minutes) else round(minutes * MINUTE_NS)
