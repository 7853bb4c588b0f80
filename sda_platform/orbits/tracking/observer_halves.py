"""Fits of one window by two halves of its observers, so that a track's filter can see whether both contradict it.

One half is the observer with the most observations, the other one everybody else. An error of one observer, as a bias
or a false association, is then in one half only. Windows with ranges or reported states have no halves: one such window
may determine a whole state, in which errors of the model that is common to all observers add up.
"""

from __future__ import annotations

import numpy as np

from sda_platform.arrays import BoolArray, FloatArray, IntArray, TextArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.manoeuvre_evidence import MANOEUVRE_COVARIANCE
from sda_platform.orbits.tracking.window import FusedWindow


def fit_halves(
    observations: ObservationArrays, found: FusedWindow, propagator: Propagator, mid_time_ns: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Fit the halves of each object that several observers saw, by directions alone.

    Args:
        observations: (m,) of the window, in the order of ``found``.
        found: the fits of its ``g`` objects.
        propagator, mid_time_ns: the catalogue, and the epoch of the fitted states.

    Returns:
        The objects (h,), in [0, g), where both halves converged; states (h, 2, 6) and covariances (h, 2, 6, 6) of their
        halves, TEME, km and km/s. Each has the prior of the object's fit.
    """
    is_by_directions = (found.fits.radar_count == 0) & (found.fits.isl_count == 0)
    rows = np.flatnonzero(found.fits.used)
    rows = rows[is_by_directions[found.group[rows]]]
    of_object = found.group[rows]
    is_leading, observers = leading_observers(of_object, observations.source_id[rows])
    number = np.full(len(found.objects), -1, dtype=np.int64)
    objects = np.unique(of_object[observers > 1])
    number[objects] = np.arange(len(objects))
    further = np.where(found.is_manoeuvred[objects, None, None], MANOEUVRE_COVARIANCE, 0.0)
    half = np.where(observers > 1, 2 * number[of_object] + ~is_leading, -1)
    fits = fit_windows(
        observations.take(rows), half, propagator, np.repeat(found.objects[objects], 2),
        np.full(2 * len(objects), mid_time_ns), np.repeat(further, 2, axis=0),
    )  # fmt: skip
    states = np.hstack([fits.r_teme_km, fits.v_teme_km_s]).reshape(-1, 2, 6)
    both = fits.converged.reshape(-1, 2).all(axis=1)
    return objects[both], states[both], fits.covariance_teme.reshape(-1, 2, 6, 6)[both]


def leading_observers(group: IntArray, source_id: TextArray) -> tuple[BoolArray, IntArray]:
    """Return whether each observation (m,) is of its group's leading observer, and the number of its group's observers
    (m,).

    The leading observer has the most observations, of several the first name.
    """
    names, source = np.unique(source_id, return_inverse=True)
    pairs, pair, count = np.unique(group * max(len(names), 1) + source, return_inverse=True, return_counts=True)
    owner = pairs // max(len(names), 1)
    order = np.lexsort((pairs, -count, owner))
    is_leading = np.zeros(len(pairs), dtype=np.bool_)
    is_leading[order[np.diff(owner[order], prepend=-1) != 0]] = True
    return is_leading[pair], np.bincount(owner)[group]
