"""Coarse half of screening: which pairs come near each other, and roughly when.

SGP4 runs only at knots. Between them positions are quintic Hermite polynomials, sampled every thirty seconds: they
have SGP4's positions and velocities at both knots, and the accelerations of the Earth's field up to J2. At each
sample a cell list (`cell_list`) finds the near pairs. Times are multiples of the spacing since the Unix epoch for
any window, so that neighbouring windows share samples. What counts as an event is decided in ``closest_approach``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.elements import WGS72_J2, WGS72_RADIUS_KM
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.near_pairs import near_pairs
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform.units import SECOND_NS

KNOT_S = 600
STEP_S = 30
STEPS_PER_KNOT = KNOT_S // STEP_S

# A quintic that is off by at most e between its knots has a first derivative off by at most 7 e / h, and a second one
# by at most 40 e / h^2: by how much of e a straight line through a sample strays more within half a step. Worst are
# equal errors of the velocities at both knots.
SLOPE_ERROR_PER_S = 7 / KNOT_S
STRAIGHT_ERROR_RATIO = 1 + 20 * (STEP_S / 2 / KNOT_S) ** 2

_STEP_FRACTION = (np.arange(STEPS_PER_KNOT) + 0.5) / STEPS_PER_KNOT
# Osculating perigee and apogee of one instant represent two hours: J2 and J3 move them by up to 25 km in between,
# and the apogee of an eccentric orbit by up to one per cent of its axis.
_SIEVE_PAD_KM = 50.0
_SIEVE_APOGEE_PAD_RATIO = 0.02
# Where SGP4's velocity departs from the derivative of its position: deep space (periods from 225 minutes), drag.
_DEEP_SPACE_AXIS_KM = 12_000.0
_LOW_PERIGEE_KM = 6680.0
_HEAVY_DRAG = 0.01
# Near the middle and near a quarter: where an error of like, and of opposite, sign at both ends is greatest.
_MEASURED_STEPS = (4, 9)
_MEASURED_EACH = 3
_LOWEST_RADIUS_KM = 6300.0
# By how much drag may move a position between knots: 0.06 km is the most found, of sets a week old.
_DRAG_KM = 0.1
_LARGEST_ERROR_KM = 25.0
# What J2 adds to the speed between knots.
_FASTER_BY_J2_KM_S = 0.01
# Relative acceleration per distance is greatest along the vertical at the Earth's surface.
_STRONGEST_TIDE_PER_S2 = 2 * MU_EARTH_KM3_S2 / 6378.0**3


@dataclasses.dataclass(frozen=True, eq=False)
class InterpolatedEphemerides:
    """States of ``n`` objects at ``k`` knots.

    Attributes:
        index: (n,) positions in the propagator.
        knot_time_ns: (k,) spaced by ``KNOT_S``.
        error: (n, k) SGP4 error codes.
        state: (k, 3, 3, n) position in km, velocity times knot spacing (km) and acceleration times its square (km),
            TEME; NaN on error.
    """

    index: IntArray
    knot_time_ns: IntArray
    error: ErrorArray
    state: FloatArray

    @classmethod
    def propagate(cls, propagator: Propagator, index: IntArray, knot_time_ns: IntArray) -> InterpolatedEphemerides:
        error, r_km, v_km_s = propagator.take(index).grid(knot_time_ns)
        state = np.empty((len(knot_time_ns), 3, 3, len(index)))
        state[:, 0] = r_km.transpose(1, 2, 0)
        np.multiply(v_km_s.transpose(1, 2, 0), KNOT_S, out=state[:, 1])
        np.multiply(_acceleration_km_s2(state[:, 0]), KNOT_S**2, out=state[:, 2])
        return cls(index, knot_time_ns, error, state)

    def interval_ends(self, interval: int) -> npt.NDArray[np.float32]:
        """States at both ends of a knot interval, (6, 3, n) single precision; not finite where SGP4 rejected either."""
        return self.state[interval : interval + 2].reshape(6, 3, -1).astype(np.float32)

    def at_steps(self, row: IntArray, interval: IntArray, step: IntArray) -> tuple[FloatArray, FloatArray]:
        """Interpolated positions (m, 3) km and velocities (m, 3) km/s of the rows at the centres of steps."""
        ends = np.concatenate([self.state[interval, :, :, row], self.state[interval + 1, :, :, row]], axis=1)
        position = np.einsum("mb,mbc->mc", hermite_basis(_STEP_FRACTION[step]), ends)
        slope = np.einsum("mb,mbc->mc", _hermite_slope(_STEP_FRACTION[step]), ends)
        return position, slope / KNOT_S


@dataclasses.dataclass(frozen=True, eq=False)
class Nearby:
    """Samples at which a pair is near, each (m,): rows of the two ephemerides, knot interval, step in it."""

    primary: IntArray
    secondary: IntArray
    interval: IntArray
    step: IntArray


def step_time_ns(knot_time_ns: IntArray, interval: IntArray, step: IntArray) -> IntArray:
    """Centre of each step, shape (m,)."""
    return np.asarray(knot_time_ns[interval] + (2 * step + 1) * (STEP_S * SECOND_NS // 2), dtype=np.int64)


def hermite_basis(fraction: FloatArray) -> FloatArray:
    """Weights (m, 6) of position, slope and curvature at the start, then at the end, at fractions (m,) of a knot."""
    s = np.asarray(fraction)
    rest, rise = 1 - s, s**3 * (10 - 15 * s + 6 * s**2)
    slopes = s * rest**3 * (1 + 3 * s), -(s**3) * rest * (4 - 3 * s)
    return np.stack([1 - rise, slopes[0], s**2 * rest**3 / 2, rise, slopes[1], s**3 * rest**2 / 2], axis=-1)


def _hermite_slope(fraction: FloatArray) -> FloatArray:
    s, rest = fraction, 1 - fraction
    rise = 30 * s**2 * rest**2
    slopes = rest**2 * (1 + 2 * s - 15 * s**2), s**2 * (-12 + 28 * s - 15 * s**2)
    curvatures = s * rest**2 * (2 - 5 * s) / 2, s**2 * rest * (3 - 5 * s) / 2
    return np.stack([-rise, slopes[0], curvatures[0], rise, slopes[1], curvatures[1]], axis=-1)


@dataclasses.dataclass(frozen=True, eq=False)
class PathBounds:
    """What the interpolated path of each object departs from SGP4's by, each (n,).

    Attributes:
        error_km: of a position, at most ``_LARGEST_ERROR_KM``.
        faster_km_s: by how much it may be faster between two knots than at both.
    """

    error_km: FloatArray
    faster_km_s: FloatArray


def interpolation_error_km(perigee_km: FloatArray, eccentricity: FloatArray) -> FloatArray:
    """Bound the error of Hermite positions on orbits of the given perigee radius, km, same shape.

    The error of a quintic Hermite interpolant is at most the sixth derivative times h^6 / 46080. On an ellipse that
    peaks at perigee with mu^3 (1 + 24 e + 45 e^2) / r_p^8. The factor of two covers what J2 and drag add to it.
    SGP4 leaves out terms of J2 times e, so that its velocity departs from the derivative of its position: by less than
    J2 (R / r_p)^2 e v, which opposite signs at both knots turn into 5 h / 16 of it. Drag adds ``_DRAG_KM`` at most.
    """
    sixth_derivative = MU_EARTH_KM3_S2**3 * (1 + 24 * eccentricity + 45 * eccentricity**2) / perigee_km**8
    smooth_km = 2 * sixth_derivative * KNOT_S**6 / 46_080
    left_out = WGS72_J2 * (WGS72_RADIUS_KM / perigee_km) ** 2 * eccentricity
    return np.asarray(_DRAG_KM + smooth_km + left_out * _perigee_speed_km_s(perigee_km, eccentricity) * KNOT_S * 5 / 16)


def path_bounds(propagator: Propagator, tracks: InterpolatedEphemerides) -> PathBounds:
    """Bound how far each object is from its interpolated path, and how fast it is.

    The error follows from the orbit. In deep space, at very low perigee and under heavy drag it is also measured
    between the knots, and doubled. An object with a larger error still (in its last minutes of orbit) may be missed.
    """
    middle = tracks.state[len(tracks.knot_time_ns) // 2]
    axis_km, eccentricity = _osculating_orbit(middle[0].T, middle[1].T / KNOT_S)
    perigee_km = axis_km * (1 - eccentricity)
    bounds = interpolation_error_km(np.maximum(perigee_km - _SIEVE_PAD_KM, _LOWEST_RADIUS_KM), eccentricity)
    drag = np.abs(propagator.elements.bstar_per_earth_radius[tracks.index])
    plain = (axis_km > 0) & (axis_km < _DEEP_SPACE_AXIS_KM) & (perigee_km > _LOW_PERIGEE_KM) & (drag < _HEAVY_DRAG)
    awkward = np.flatnonzero(~plain)
    bounds[awkward] = np.maximum(2 * _measured_error_km(propagator, tracks, awkward), np.nan_to_num(bounds[awkward]))
    lowest_km = np.maximum(perigee_km, _LOWEST_RADIUS_KM)
    # The speed curves most at perigee.
    curved = MU_EARTH_KM3_S2**2 * eccentricity / (_perigee_speed_km_s(lowest_km, eccentricity) * lowest_km**4)
    faster_km_s = np.nan_to_num(2 * curved * KNOT_S**2 / 8) + _FASTER_BY_J2_KM_S
    return PathBounds(np.minimum(bounds, _LARGEST_ERROR_KM), faster_km_s)


def _perigee_speed_km_s(perigee_km: FloatArray, eccentricity: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(MU_EARTH_KM3_S2 * (1 + eccentricity) / perigee_km))


def radius_limits_km(tracks: InterpolatedEphemerides) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest distance from the Earth's centre at the knots, (n,); NaN where none is known."""
    radius = np.linalg.norm(tracks.state[:, 0], axis=1)
    with np.errstate(all="ignore"):
        return np.fmin.reduce(radius, axis=0), np.fmax.reduce(radius, axis=0)


