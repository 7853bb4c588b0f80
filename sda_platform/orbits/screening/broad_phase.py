"""Coarse half of screening: which pairs come near each other, and roughly when.

Interpolated paths are sampled every thirty seconds. At each sample a cell list (`near_pairs`) finds the near pairs.
Times are multiples of the spacing since the Unix epoch for any window, so that neighbouring windows share samples. What
counts as an event is decided in ``closest_approach``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.interpolated_paths import (
    KNOT_S,
    STEP_FRACTION,
    STEP_S,
    InterpolatedEphemerides,
    hermite_basis,
    hermite_slope,
)
from sda_platform.orbits.screening.near_pairs import near_pairs
from sda_platform.orbits.screening.path_bounds import (
    ORBIT_PAD_KM,
    STRAIGHT_ERROR_RATIO,
    PathBounds,
    osculating_orbit,
    radius_limits_km,
)
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

# J2 and J3 move the apogee of an eccentric orbit by up to one per cent of its axis in two hours.
_SIEVE_APOGEE_PAD_RATIO = 0.02
# Relative acceleration per distance is greatest along the vertical at the Earth's surface.
_STRONGEST_TIDE_PER_S2 = 2 * MU_EARTH_KM3_S2 / 6378.0**3


@dataclasses.dataclass(frozen=True, eq=False)
class Nearby:
    """Samples at which a pair is near, each (m,): rows of the two ephemerides, knot interval, step in it."""

    primary: IntArray
    secondary: IntArray
    interval: IntArray
    step: IntArray


def sieve(
    propagator: Propagator, index: IntArray, primaries: InterpolatedEphemerides, time_ns: int, threshold_km: float
) -> IntArray:
    """Return the part of ``index`` whose perigee-apogee shell comes within ``threshold_km`` of a primary's near
    ``time_ns``.

    Objects that SGP4 rejects at ``time_ns`` are kept, so that their failure is reported.
    """
    error, r_km, v_km_s = propagator.at(index, np.int64(time_ns))
    axis_km, eccentricity = osculating_orbit(r_km, v_km_s)
    perigee_km = axis_km * (1 - eccentricity)
    apogee_km = np.where(axis_km > 0, axis_km * (1 + eccentricity + _SIEVE_APOGEE_PAD_RATIO), np.inf)
    low_km, high_km = radius_limits_km(primaries)
    pad_km = threshold_km + ORBIT_PAD_KM
    shells = np.stack([low_km - pad_km, high_km + pad_km], axis=-1)
    meets = error != 0
    for low, high in _merged(shells[np.isfinite(shells).all(axis=-1)]):
        meets |= (perigee_km <= high) & (apogee_km >= low)
    kept: IntArray = index[meets]
    return kept


def find_nearby(
    primaries: InterpolatedEphemerides,
    secondaries: InterpolatedEphemerides,
    bounds: tuple[PathBounds, PathBounds],
    *,
    threshold_km: float,
) -> Nearby:
    """Return the samples around which a pair may pass within the threshold.

    ``bounds``: those of both ephemerides. An object is never paired with itself; a pair of two
    primaries is reported once.
    """
    same = secondaries is primaries
    parts = []
    for interval in range(len(primaries.knot_time_ns) - 1):
        mine = _Sampled.of(primaries, bounds[0], interval)
        theirs = mine if same else _Sampled.of(secondaries, bounds[1], interval)
        found = near_pairs(
            (mine.ends, theirs.ends),
            (primaries.index, secondaries.index),
            (mine.reach_km, theirs.reach_km),
            (mine.error_km, theirs.error_km),
            (hermite_basis(STEP_FRACTION), hermite_slope(STEP_FRACTION) / KNOT_S),
            threshold_km=threshold_km + gravity_departure_km(threshold_km + mine.farthest_km + theirs.farthest_km),
            half_step_s=STEP_S / 2,
        )
        parts.append((found[0], found[1], np.full(len(found[0]), interval), found[2]))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Nearby(nothing, nothing, nothing, nothing)
    return Nearby(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def gravity_departure_km(distance_km: Any) -> Any:
    """Departure (km) of two objects' relative motion from a straight line within half a step, due to gravity."""
    return _STRONGEST_TIDE_PER_S2 * distance_km * (STEP_S / 2) ** 2 / 2


@dataclasses.dataclass(frozen=True, eq=False)
class _Sampled:
    """Rows of ``InterpolatedEphemerides`` in one knot interval, as input of the cell list, each (n,) but the ends.

    ``reach_km`` bounds an object's distance, within half a step, from its sampled position. ``error_km`` bounds its
    distance from a straight line through the sample, beyond the effect of gravity.
    """

    ends: npt.NDArray[np.float32]
    reach_km: FloatArray
    error_km: FloatArray

    @classmethod
    def of(cls, tracks: InterpolatedEphemerides, bounds: PathBounds, interval: int) -> _Sampled:
        speed_km_s = np.linalg.norm(tracks.state[interval : interval + 2, 1], axis=1).max(axis=0) / KNOT_S
        reach_km = np.nan_to_num(bounds.error_km + (speed_km_s + bounds.faster_km_s) * (STEP_S / 2))
        off_km = STRAIGHT_ERROR_RATIO * bounds.error_km
        return cls(tracks.interval_ends(interval), reach_km, off_km)

    @property
    def farthest_km(self) -> float:
        return float(self.reach_km.max(initial=0.0))


def _merged(shells: FloatArray) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(map(tuple, shells.tolist())):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
