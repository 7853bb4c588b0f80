"""Bounds of interpolated paths: how far they are from SGP4's, how fast and how far from the Earth objects may be."""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.elements import WGS72_J2, WGS72_RADIUS_KM
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.interpolated_paths import (
    KNOT_S,
    STEP_FRACTION,
    STEP_S,
    InterpolatedEphemerides,
    hermite_basis,
    step_time_ns,
)
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

# A quintic that is off by at most e between its knots has a first derivative off by at most 7 e / h, and a second one
# by at most 40 e / h^2: by how much of e a straight line through a sample strays more within half a step. Worst are
# equal errors of the velocities at both knots.
SLOPE_ERROR_PER_S = 7 / KNOT_S
STRAIGHT_ERROR_RATIO = 1 + 20 * (STEP_S / 2 / KNOT_S) ** 2

# Osculating perigee and apogee of one instant represent two hours: J2 and J3 move them by up to 25 km in between.
ORBIT_PAD_KM = 50.0
# Where SGP4's velocity departs from the derivative of its position: deep space (periods from 225 minutes), drag.
_DEEP_SPACE_AXIS_KM = 12_000.0
_LOW_PERIGEE_KM = 6680.0
_HEAVY_DRAG = 0.01
# Near the middle and near a quarter: where an error of like, and of opposite, sign at both ends is greatest.
_MEASURED_STEPS = (4, 9)
_MEASURED_EACH = 3
_LOWEST_RADIUS_KM = 6300.0
# By how much drag may move a position between knots: 0.08 km is the most found, of sets a week old.
_DRAG_KM = 0.1
_LARGEST_ERROR_KM = 25.0
# What J2 adds to the speed between knots.
_FASTER_BY_J2_KM_S = 0.01


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
    axis_km, perigee_km, eccentricity = _middle_orbit(tracks)
    bounds = interpolation_error_km(np.maximum(perigee_km - ORBIT_PAD_KM, _LOWEST_RADIUS_KM), eccentricity)
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
    """Bound the distance from the Earth's centre, (n,), least and largest, to ``ORBIT_PAD_KM``; NaN if unknown.

    Between two knots it departs from that at both by its greatest curvature, which is at perigee.
    """
    radius = np.linalg.norm(tracks.state[:, 0], axis=1)
    _, perigee_km, eccentricity = _middle_orbit(tracks)
    curvature = MU_EARTH_KM3_S2 * eccentricity / np.maximum(perigee_km - ORBIT_PAD_KM, _LOWEST_RADIUS_KM) ** 2
    between_km = np.nan_to_num(curvature * KNOT_S**2 / 8)
    with np.errstate(all="ignore"):
        return np.fmin.reduce(radius, axis=0) - between_km, np.fmax.reduce(radius, axis=0) + between_km


def _middle_orbit(tracks: InterpolatedEphemerides) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the semi-major axis (km), perigee radius (km) and eccentricity of each object, (n,).

    They are those at its known knot that is nearest to the middle; NaN where it has none.
    """
    count, objects = len(tracks.knot_time_ns), np.arange(len(tracks.index))
    outwards = np.argsort(np.abs(np.arange(count) - count // 2), kind="stable")
    is_known = np.isfinite(tracks.state[outwards, :2]).all(axis=(1, 2))
    middle = tracks.state[outwards[is_known.argmax(axis=0)], :2, :, objects]
    axis_km, eccentricity = osculating_orbit(middle[:, 0], middle[:, 1] / KNOT_S)
    return axis_km, axis_km * (1 - eccentricity), eccentricity


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
        weights = hermite_basis(STEP_FRACTION[step : step + 1])[0].reshape(2, 3)
        ends = np.stack([tracks.state[intervals][..., row], tracks.state[intervals + 1][..., row]])
        between = np.einsum("eb,ekbcm->mkc", weights, ends)
        _, exact, _ = objects.grid(step_time_ns(tracks.knot_time_ns, intervals, np.full(len(intervals), step)))
        error = np.fmax.reduce(np.linalg.norm(between - exact, axis=-1), axis=1, initial=0.0)
        largest = np.maximum(largest, np.nan_to_num(error))
    return largest


def osculating_orbit(r_km: FloatArray, v_km_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the semi-major axis (km) and the eccentricity of states (n, 3)."""
    radius = np.linalg.norm(r_km, axis=-1)
    with np.errstate(all="ignore"):
        axis_km = 1 / (2 / radius - np.einsum("ni,ni->n", v_km_s, v_km_s) / MU_EARTH_KM3_S2)
        radial = np.einsum("ni,ni->n", r_km, v_km_s) / np.sqrt(MU_EARTH_KM3_S2 * np.abs(axis_km))
        return axis_km, np.hypot(1 - radius / axis_km, radial)
