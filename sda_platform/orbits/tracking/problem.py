"""Least-squares problem of one or more windows: prior, light time and noise evaluated, unknowns whitened by the
prior.

The unknown is the six-component deviation from SGP4 at a window's middle. SGP4 contains the perturbations; two-body
dynamics propagate only the small deviation.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.measurement_model import whiten
from sda_platform.orbits.sensing.measurements import Measurements, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.two_body import two_body_stm


@dataclasses.dataclass(frozen=True, eq=False)
class Prior:
    """Predicted states of ``g`` objects with covariance ``factor @ factor.T``; the deviation is ``factor @ y``."""

    r_mid: FloatArray
    v_mid: FloatArray
    factor: FloatArray
    known: BoolArray
    """(g,) False where SGP4 rejects the object."""

    @property
    def covariance(self) -> FloatArray:
        """(g, 6, 6), TEME, km and km/s."""
        return self.factor @ self.factor.swapaxes(-1, -2)

    def take(self, index: IntArray) -> Prior:
        """Return the priors at these positions, in that order."""
        return Prior(self.r_mid[index], self.v_mid[index], self.factor[index], self.known[index])


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Observations of windows in the prior's whitened coordinates."""

    measurements: Measurements
    group: IntArray
    prior: Prior
    r_obs: FloatArray
    v_obs: FloatArray
    reach: FloatArray
    """(k, 6, 6) deviation at the observation per whitened unknown."""

    @classmethod
    def of(
        cls,
        measurements: Measurements,
        group: IntArray,
        prior: Prior,
        r_obs: FloatArray,
        v_obs: FloatArray,
        mid_time_ns: IntArray,
    ) -> Problem:
        """Build from observations (k,) of groups with a prior each, at ``mid_time_ns`` (k,), and their SGP4 states."""
        elapsed_s = (measurements.time_ns - mid_time_ns) / 1e9
        reach = two_body_stm(prior.r_mid[group], prior.v_mid[group], elapsed_s) @ prior.factor[group]
        return cls(measurements, group, prior, r_obs, v_obs, reach)

    def linearise(
        self, rows: IntArray, unknowns: FloatArray, group: IntArray, design: FloatArray, residual: FloatArray
    ) -> None:
        """Write design and residual of ``rows`` at ``unknowns`` (g, 6); ``group`` (k,) indexes the unknowns of all
        rows.
        """
        whiten(self.measurements.columns, rows, self.r_obs, self.v_obs, self.reach, unknowns, group, design, residual)


def pose(
    observations: ObservationArrays,
    group: IntArray,
    propagator: Propagator,
    index: IntArray,
    mid_time_ns: IntArray,
    further: FloatArray | None = None,
) -> tuple[Problem, IntArray]:
    """Return the problem with its rows in canonical order, and each row's position in the caller's order."""
    prior = prior_at(propagator, index, mid_time_ns, further)
    order = observations.canonical_order(group)
    order = order[group[order] >= 0]
    order = order[prior.known[group[order]]]
    measurements = prepare(observations.take(order))
    error, r_obs, v_obs = propagator.at(index[group[order]], measurements.time_ns)
    keep = measurements.usable & (error == 0)
    order, measurements, r_obs, v_obs = order[keep], measurements.take(keep), r_obs[keep], v_obs[keep]
    rows = group[order]
    shared = measurements.with_shared_clock_errors(rows, observations.source_id[order])
    return Problem.of(shared, rows, prior, r_obs, v_obs, mid_time_ns[rows]), order


def prior_at(propagator: Propagator, index: IntArray, time_ns: IntArray, further: FloatArray | None = None) -> Prior:
    """Return the priors of objects (g,) at times (g,); ``further`` (g, 6, 6), TEME, is added to their covariances."""
    error, r_mid, v_mid = propagator.at(index, time_ns)
    in_rtn = tracking_prior_rtn(propagator, index, time_ns, r_mid, v_mid)
    covariance = rtn_to_teme(in_rtn, r_mid, v_mid) + (0.0 if further is None else further)
    known = (error == 0) & np.isfinite(covariance).all(axis=(1, 2))
    return Prior(r_mid, v_mid, np.linalg.cholesky(np.where(known[:, None, None], covariance, np.eye(6))), known)


def states(prior: Prior, unknowns: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States (g, 3), (g, 3) and covariances (g, 6, 6), TEME, of unknowns (g, 6) and their information (g, 6, 6)."""
    deviation = np.einsum("gij,gj->gi", prior.factor, unknowns)
    deviation[~prior.known] = np.nan
    covariance = prior.factor @ np.linalg.inv(information) @ prior.factor.swapaxes(-1, -2)
    covariance[~prior.known] = np.nan
    symmetric = 0.5 * (covariance + covariance.swapaxes(-1, -2))
    return prior.r_mid + deviation[:, :3], prior.v_mid + deviation[:, 3:], symmetric
