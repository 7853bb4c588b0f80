"""Fine half of screening: the exact time and distance of closest approach.

Keeps the samples whose relative motion can come within the threshold around the sample, and finds the instant of
stationary distance with SGP4 itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.broad_phase import Nearby, gravity_departure_km
from sda_platform.orbits.screening.interpolated_paths import STEP_S, InterpolatedEphemerides, step_time_ns
from sda_platform.orbits.screening.path_bounds import SLOPE_ERROR_PER_S, STRAIGHT_ERROR_RATIO, PathBounds
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform.units import SECOND_NS

SLOWEST_EVENT_KM_S = 0.010
"""A minimum of distance at a lower relative speed is a slow approach, or that of a pair that moves together."""

_NEWTON_STEPS = 12
_NEWTON_TOLERANCE_NS = 100
_MILLISECOND_NS = 1_000_000
_LONGEST_NEWTON_STEP_S = 60.0


@dataclasses.dataclass(frozen=True, eq=False)
class Seeds:
    """Pairs (positions in the propagator) and instants near which their distance may be least, each (m,)."""

    first: IntArray
    second: IntArray
    time_ns: IntArray

    def take(self, index: IntArray) -> Seeds:
        return Seeds(self.first[index], self.second[index], self.time_ns[index])


@dataclasses.dataclass(frozen=True, eq=False)
class RefinedApproaches:
    """End points of the search for least distance, each (m,).

    ``error`` is an SGP4 code; where set, ``failed_index`` is the object it belongs to (-1 otherwise) and distances
    are NaN.
    """

    first: IntArray
    second: IntArray
    time_ns: IntArray
    distance_km: FloatArray
    speed_km_s: FloatArray
    is_minimum: npt.NDArray[np.bool_]
    error: ErrorArray
    failed_index: IntArray

    def take(self, index: IntArray) -> RefinedApproaches:
        return RefinedApproaches(*(getattr(self, field.name)[index] for field in dataclasses.fields(self)))


def passes_joined(parts: Sequence[RefinedApproaches]) -> RefinedApproaches:
    """All approaches of ``parts``, in their order."""
    names = [field.name for field in dataclasses.fields(RefinedApproaches)]
    return RefinedApproaches(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def seed_approaches(
    primaries: InterpolatedEphemerides,
    secondaries: InterpolatedEphemerides,
    nearby: Nearby,
    bounds: tuple[PathBounds, PathBounds],
    threshold_km: float,
) -> tuple[Seeds, Seeds, Seeds]:
    """Instants to refine, instants at which a pair moves together, and instants near which it may do so.

    Args:
        bounds: those of the primaries and of the secondaries.

    Returns:
        Seeds of close approaches, at the linearly predicted minimum; samples (within ``threshold_km`` and slower than
        SLOWEST_EVENT_KM_S) of pairs that move together; the samples nearest to every slower minimum within
        ``threshold_km``, and some more.
    """
    off_km = bounds[0].error_km[nearby.primary] + bounds[1].error_km[nearby.secondary]
    first_r, first_v = primaries.at_steps(nearby.primary, nearby.interval, nearby.step)
    second_r, second_v = secondaries.at_steps(nearby.secondary, nearby.interval, nearby.step)
    dr_km, dv_km_s = second_r - first_r, second_v - first_v
    distance_km, speed_km_s = np.linalg.norm(dr_km, axis=-1), np.linalg.norm(dv_km_s, axis=-1)
    together = (distance_km <= threshold_km) & (speed_km_s < SLOWEST_EVENT_KM_S)
    bent_km = gravity_departure_km(np.maximum(distance_km, threshold_km))
    turned_km_s = SLOPE_ERROR_PER_S * off_km + 2 * bent_km / (STEP_S / 2)
    moving = np.maximum(speed_km_s, turned_km_s)
    offset_s = -np.einsum("mi,mi->m", dr_km, dv_km_s) / moving**2
    # How wrong that instant can be: for a slow pair, much. Neighbouring samples then seed the same minimum.
    strayed_km = bent_km + STRAIGHT_ERROR_RATIO * off_km
    half_s = STEP_S / 2 + (threshold_km * turned_km_s / moving + strayed_km) / moving
    inside_s = np.clip(offset_s, -half_s, half_s)
    least_km = np.linalg.norm(dr_km + dv_km_s * inside_s[:, None], axis=-1)
    worth = (least_km <= threshold_km + strayed_km) & (np.abs(offset_s) <= half_s)
    worth &= speed_km_s >= SLOWEST_EVENT_KM_S - turned_km_s
    slow = distance_km <= threshold_km + SLOWEST_EVENT_KM_S * STEP_S / 2 + strayed_km
    slow &= speed_km_s < SLOWEST_EVENT_KM_S + turned_km_s
    time_ns = step_time_ns(primaries.knot_time_ns, nearby.interval, nearby.step)
    guess_ns = time_ns + np.round(np.clip(offset_s, -STEP_S, STEP_S) * SECOND_NS).astype(np.int64)
    first, second = primaries.index[nearby.primary], secondaries.index[nearby.secondary]
    samples = Seeds(first, second, time_ns)
    return (
        Seeds(first, second, guess_ns).take(np.flatnonzero(worth)),
        samples.take(np.flatnonzero(together)),
        samples.take(np.flatnonzero(slow)),
    )


def refine(propagator: Propagator, seeds: Seeds) -> RefinedApproaches:
    """Newton's method on r.v = 0 with SGP4 at every step; under a microsecond off for fast passes."""
    time_ns = seeds.time_ns.copy()
    active = np.arange(len(time_ns))
    for _ in range(_NEWTON_STEPS):
        if not len(active):
            break
        step_ns = _newton_step_ns(propagator, seeds.take(active), time_ns[active])
        time_ns[active] += step_ns
        active = active[np.abs(step_ns) > _NEWTON_TOLERANCE_NS]
    # The last step starts from a whole millisecond, so that every seed of a pass ends at the same nanosecond.
    time_ns = (time_ns + _MILLISECOND_NS // 2) // _MILLISECOND_NS * _MILLISECOND_NS
    time_ns += _newton_step_ns(propagator, seeds, time_ns)
    dr, dv, slope, error, failed = _relative(propagator, seeds.first, seeds.second, time_ns)
    settled = np.ones(len(time_ns), dtype=np.bool_)
    settled[active] = False
    return RefinedApproaches(
        seeds.first,
        seeds.second,
        time_ns,
        np.linalg.norm(dr, axis=-1),
        np.linalg.norm(dv, axis=-1),
        settled & (slope > 0),
        error,
        failed,
    )


def _newton_step_ns(propagator: Propagator, seeds: Seeds, time_ns: IntArray) -> IntArray:
    dr, dv, slope, _, _ = _relative(propagator, seeds.first, seeds.second, time_ns)
    with np.errstate(all="ignore"):
        step_s = np.nan_to_num(-np.einsum("mi,mi->m", dr, dv) / np.abs(slope))
    step_s = np.clip(step_s, -_LONGEST_NEWTON_STEP_S, _LONGEST_NEWTON_STEP_S)
    return np.asarray(np.round(step_s * SECOND_NS), dtype=np.int64)


def _relative(
    propagator: Propagator, first: IntArray, second: IntArray, time_ns: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, ErrorArray, IntArray]:
    """Relative position, velocity, d(r.v)/dt, error code and the object it belongs to (-1: none)."""
    error_1, r1, v1 = propagator.at(first, time_ns)
    error_2, r2, v2 = propagator.at(second, time_ns)
    dr, dv = r2 - r1, v2 - v1
    gravity = _gravity(r2) - _gravity(r1)
    slope = np.einsum("mi,mi->m", dv, dv) + np.einsum("mi,mi->m", dr, gravity)
    error = np.where(error_1 != 0, error_1, error_2)
    failed = np.where(error_1 != 0, first, np.where(error_2 != 0, second, -1))
    return dr, dv, slope, error, failed


def _gravity(r_km: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(-MU_EARTH_KM3_S2 * r_km / np.linalg.norm(r_km, axis=-1, keepdims=True) ** 3)
