"""When windows show that an object has manoeuvred, and by how much a track then becomes uncertain."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.chi_square import square_exceeded_by
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.tracking.window_information import Evidence, innovation_of, updated_by

# Probabilities below which a window contradicts the track: any window, and one of a part of the state after another.
_IMPLAUSIBLE, _CONFIRMING = 1e-6, 1e-3
# Errors of element sets have long tails: the first window shows that an object has left its set beyond so many times
# the set's sigmas.
_TAILS = 1.5
# The same for each of two halves of one window: together they are as improbable as two such windows.
_IN_BOTH_HALVES = (_IMPLAUSIBLE * _CONFIRMING) ** 0.5
# One sigma of an unforeseen change of speed, and of its time, from which the position follows: about a window.
_MANOEUVRE_KM_S = 0.05
_MANOEUVRE_TIME_S = 30.0


def contradicts(innovation: FloatArray, size: IntArray, *, may_confirm: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether windows (n,) contradict the orbit, by squared innovation and its degrees of freedom.

    A weaker contradiction suffices for windows that ``may_confirm`` the one before.
    """
    return _is_beyond(np.where(may_confirm, _CONFIRMING, _IMPLAUSIBLE), innovation, size)


def leaves_set(innovation: FloatArray, size: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether first windows (n,) contradict the element set so much that the object has left its path."""
    return _is_beyond(_IMPLAUSIBLE, innovation / _TAILS**2, size)


def by_both_halves(rows: IntArray, predicted: UncertainOrbits, evidence: Evidence) -> npt.NDArray[np.bool_]:
    """Whether the windows ``rows`` (n,) have halves that both contradict the ``predicted`` orbits (n), and that agree
    with each other once the velocity is open.
    """
    is_confirmed = np.isin(rows, evidence.half_of)
    halved = np.flatnonzero(is_confirmed)
    if evidence.halves is None or not len(halved):
        return is_confirmed
    orbits, first = predicted.take(halved), 2 * np.searchsorted(evidence.half_of, rows[halved])
    one, other = (evidence.halves.about(first + half, orbits) for half in (0, 1))
    change, opened = updated_by(orbits.covariance + manoeuvre_noise(np.zeros(len(halved))), *one)
    left = other[1] - np.einsum("nij,nj->ni", other[0], change)
    is_confirmed[halved] = (
        _is_beyond(_IN_BOTH_HALVES, *innovation_of(orbits.covariance, *one))
        & _is_beyond(_IN_BOTH_HALVES, *innovation_of(orbits.covariance, *other))
        & ~_is_beyond(_CONFIRMING, *innovation_of(opened, other[0], left))
    )
    return is_confirmed


def _is_beyond(probability: float | FloatArray, innovation: FloatArray, size: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether so large a squared innovation has less than this probability."""
    return np.asarray(innovation > square_exceeded_by(probability, np.maximum(size, 1)))


def manoeuvre_noise(lead_s: FloatArray) -> FloatArray:
    """Process noise (n, 8, 8) of an unknown change of velocity about ``lead_s`` ago."""
    noise = np.zeros((len(lead_s), 8, 8))
    dt, unit = lead_s[:, None, None], np.eye(3)
    noise[:, :3, :3], noise[:, 3:6, 3:6] = (dt**2 + _MANOEUVRE_TIME_S**2) * unit, unit
    noise[:, :3, 3:6] = noise[:, 3:6, :3] = dt * unit
    return np.asarray(_MANOEUVRE_KM_S**2 * noise)


MANOEUVRE_COVARIANCE: Final = manoeuvre_noise(np.zeros(1))[0, :6, :6]
"""(6, 6) what a recent manoeuvre adds to a predicted state, in any axes, km and km/s."""