def sieve(
    propagator: Propagator, index: IntArray, primaries: InterpolatedEphemerides, time_ns: int, threshold_km: float
) -> IntArray:
    """Return the part of ``index`` whose perigee-apogee shell comes within ``threshold_km`` of a primary's near
    ``time_ns``.

    Objects that SGP4 rejects at ``time_ns`` are kept, so that their failure is reported.
    """
    error, r_km, v_km_s = propagator.at(index, np.int64(time_ns))
    axis_km, eccentricity = _osculating_orbit(r_km, v_km_s)
    perigee_km = axis_km * (1 - eccentricity)
    apogee_km = np.where(axis_km > 0, axis_km * (1 + eccentricity + _SIEVE_APOGEE_PAD_RATIO), np.inf)
    low_km, high_km = radius_limits_km(primaries)
    pad_km = threshold_km + _SIEVE_PAD_KM
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
            (hermite_basis(_STEP_FRACTION), _hermite_slope(_STEP_FRACTION) / KNOT_S),
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


def _acceleration_km_s2(position_km: FloatArray) -> FloatArray:
    """Acceleration of the Earth's field up to J2 at positions (k, 3, n), TEME, same shape.

    What it lacks of SGP4's path, such as drag and the Moon, is 1e-7 km/s² at most and moves a position by 0.4 m.
    """
    square = np.einsum("kcn,kcn->kn", position_km, position_km)
    flat = 1.5 * WGS72_J2 * WGS72_RADIUS_KM**2 / square
    height = 5 * position_km[:, 2] ** 2 / square
    factor = -MU_EARTH_KM3_S2 / (square * np.sqrt(square))
    along = np.stack([factor * (1 + flat * (1 - height))] * 2 + [factor * (1 + flat * (3 - height))], axis=1)
    return np.asarray(position_km * along)


