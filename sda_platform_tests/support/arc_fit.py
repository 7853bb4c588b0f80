"""Precise orbit over one arc: numerical integration, station biases, and empirical accelerations of the satellite.

For arcs on which SGP4's kilometre is the largest error. The frame is GCRF; the caller provides the sites in it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.sensing.measurements import Measurements

_STEPS = 15
_CONVERGED_SIGMAS = 1e-2
# Differences for the partials: km and km/s of the state, km/s2 and km/s3 of an empirical acceleration, m2/kg of
# the drag.
_STATE_STEP = (1e-2, 1e-2, 1e-2, 1e-6, 1e-6, 1e-6)
_OWN_STEP = (1e-11,) * 3 + (1e-15,) * 3
_DRAG_STEP = 1e-5
_OUTLIER_SIGMAS = 6.0


@dataclasses.dataclass(frozen=True, eq=False)
class ArcFit:
    """Result of ``fit_arc``, in GCRF, km and km/s."""

    state: FloatArray
    """(6,) at the epoch."""
    covariance: FloatArray
    """(6, 6) of the state, with the other unknowns estimated."""
    forces: Forces
    """Includes the estimated parameters."""
    bias: FloatArray
    """(stations, 3) of range (km), cross-elevation and elevation (rad): excess of the measurement. NaN where the fit
    uses no such measurement of the station."""
    residual: FloatArray
    """(m, 3) measured minus computed, NaN where there is none."""
    used: npt.NDArray[np.bool_]
    """(m, 3) which components the fit uses."""
    iterations: int
    converged: bool


def fit_arc(
    measurements: Measurements,
    station: IntArray,
    state: FloatArray,
    epoch_ns: int,
    forces: Forces,
    *,
    own_accelerations: bool = False,
    drag: bool = False,
) -> ArcFit:
    """Gauss-Newton in weighted least squares from ``state`` (6,), with a constant bias of every station and
    component.

    Args:
        measurements: (m,) radar observations; range, cross-elevation and elevation are used where present.
        station: (m,) index of the station whose biases an observation shares.
        forces: the force model.
        own_accelerations: estimate a constant and a linear empirical acceleration.
        drag: estimate the drag area over mass.
    """
    arc = _Arc(measurements, station, epoch_ns, forces, own_accelerations, drag)
    present = measurements.present[:, :3]
    used = present.copy()
    unknowns = np.concatenate([state, arc.dynamic(forces), np.zeros(3 * (int(station.max()) + 1))])
    for step_number in range(1, _STEPS + 1):
        residual, design = arc.linearise(unknowns)
        sigma = np.sqrt(measurements.variance[:, :3])
        if step_number > 2:
            used = present & (np.abs(residual) < _OUTLIER_SIGMAS * sigma)
        rows = (design / sigma[:, :, None])[used]
        # The bias of a component that a station does not measure has no effect.
        has_effect = rows.any(axis=0)
        rows = rows[:, has_effect]
        scale = np.linalg.norm(rows, axis=0)
        step = np.linalg.lstsq(rows / scale, (residual / sigma)[used], rcond=1e-14)[0] / scale
        unknowns[has_effect] += step
        inverse = np.linalg.pinv(rows / scale, rcond=1e-14) / scale[:, None]
        covariance = inverse @ inverse.T
        is_small = np.abs(step) < _CONVERGED_SIGMAS * np.sqrt(np.diag(covariance))
        if step_number > 3 and is_small.all():
            break
    residual, _ = arc.linearise(unknowns)
    return ArcFit(
        state=unknowns[:6],
        covariance=covariance[:6, :6],
        forces=arc.forces_of(unknowns),
        bias=np.where(has_effect, unknowns, np.nan)[arc.first_bias :].reshape(-1, 3),
        residual=np.where(present, residual, np.nan),
        used=used,
        iterations=step_number,
        converged=bool(is_small.all()),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Arc:
    measurements: Measurements
    station: IntArray
    epoch_ns: int
    forces: Forces
    own_accelerations: bool
    drag: bool

    @property
    def first_bias(self) -> int:
        return 6 + 6 * self.own_accelerations + self.drag

    def dynamic(self, forces: Forces) -> FloatArray:
        """The estimated force parameters."""
        own = [*forces.own_km_s2, *forces.own_rate_km_s3] if self.own_accelerations else []
        return np.array(own + ([forces.drag_area_m2_kg] if self.drag else []))

    def forces_of(self, unknowns: FloatArray) -> Forces:
        values = unknowns.tolist()
        forces = self.forces
        if self.own_accelerations:
            constant, rate = values[6:9], values[9:12]
            forces = dataclasses.replace(forces, own_km_s2=tuple(constant), own_rate_km_s3=tuple(rate))
        if self.drag:
            forces = dataclasses.replace(forces, drag_area_m2_kg=values[self.first_bias - 1])
        return forces

    def linearise(self, unknowns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residual (m, 3) and design (m, 3, unknowns)."""
        states = self._states(unknowns)
        steps = [*_STATE_STEP, *(_OWN_STEP if self.own_accelerations else ()), *((_DRAG_STEP,) if self.drag else ())]
        derivatives = np.empty((len(states), 6, self.first_bias))
        for column, step in enumerate(steps):
            ahead = unknowns.copy()
            ahead[column] += step
            derivatives[:, :, column] = (self._states(ahead) - states) / step
        line = self.measurements.linearise(states[:, :3], states[:, 3:])
        bias = unknowns[self.first_bias :].reshape(-1, 3)
        design = np.zeros((len(states), 3, len(unknowns)))
        design[:, :, : self.first_bias] = line.partials[:, :3] @ derivatives
        rows, parts = np.indices((len(states), 3))
        design[rows, parts, self.first_bias + 3 * self.station[:, None] + parts] = 1.0
        return line.residual[:, :3] - bias[self.station], design

    def _states(self, unknowns: FloatArray) -> FloatArray:
        return integrate(unknowns[:6], self.epoch_ns, self.measurements.time_ns, self.forces_of(unknowns))
