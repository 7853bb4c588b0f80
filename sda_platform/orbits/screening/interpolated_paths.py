"""Paths between knots: SGP4 at the knots, and quintic Hermite polynomials between them.

They have SGP4's positions and velocities at both knots, and the accelerations of the Earth's field up to J2.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.elements import WGS72_J2, WGS72_RADIUS_KM
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2
from sda_platform.units import SECOND_NS

KNOT_S = 600
STEP_S = 30
STEPS_PER_KNOT = KNOT_S // STEP_S
STEP_FRACTION = (np.arange(STEPS_PER_KNOT) + 0.5) / STEPS_PER_KNOT
"""The centres of the steps of an interval between two knots."""


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
        position = np.einsum("mb,mbc->mc", hermite_basis(STEP_FRACTION[step]), ends)
        slope = np.einsum("mb,mbc->mc", hermite_slope(STEP_FRACTION[step]), ends)
        return position, slope / KNOT_S


def step_time_ns(knot_time_ns: IntArray, interval: IntArray, step: IntArray) -> IntArray:
    """Centre of each step, shape (m,)."""
    return np.asarray(knot_time_ns[interval] + (2 * step + 1) * (STEP_S * SECOND_NS // 2), dtype=np.int64)


def hermite_basis(fraction: FloatArray) -> FloatArray:
    """Weights (m, 6) of position, slope and curvature at the start, then at the end, at fractions (m,) of a knot."""
    s = np.asarray(fraction)
    rest, rise = 1 - s, s**3 * (10 - 15 * s + 6 * s**2)
    slopes = s * rest**3 * (1 + 3 * s), -(s**3) * rest * (4 - 3 * s)
    return np.stack([1 - rise, slopes[0], s**2 * rest**3 / 2, rise, slopes[1], s**3 * rest**2 / 2], axis=-1)


def hermite_slope(fraction: FloatArray) -> FloatArray:
    """Derivatives (m, 6) of these weights by the fraction."""
    s, rest = fraction, 1 - fraction
    rise = 30 * s**2 * rest**2
    slopes = rest**2 * (1 + 2 * s - 15 * s**2), s**2 * (-12 + 28 * s - 15 * s**2)
    curvatures = s * rest**2 * (2 - 5 * s) / 2, s**2 * rest * (3 - 5 * s) / 2
    return np.stack([-rise, slopes[0], curvatures[0], rise, slopes[1], curvatures[1]], axis=-1)


def _acceleration_km_s2(position_km: FloatArray) -> FloatArray:
    """Acceleration of the Earth's field up to J2 at positions (k, 3, n), TEME, same shape.

    What it lacks of SGP4's path, such as drag and the Moon, is 1e-7 km/s² at most where no error is measured
    (`path_bounds`). It moves a position by h²/32 of it, 1.1 m.
    """
    square = np.einsum("kcn,kcn->kn", position_km, position_km)
    flat = 1.5 * WGS72_J2 * WGS72_RADIUS_KM**2 / square
    height = 5 * position_km[:, 2] ** 2 / square
    factor = -MU_EARTH_KM3_S2 / (square * np.sqrt(square))
    along = np.stack([factor * (1 + flat * (1 - height))] * 2 + [factor * (1 + flat * (3 - height))], axis=1)
    return np.asarray(position_km * along)
