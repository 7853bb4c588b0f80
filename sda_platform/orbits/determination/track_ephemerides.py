"""Ephemerides from a track: its numerical prediction of the next day with the covariance, as states at many times."""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.determination.track_elements import SPAN_S, NoFit, ProductSigmas, published_sigma_km
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, orbits_of_teme
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state
from sda_platform.units import SECOND_NS

# A step between states in local dynamical times, sqrt(r^3/GM): three minutes in low orbits; and the longest one.
_STEP, _LONGEST_S = 0.2, 600.0
# Between these the radius of the orbit decides the steps.
_LOOKED_AT_S = 60
# Sigmas are averaged over these times.
_SAMPLED_S = np.arange(1800, SPAN_S + 1, 1800, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class TrackEphemeris(ProductSigmas):
    """The ephemeris that a track predicts."""

    ephemeris: Ephemeris
    """From the newest window to SPAN_S after it, a covariance with every second state."""


def ephemeris_of_track(track: FilteredStates, published: Propagator, dynamics: Dynamics) -> TrackEphemeris:
    """Return the numerical prediction of one object's track.

    Args:
        track: one row.
        published: one row, the set in force.
        dynamics: the numerical model.

    Raises:
        NoFit: the track has no state, the prediction meets the ground, or SGP4 refuses the published set.
    """
    if not np.isfinite(track.state).all():
        raise NoFit("the track has no state")
    orbit = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
    ephemeris = ephemeris_of_orbit(orbit, dynamics)
    sampled_ns = ephemeris.usable_from_ns + _SAMPLED_S * SECOND_NS
    predicted, covariance = ephemeris.at(sampled_ns)
    sigma_km = _sigma_km(covariance)
    return TrackEphemeris(
        sigma_km=sigma_km,
        published_sigma_km=published_sigma_km(published, predicted, sampled_ns, sigma_km),
        ephemeris=ephemeris,
    )


def ephemeris_of_orbit(orbit: UncertainOrbits, dynamics: Dynamics) -> Ephemeris:
    """Return the numerical prediction of one orbit for SPAN_S. Raises NoFit where it meets the ground."""
    epoch_ns = int(orbit.epoch_ns[0])
    time_ns = epoch_ns + _steps_ns(orbit.state)
    state, covariance = orbit.at(dynamics, time_ns, np.zeros(len(time_ns), np.int64)).in_teme()
    if not (np.isfinite(state).all() and np.isfinite(covariance).all()):
        raise NoFit("the prediction has no closed orbit")
    # Covariances change slowly along the orbit: every second state has one, the last one too.
    return Ephemeris(time_ns, state, time_ns[::2], covariance[::2, :6, :6], epoch_ns, int(time_ns[-1]))


def _steps_ns(state: FloatArray) -> IntArray:
    """Times (k,) from 0 to SPAN_S, ns, at equal steps of local dynamical time along the two-body orbit (1, 6)."""
    seconds = np.arange(0, SPAN_S + 1, _LOOKED_AT_S)
    start = np.repeat(state, len(seconds), axis=0)
    r, _ = two_body_state(start[:, :3], start[:, 3:], seconds.astype(np.float64))
    rate = np.sqrt(MU_EARTH_KM3_S2 / np.linalg.norm(r, axis=1) ** 3)
    rate = np.maximum(rate, _STEP / _LONGEST_S)
    elapsed = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * _LOOKED_AT_S)])
    if not np.isfinite(elapsed).all():
        raise NoFit("the track's orbit is not closed")
    wanted = np.linspace(0.0, elapsed[-1], 2 * int(np.ceil(elapsed[-1] / (2 * _STEP))) + 1)
    return np.asarray(np.rint(np.interp(wanted, elapsed, seconds)).astype(np.int64) * SECOND_NS)


def _sigma_km(covariance: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.trace(covariance[:, :3, :3], axis1=1, axis2=2))))