def _osculating_orbit(r_km: FloatArray, v_km_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Semi-major axis (km) and eccentricity of states (n, 3)."""
    radius = np.linalg.norm(r_km, axis=-1)
    with np.errstate(all="ignore"):
        axis_km = 1 / (2 / radius - np.einsum("ni,ni->n", v_km_s, v_km_s) / MU_EARTH_KM3_S2)
        radial = np.einsum("ni,ni->n", r_km, v_km_s) / np.sqrt(MU_EARTH_KM3_S2 * np.abs(axis_km))
        return axis_km, np.hypot(1 - radius / axis_km, radial)


def _measured_error_km(propagator: Propagator, tracks: InterpolatedEphemerides, row: IntArray) -> FloatArray:
    """Largest Hermite error of the rows at ``_MEASURED_STEPS``, (m,); 0 where it is unknown.

    Every third interval and the last stand for all: what SGP4's velocity departs by changes over hours.
    """
    largest = np.zeros(len(row))
    if not len(row):
        return largest
    last = len(tracks.knot_time_ns) - 2
    intervals = np.unique([*range(0, last, _MEASURED_EACH), last])
    objects = propagator.take(tracks.index[row])
    for step in _MEASURED_STEPS:
        weights = hermite_basis(_STEP_FRACTION[step : step + 1])[0].reshape(2, 3)
        ends = np.stack([tracks.state[intervals][..., row], tracks.state[intervals + 1][..., row]])
        between = np.einsum("eb,ekbcm->mkc", weights, ends)
        _, exact, _ = objects.grid(step_time_ns(tracks.knot_time_ns, intervals, np.full(len(intervals), step)))
        error = np.fmax.reduce(np.linalg.norm(between - exact, axis=-1), axis=1, initial=0.0)
        largest = np.maximum(largest, np.nan_to_num(error))
    return largest


def _merged(shells: FloatArray) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(map(tuple, shells.tolist())):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
