"""Approaches slower than 10 m/s: neighbours in the geostationary ring, inspections, drifting debris of one launch.

A slow pair stays near for minutes to days, and its distance has several minima meanwhile. A *stay* is a time without
interruption within the threshold. Its least distance is the approach, if it is a minimum slower than 10 m/s. A pair
that is near for a day before and after it moves together (docked, in formation). It has no approach. The
result depends on the pair and the time only, never on the window. docs/explanation/screening.md has the argument.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.closest_approach import (
    SLOWEST_EVENT_KM_S,
    RefinedApproaches,
    passes_joined,
)
from sda_platform.orbits.screening.encounter import rotating_frame_states
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import DAY_NS, SECOND_NS

TOGETHER_KM = 5.0
"""A pair that is never farther apart than this within a day of a minimum moves together."""
NEIGHBOURHOOD_NS = DAY_NS
"""A stay is examined so long before and after a minimum."""
SAMPLE_S = 60

_SAMPLE_NS = SAMPLE_S * SECOND_NS
# Half a sample at the limit of speed: how much farther than its minimum the nearest sample of a slow pair can be.
_BETWEEN_SAMPLES_KM = SLOWEST_EVENT_KM_S * SAMPLE_S / 2
_PAIRS_AT_ONCE = 64
# Distances this near are equal. Of equal minima, as those of a repeating path, the earlier one is the approach.
_EQUAL_KM = 1e-4
# A parabola through distances so far apart is exact to a tenth of a second, and their rounding errors do not matter.
_PARABOLA_NS = 10 * SECOND_NS


def slow_approaches(
    propagator: Propagator,
    pairs: IntArray,
    start_ns: int,
    end_ns: int,
    volume: Volume,
    protected: npt.NDArray[np.bool_],
    terms: Terms | None = None,
) -> RefinedApproaches:
    """Return the slow approaches of ``pairs`` (p, 2; rows of the propagator, each pair once) with TCA in [start, end).

    The stays are those in the sphere around ``volume``. An approach counts if the pair is inside the volume of a
    protected object (``protected``: by row of the propagator) at a sample of the stay. With ``terms`` only the times
    at which both rows are in force belong to a stay.
    """
    chosen = [_least(propagator, pairs[:0], np.zeros(0, np.int64))]
    for begin in range(0, len(pairs), _PAIRS_AT_ONCE):
        part = pairs[begin : begin + _PAIRS_AT_ONCE]
        near = _Neighbourhoods(propagator, part, start_ns, end_ns, volume, protected, terms)
        chosen.append(near.minima.take(np.flatnonzero(near.approaches())))
    return passes_joined(chosen)


class _Neighbourhoods:
    """The distances of some pairs over a window and a day on either side: samples (p, t), and all minima (m,)."""

    def __init__(
        self,
        propagator: Propagator,
        pairs: IntArray,
        start_ns: int,
        end_ns: int,
        volume: Volume,
        protected: npt.NDArray[np.bool_],
        terms: Terms | None,
    ) -> None:
        self._span_ns = start_ns, end_ns
        self._limit_km = volume.circumscribed_km
        first = -(-(start_ns - NEIGHBOURHOOD_NS) // _SAMPLE_NS)
        last = (end_ns + NEIGHBOURHOOD_NS) // _SAMPLE_NS
        self._first, self._time_ns = first, np.arange(first, last + 1, dtype=np.int64) * _SAMPLE_NS
        rows, place = np.unique(pairs, return_inverse=True)
        error, r, v = propagator.take(rows).grid(self._time_ns)
        mine, other = place.reshape(-1, 2).T
        with np.errstate(invalid="ignore"):
            self._km = np.linalg.norm(r[other] - r[mine], axis=-1)
        self._km[(error[mine] | error[other]) != 0] = np.nan
        if terms is not None:
            from_ns = np.maximum(*terms.from_ns[pairs.T])[:, None]
            until_ns = np.minimum(*terms.until_ns[pairs.T])[:, None]
            self._km[(self._time_ns < from_ns) | (self._time_ns >= until_ns)] = np.nan
        self._separate = self._km > TOGETHER_KM
        self._inside = self._km <= self._limit_km
        self._is_sphere = volume.shape == "sphere"
        self._in_volume = np.zeros_like(self._inside)
        if not self._is_sphere:
            for one, two, counts in ((mine, other, protected[pairs[:, 0]]), (other, mine, protected[pairs[:, 1]])):
                at = np.nonzero(self._inside & counts[:, None])
                centre, object_ = (one[at[0]], at[1]), (two[at[0]], at[1])
                position, _ = rotating_frame_states(r[centre], v[centre], r[object_], v[object_])
                self._in_volume[at] |= volume.planes(position)[0].max(axis=-1) <= 0
        self.pair, self.minima = self._minima(propagator, pairs)

    def _minima(self, propagator: Propagator, pairs: IntArray) -> tuple[IntArray, RefinedApproaches]:
        """All minima within the threshold of pairs that are ever separate, each with its pair."""
        reachable = float(np.hypot(self._limit_km, _BETWEEN_SAMPLES_KM))
        middle = self._km[:, 1:-1]
        lowest = (middle <= self._km[:, :-2]) & (middle < self._km[:, 2:]) & (middle <= reachable)
        pair, sample = np.nonzero(lowest & self._separate.any(axis=1)[:, None])
        found = _least(propagator, pairs[pair], self._time_ns[sample + 1])
        chosen = np.flatnonzero((found.error == 0) & (found.distance_km <= self._limit_km))
        return pair[chosen], found.take(chosen)

    def approaches(self) -> npt.NDArray[np.bool_]:
        """(m,) which minima are slow approaches."""
        start_ns, end_ns = self._span_ns
        slow = self.minima.speed_km_s < SLOWEST_EVENT_KM_S
        slow &= (self.minima.time_ns >= start_ns) & (self.minima.time_ns < end_ns)
        for number in np.flatnonzero(slow).tolist():
            slow[number] = self._is_approach(number)
        return slow

    def _is_approach(self, number: int) -> bool:
        """Return whether a minimum is the least of its stay within a day, is of the volume, and its pair separates."""
        pair, time_ns = self.pair[number], int(self.minima.time_ns[number])
        begin = -(-(time_ns - NEIGHBOURHOOD_NS) // _SAMPLE_NS) - self._first
        end = (time_ns + NEIGHBOURHOOD_NS) // _SAMPLE_NS - self._first + 1
        if not self._separate[pair, begin:end].any():
            return False
        before = time_ns // _SAMPLE_NS - self._first
        inside = self._inside[pair]
        left = before + 1 - run_length(inside[begin : before + 1][::-1])
        right = before + 1 + run_length(inside[before + 1 : end])
        least_km = float(self.minima.distance_km[number])
        samples_km = self._km[pair, left:right]
        if len(samples_km) and samples_km.min() < least_km - _EQUAL_KM:
            return False
        same = (self.pair == pair) & (self.minima.time_ns >= self._time_ns[max(left - 1, 0)])
        same &= self.minima.time_ns <= self._time_ns[min(right, len(self._time_ns) - 1)]
        same &= np.abs(self.minima.time_ns - time_ns) <= NEIGHBOURHOOD_NS
        rivals = self.minima.distance_km[same] - least_km
        earlier = self.minima.time_ns[same] < time_ns
        if (rivals < -_EQUAL_KM).any() or (earlier & (np.abs(rivals) <= _EQUAL_KM)).any():
            return False
        return bool(self._is_sphere or self._in_volume[pair, left:right].any())


def _least(propagator: Propagator, pairs: IntArray, time_ns: IntArray) -> RefinedApproaches:
    """Return the minima of distance near ``time_ns`` (m,) of ``pairs`` (m, 2), by parabolas through squared distances.

    SGP4's velocity is not quite the derivative of its position. The zero of r.v of a slow pair is therefore off the
    minimum by up to a minute.
    """
    with np.errstate(all="ignore"):
        for width_ns in (_SAMPLE_NS, _PARABOLA_NS, _PARABOLA_NS):
            before, here, after = (
                _distance_km(propagator, pairs, time_ns + sign * width_ns) ** 2 for sign in (-1, 0, 1)
            )
            shift = np.nan_to_num(0.5 * (before - after) / np.abs(before - 2 * here + after))
            time_ns = time_ns + np.rint(np.clip(shift, -1, 1) * width_ns).astype(np.int64)
    error_1, r1, v1 = propagator.at(pairs[:, 0], time_ns)
    error_2, r2, v2 = propagator.at(pairs[:, 1], time_ns)
    return RefinedApproaches(
        pairs[:, 0],
        pairs[:, 1],
        time_ns,
        np.linalg.norm(r2 - r1, axis=-1),
        np.linalg.norm(v2 - v1, axis=-1),
        np.ones(len(pairs), dtype=np.bool_),
        np.where(error_1 != 0, error_1, error_2),
        np.full(len(pairs), -1),
    )


def _distance_km(propagator: Propagator, pairs: IntArray, time_ns: IntArray) -> FloatArray:
    (_, r1, _), (_, r2, _) = propagator.at(pairs[:, 0], time_ns), propagator.at(pairs[:, 1], time_ns)
    return np.asarray(np.linalg.norm(r2 - r1, axis=-1))


def run_length(inside: npt.NDArray[np.bool_]) -> int:
    """Count the first samples that are inside without interruption."""
    outside = np.flatnonzero(~inside)
    return int(outside[0]) if len(outside) else len(inside)
