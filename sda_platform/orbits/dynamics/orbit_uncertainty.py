"""Uncertain orbits under the numerical model: state, drag area and reflective area with one covariance.

Process noise has two parts. Density varies about its model, as a random walk of the drag area. The rest (field above
degree 36, sunlight on bodies that are no spheres) is white acceleration by height.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import symmetric
from sda_platform.orbits.dynamics.gravity import GM_KM3_S2, RADIUS_KM
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.earth_orientation import gcrf_of_teme, gcrf_to_teme, teme_of_gcrf, to_gcrf
from sda_platform.orbits.two_body import two_body_stm

# Relative error of the density of quiet and disturbed days, and the time in which it changes.
DENSITY_SIGMA, DENSITY_HOURS = 0.15, 12.0
_REFLECTIVE_M2_KG, _REFLECTIVE_SIGMA_M2_KG = 0.02, 0.02
_DRAG_PER_BSTAR_M2_KG, _LEAST_DRAG_M2_KG, _MOST_DRAG_M2_KG = 12.741621, 0.01, 1.0
_NOISE_KM2_S3, _FIELD_NOISE_KM2_S3, _FIELD_DEGREE = 3e-20, 2e-15, 36
# Nodes of the integral of the white acceleration.
_NODES, _WEIGHTS = (0.5 * array for array in np.polynomial.legendre.leggauss(16))


@dataclasses.dataclass(frozen=True, eq=False)
class UncertainOrbits:
    """Orbits of ``n`` objects, each at its epoch; GCRF, km and km/s."""

    epoch_ns: IntArray
    state: FloatArray
    """(n, 6)"""
    coefficients: FloatArray
    """(n, 2) drag area and reflective area over mass, m2/kg."""
    covariance: FloatArray
    """(n, 8, 8) of both."""

    @classmethod
    def stack(cls, orbits: Sequence[UncertainOrbits]) -> UncertainOrbits:
        """Concatenate collections of orbits, at least one."""
        return cls(*(np.concatenate([getattr(each, f.name) for each in orbits]) for f in dataclasses.fields(cls)))

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> UncertainOrbits:
        """Select the orbits of these rows."""
        return UncertainOrbits(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))

    def copied(self) -> UncertainOrbits:
        """Copy the orbits into arrays of their own."""
        return UncertainOrbits(*(getattr(self, field.name).copy() for field in dataclasses.fields(self)))

    def put(self, rows: IntArray, others: UncertainOrbits) -> None:
        """Replace these rows."""
        for field in dataclasses.fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)

    def at(self, dynamics: Dynamics, time_ns: IntArray, of: IntArray | None = None) -> UncertainOrbits:
        """Return orbits ``of`` (m,) at ``time_ns`` (m,), earlier or later, with process noise.

        None: each orbit at one time. NaN where the integration fails.
        """
        rows = np.arange(len(time_ns)) if of is None else of
        found = dynamics.transitions(self.state, self.coefficients, self.epoch_ns, rows, time_ns)
        return self.take(rows)._moved(time_ns, *found)

    def _moved(self, time_ns: IntArray, state: FloatArray, partials: FloatArray) -> UncertainOrbits:
        hours = np.abs(time_ns - self.epoch_ns) / 3.6e12
        walk = (DENSITY_SIGMA * self.coefficients[:, 0]) ** 2 * -np.expm1(-2 * hours / DENSITY_HOURS)
        covariance = self.covariance.copy()
        # A walk moves the orbit by the square root of a fifth of what its last value, held from the start, would.
        covariance[:, 6, 6] += 0.2 * walk
        whole = np.zeros((len(state), 8, 8))
        whole[:, :6], whole[:, 6, 6], whole[:, 7, 7] = partials, 1.0, 1.0
        covariance = whole @ covariance @ whole.swapaxes(1, 2)
        covariance[:, :6, :6] += white_noise(self.state, (time_ns - self.epoch_ns) / 1e9)
        covariance[:, 6, 6] += 0.8 * walk
        return UncertainOrbits(time_ns, state, self.coefficients, symmetric(covariance))

    def in_teme(self) -> tuple[FloatArray, FloatArray]:
        """States (n, 6) and covariances (n, 8, 8) in TEME of date."""
        return teme_of_gcrf(self.state, self.epoch_ns), _turned(gcrf_to_teme(self.epoch_ns), self.covariance)


def orbits_of_teme(
    epoch_ns: IntArray, state: FloatArray, coefficients: FloatArray, covariance: FloatArray
) -> UncertainOrbits:
    """Orbits from states (n, 6) and covariances (n, 8, 8) in TEME of date."""
    turned = _turned(to_gcrf("TEME", epoch_ns), covariance)
    return UncertainOrbits(epoch_ns, gcrf_of_teme(state, epoch_ns), coefficients, turned)


def _turned(turn: FloatArray, covariance: FloatArray) -> FloatArray:
    whole = np.zeros((len(turn), 8, 8))
    whole[:, :3, :3] = whole[:, 3:6, 3:6] = turn
    whole[:, 6, 6] = whole[:, 7, 7] = 1.0
    return symmetric(whole @ covariance @ whole.swapaxes(1, 2))


def white_noise(state: FloatArray, elapsed_s: FloatArray) -> FloatArray:
    """Covariance (n, 6, 6) that white acceleration adds to orbits ``state`` (n, 6) over ``elapsed_s`` (n,)."""
    count, nodes = len(state), len(_NODES)
    left = (elapsed_s[:, None] * (0.5 - _NODES)).reshape(-1)
    reach = two_body_stm(np.repeat(state[:, :3], nodes, axis=0), np.repeat(state[:, 3:], nodes, axis=0), left)
    by_speed = reach[:, :, 3:].reshape(count, nodes, 6, 3)
    noise = np.einsum("k,nkij,nklj->nil", _WEIGHTS, by_speed, by_speed)
    return np.asarray(noise * (noise_density(state) * np.abs(elapsed_s))[:, None, None])


def noise_density(state: FloatArray) -> FloatArray:
    """Density (n,) of the white acceleration, km2/s3, by the perigee of ``state`` (n, 6)."""
    r, v = state[:, :3], state[:, 3:]
    momentum = np.sum(np.cross(r, v) ** 2, axis=1) / GM_KM3_S2
    axis = 1 / (2 / np.linalg.norm(r, axis=1) - np.sum(v**2, axis=1) / GM_KM3_S2)
    perigee = axis * (1 - np.sqrt(np.maximum(1 - momentum / axis, 0.0)))
    return np.asarray(_NOISE_KM2_S3 + _FIELD_NOISE_KM2_S3 * (RADIUS_KM / perigee) ** (2 * _FIELD_DEGREE))


def first_coefficients(bstar_per_earth_radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients (n, 2), m2/kg, of objects with these drag terms of SGP4, and their covariance (n, 2, 2)."""
    drag = np.clip(_DRAG_PER_BSTAR_M2_KG * bstar_per_earth_radius, _LEAST_DRAG_M2_KG, _MOST_DRAG_M2_KG)
    covariance = np.zeros((len(drag), 2, 2))
    covariance[:, 0, 0] = (0.5 * drag + _LEAST_DRAG_M2_KG) ** 2
    covariance[:, 1, 1] = _REFLECTIVE_SIGMA_M2_KG**2
    return np.stack([drag, np.full(len(drag), _REFLECTIVE_M2_KG)], axis=1), covariance
