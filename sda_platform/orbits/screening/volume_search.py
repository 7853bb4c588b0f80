"""Screening in a volume: the approaches in which a pair enters it, wherever the distance itself is least.

A pair inside the volume is inside its circumscribed sphere, so that its approach is among those of the sphere. The
relative path is followed from closest approach to either side, in steps that cannot skip the volume. In the rotating
axes of the protected object its curvature is bounded by ``_largest_curvature``. So it stays beyond a plane of the
volume for a known time. docs/explanation/screening.md has the argument.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.encounter import rotating_frame_states
from sda_platform.orbits.screening.search import Events, ScreeningResult, joined, screen
from sda_platform.orbits.screening.uncertain_approaches import miss_in_sigmas
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform.units import SECOND_NS

# An object this near to the border counts as inside; else a path along it needs ever smaller steps.
_BORDER_KM = 0.001
_SHORTEST_STEP_S = 1e-6
# In so small a part of a radian about the Earth the rates of an orbit change by at most a tenth.
_LONGEST_STEP_RAD = 0.05
# Covers that tenth, J2, and other terms outside the bound.
_MARGIN = 1.5


def screen_volume(
    propagator: Propagator,
    primaries: IntArray,
    secondaries: IntArray,
    start_time_ns: int,
    end_time_ns: int,
    volume: Volume,
    terms: Terms | None = None,
    *,
    counted_ns: tuple[int, int] | None = None,
) -> ScreeningResult:
    """Find approaches in which either object is at some time inside the volume of one of the primaries.

    An approach extends within the circumscribed sphere to the instants of greatest distance between this closest
    approach and the pair's neighbouring ones. With ``terms`` (see `screen`) the path on both sides is that of the
    rows of the approach, also beyond their terms. A slow approach extends over its whole stay in the sphere. Of a
    sphere with ``sigmas`` slow approaches are those of the sphere itself.
    """
    found = screen(
        propagator,
        primaries,
        secondaries,
        start_time_ns,
        end_time_ns,
        volume.circumscribed_km,
        terms,
        counted_ns=counted_ns,
        volume=volume,
    )
    if volume.sigmas:
        far = screen(
            propagator,
            primaries,
            secondaries,
            start_time_ns,
            end_time_ns,
            volume.searched_km,
            terms,
            counted_ns=counted_ns,
            is_fast_only=True,
        )
        kept = dataclasses.replace(far, events=far.events.take(counts(propagator, far.events, volume)))
        return joined(propagator, [found, kept])
    if volume.shape == "sphere":
        return found
    events = found.events
    inside = events.relative_speed_km_s < SLOWEST_EVENT_KM_S
    for mine, other in ((events.lo, events.hi), (events.hi, events.lo)):
        rows = np.flatnonzero(np.isin(mine, primaries) & ~inside)
        inside[rows] = enters(propagator, mine[rows], other[rows], events.tca_time_ns[rows], volume)
    return dataclasses.replace(found, events=events.take(inside))


def counts(propagator: Propagator, events: Events, volume: Volume) -> npt.NDArray[np.bool_]:
    """Tell which approaches (n,) within ``searched_km`` are inside a sphere that grows by ``sigmas`` of the errors."""
    is_near = events.miss_distance_km <= volume.circumscribed_km
    far = np.flatnonzero(~is_near & (events.relative_speed_km_s >= SLOWEST_EVENT_KM_S))
    sigmas = miss_in_sigmas(propagator, events.lo[far], events.hi[far], events.tca_time_ns[far])
    is_near[far] = sigmas <= volume.sigmas
    return is_near


def enters(
    propagator: Propagator, protected: IntArray, other: IntArray, tca_time_ns: IntArray, volume: Volume
) -> npt.NDArray[np.bool_]:
    """Return whether each ``other`` enters the volume of ``protected`` in its approach at ``tca_time_ns``, all (n,)."""
    inside = np.zeros(len(tca_time_ns), dtype=np.bool_)
    for direction in (1, -1):
        active = np.flatnonzero(~inside)
        since_tca_s = np.zeros(len(tca_time_ns))
        while len(active):
            time_ns = tca_time_ns[active] + np.rint(since_tca_s[active] * SECOND_NS).astype(np.int64)
            error_1, r1, v1 = propagator.at(protected[active], time_ns)
            error_2, r2, v2 = propagator.at(other[active], time_ns)
            place, rate = rotating_frame_states(r1, v1, r2, v2)
            beyond_km, normal = volume.planes(place)
            is_inside = beyond_km.max(axis=-1) <= _BORDER_KM
            inside[active[is_inside]] = True
            outward_km_s = direction * rate
            recedes = np.einsum("ni,ni->n", place, outward_km_s) >= 0
            goes_on = ~is_inside & ((error_1 | error_2) == 0) & (recedes | (since_tca_s[active] == 0))
            goes_on &= np.linalg.norm(place, axis=-1) <= volume.circumscribed_km
            turn_rad_s, bend_km_s2 = _largest_curvature(r1, v1, r2, v2, volume.circumscribed_km)
            leaving_km_s = np.einsum("nki,ni->nk", normal, outward_km_s)
            free_s = _time_beyond_s(beyond_km, leaving_km_s, bend_km_s2)
            step_s = np.clip(free_s, _SHORTEST_STEP_S, _LONGEST_STEP_RAD / turn_rad_s)
            active = active[goes_on]
            since_tca_s[active] += direction * step_s[goes_on]
    return inside


def _time_beyond_s(beyond_km: FloatArray, leaving_km_s: FloatArray, bend_km_s2: FloatArray) -> FloatArray:
    """Return how long (s) an object this far beyond planes (n, k), with these approach speeds, stays beyond one of
    them.
    """
    bend = bend_km_s2[:, None]
    root = np.sqrt(np.maximum(leaving_km_s**2 + 2 * bend * beyond_km, 0.0))
    return np.asarray(np.where(beyond_km > 0, (leaving_km_s + root) / bend, 0.0).max(axis=-1))


def _largest_curvature(
    r1: FloatArray, v1: FloatArray, r2: FloatArray, v2: FloatArray, distance_km: float
) -> tuple[FloatArray, FloatArray]:
    """Largest rotation rate of either object about the Earth, rad/s, (n,), and bound of the relative acceleration,
    km/s².

    The bound holds in the first object's rotating axes while both are within ``distance_km``: tide, Coriolis,
    centrifugal and Euler force.
    """
    radius = np.minimum(np.linalg.norm(r1, axis=-1), np.linalg.norm(r2, axis=-1))
    turn = np.maximum(np.linalg.norm(v1, axis=-1), np.linalg.norm(v2, axis=-1)) / radius
    tide = 2 * MU_EARTH_KM3_S2 / radius**3 * distance_km
    speed = np.linalg.norm(v2 - v1, axis=-1) + turn * distance_km + tide * _LONGEST_STEP_RAD / turn
    return turn, np.asarray(_MARGIN * (tide + 2 * turn * speed + 3 * turn**2 * distance_km))
