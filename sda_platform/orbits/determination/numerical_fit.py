"""Orbits from one object's observations under the numerical model: state, drag area and reflective area together.

The unknowns are the state in GCRF at the epoch and both areas over mass. Areas have the prior of an object of which
nothing is known, because a single pass does not determine them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.least_squares import ArcPrior, GoodnessOfFit, LeastSquares, solve
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, gcrf_to_teme
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.two_body import two_body_stm

# Partials are integrated to nodes so far apart. Two-body motion extends them half as far, to the observations.
_NODES_NS = 600_000_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class NumericalFit(GoodnessOfFit):
    """The orbit that fits one object's observations best."""

    orbit: UncertainOrbits
    """One row."""


def fit_orbit(
    observations: ObservationArrays, state_teme: FloatArray, epoch_ns: int, dynamics: Dynamics
) -> NumericalFit:
    """Return the orbit at ``epoch_ns`` from observations (m,) alone, starting from the state (6,), km and km/s.

    Raises NoOrbit as `least_squares.solve`.
    """
    motion = _NumericalMotion(epoch_ns, dynamics)
    coefficients, covariance = first_coefficients(np.zeros(1))
    start = np.hstack([gcrf_of_teme(state_teme[None], np.array([epoch_ns])), coefficients])[0]
    known = ArcPrior(np.hstack([np.zeros((2, 6)), np.linalg.inv(np.linalg.cholesky(covariance[0]))]), determined=2)
    fit = solve(observations, motion, start, known)
    return _reported(fit, _one_orbit(epoch_ns, fit.unknowns, fit.covariance))


def continued_orbit(
    before: UncertainOrbits, observations: ObservationArrays, epoch_ns: int, dynamics: Dynamics
) -> NumericalFit:
    """Return the orbit at ``epoch_ns`` from later observations (m,) and from ``before``, one row.

    It is solved at the epoch of ``before``, where the uncertainty is small enough to be Gaussian. The process noise
    until ``epoch_ns`` is part of the prior.

    Raises:
        NoOrbit: as `least_squares.solve`.
        LinAlgError: the covariance of ``before`` is not positive definite.
    """
    at_ns, first_ns = np.array([epoch_ns]), int(before.epoch_ns[0])
    whole = _transition(before, epoch_ns, dynamics)
    still = dataclasses.replace(before, covariance=np.zeros((1, 8, 8)))
    noise = np.linalg.solve(whole, np.linalg.solve(whole, still.at(dynamics, at_ns).covariance[0]).T)
    if not np.isfinite(noise).all():
        raise NoOrbit("the earlier orbit does not reach the observations")
    start = np.append(before.state[0], before.coefficients[0])
    motion = _NumericalMotion(first_ns, dynamics)
    fit = solve(observations, motion, start, ArcPrior.of(before.covariance[0] + 0.5 * (noise + noise.T)))
    there = _one_orbit(first_ns, fit.unknowns, fit.covariance)
    whole = _transition(there, epoch_ns, dynamics)
    state = dynamics.states(there.state, there.coefficients, there.epoch_ns, at_ns[:, None])[0, 0]
    moved = np.append(state, there.coefficients[0])
    return _reported(fit, _one_orbit(epoch_ns, moved, whole @ fit.covariance @ whole.T))


def _transition(orbit: UncertainOrbits, epoch_ns: int, dynamics: Dynamics) -> FloatArray:
    """Derivatives (8, 8) of state and coefficients at ``epoch_ns`` by those of the orbit."""
    whole = np.eye(8)
    there_ns, one = np.array([epoch_ns]), np.array([0])
    whole[:6] = dynamics.transitions(orbit.state, orbit.coefficients, orbit.epoch_ns, one, there_ns)[1][0]
    return whole


def _one_orbit(epoch_ns: int, unknowns: FloatArray, covariance: FloatArray) -> UncertainOrbits:
    return UncertainOrbits(np.array([epoch_ns]), unknowns[None, :6], unknowns[None, 6:], covariance[None])


def _reported(fit: LeastSquares, orbit: UncertainOrbits) -> NumericalFit:
    return NumericalFit(fit.chi_square, fit.degrees_of_freedom, fit.used, fit.cost, orbit)


@dataclasses.dataclass(frozen=True, eq=False)
class _NumericalMotion:
    """The numerical model's motion as a function of state in GCRF and areas at the epoch."""

    epoch_ns: int
    dynamics: Dynamics

    def states(self, unknowns: FloatArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (m, 6), TEME, and their derivatives (m, 6, 8) by the unknowns."""
        node = np.rint((time_ns - self.epoch_ns) / _NODES_NS).astype(np.int64)
        nodes, back = np.unique(node, return_inverse=True)
        nodes_ns, one = self.epoch_ns + nodes * _NODES_NS, np.zeros(len(nodes), np.int64)
        orbit = (unknowns[None, :6], unknowns[None, 6:], np.array([self.epoch_ns]))
        begin, by_unknowns = self.dynamics.transitions(*orbit, one, nodes_ns)
        states = self.dynamics.states(*orbit, time_ns[None])[0]
        elapsed_s = (time_ns - nodes_ns[back]) / 1e9
        partials = two_body_stm(begin[back, :3], begin[back, 3:], elapsed_s) @ by_unknowns[back]
        turn = np.zeros((len(time_ns), 6, 6))
        turn[:, :3, :3] = turn[:, 3:, 3:] = gcrf_to_teme(time_ns)
        return np.einsum("mij,mj->mi", turn, states), turn @ partials
