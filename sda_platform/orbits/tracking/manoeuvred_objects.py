"""Objects that observations show beyond their gates: a manoeuvre of some m/s takes an object out of the gate of its
element set within minutes.

Observations within no gate are compared again, with what a manoeuvre may add to the prediction. Those of one object
count if they are apart in time, and if one path explains them together with the object's other observations. Several
observers are needed. Another object near it would have to move along with it.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import BoolArray, IntArray, TextArray
from sda_platform.orbits.chi_square import share_above
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.association import possible_pairs
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform.orbits.tracking.manoeuvre_evidence import MANOEUVRE_COVARIANCE
from sda_platform.orbits.tracking.observer_halves import leading_observers
from sda_platform.orbits.tracking.window import FusedWindow
from sda_platform.units import SECOND_NS

# Two objects within the gate at one time are some kilometres apart a second later, unless they move together.
_APART_NS = SECOND_NS
_IMPLAUSIBLE = 1e-3
_STATE = 6


def with_manoeuvred(
    observations: ObservationArrays, found: FusedWindow, propagator: Propagator, mid_time_ns: int
) -> FusedWindow:
    """Return the window with fits of objects that are beyond their gates.

    Args:
        observations: (m,) of the window, in the order of ``found``.
        found: the fits of the objects within their gates.
        propagator, mid_time_ns: the catalogue, and the epoch of the fitted states.
    """
    rows, candidates = _beyond_gates(observations, found, propagator)
    objects = _alone_and_apart(rows, candidates, observations.sensor_time_ns)
    if not len(objects):
        return found
    group = _renumbered(found.group, _places(objects, found.objects))
    place = _places(objects, candidates)
    group[rows[place >= 0]] = place[place >= 0]
    further = np.broadcast_to(MANOEUVRE_COVARIANCE, (len(objects), 6, 6))
    fits = fit_windows(observations, group, propagator, objects, np.full(len(objects), mid_time_ns), further)
    is_consistent = share_above(fits.chi_square, np.maximum(fits.degrees_of_freedom, 1)) >= _IMPLAUSIBLE
    holds = fits.converged & (fits.outliers_rejected == 0) & is_consistent
    # Observations beyond the gate of one observer may share an error of it. Others test the path only if there are more
    # components than a state has.
    sources, count = observations.source_id, len(objects)
    is_tested = _has_observers(group, sources, count) & (fits.degrees_of_freedom > _STATE)
    holds &= is_tested | _has_observers(np.where(found.group < 0, group, -1), sources, count)
    return _merged(found, objects, holds, group, fits)


def _beyond_gates(
    observations: ObservationArrays, found: FusedWindow, propagator: Propagator
) -> tuple[IntArray, IntArray]:
    """Observations (p,) within no gate, and objects (p,) that a manoeuvre may have brought there."""
    lone = np.flatnonzero((found.group < 0) & ~found.is_near)
    left = observations.take(lone)
    pairs, _ = possible_pairs(left, prepare(left), propagator, further_rtn=MANOEUVRE_COVARIANCE)
    inside = pairs.take(pairs.inside)
    return lone[inside.observation], inside.candidate


def _alone_and_apart(rows: IntArray, candidates: IntArray, time_ns: IntArray) -> IntArray:
    """Return the objects, ascending, with observations that are apart in time and of no other such object."""
    objects, number = np.unique(candidates, return_inverse=True)
    first, last = np.full(len(objects), np.iinfo(np.int64).max), np.zeros(len(objects), dtype=np.int64)
    np.minimum.at(first, number, time_ns[rows])
    np.maximum.at(last, number, time_ns[rows])
    is_apart = last - first >= _APART_NS
    rows, number = rows[is_apart[number]], number[is_apart[number]]
    _, row, count = np.unique(rows, return_inverse=True, return_counts=True)
    is_apart[number[count[row] > 1]] = False
    return np.asarray(objects[is_apart], dtype=np.int64)


def _has_observers(group: IntArray, source_id: TextArray, count: int) -> BoolArray:
    """Return whether several observers have observations (m,) of each of ``count`` objects; ``group`` is the object, or
    -1.
    """
    rows = np.flatnonzero(group >= 0)
    _, observers = leading_observers(group[rows], source_id[rows])
    has_several = np.zeros(count, dtype=np.bool_)
    has_several[group[rows[observers > 1]]] = True
    return has_several


def _places(objects: IntArray, some: IntArray) -> IntArray:
    """Where each of ``some`` is in ``objects`` (ascending); -1 if it is not there."""
    place = np.searchsorted(objects, some).clip(max=len(objects) - 1)
    return np.where(objects[place] == some, place, -1)


def _renumbered(group: IntArray, number: IntArray) -> IntArray:
    """``group`` with the ``number`` of each of its groups; -1 stays."""
    return np.append(number, -1)[group]


def _merged(found: FusedWindow, objects: IntArray, holds: BoolArray, group: IntArray, fits: StateFits) -> FusedWindow:
    """``found`` with the ``fits`` of ``objects`` that hold; ``group`` (m,) is each observation's place in these."""
    if not holds.any():
        return found
    is_kept = ~np.isin(found.objects, objects[holds])
    both = np.concatenate([found.objects[is_kept], objects[holds]])
    order = np.argsort(both)

    def joined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.concatenate([one[is_kept], other[holds]])[order]

    is_theirs = (group >= 0) & holds[group]
    numbers = np.where(
        is_theirs,
        _renumbered(group, _places(both[order], objects)),
        _renumbered(found.group, _places(both[order], found.objects)),
    )
    columns = {
        field.name: np.where(is_theirs, fits.used, found.fits.used)
        if field.name == "used"
        else joined(getattr(found.fits, field.name), getattr(fits, field.name))
        for field in dataclasses.fields(StateFits)
    }
    return FusedWindow(
        objects=both[order],
        group=numbers,
        is_near=found.is_near,
        fits=StateFits(**columns),
        refitted=joined(found.refitted, np.ones(len(objects), dtype=np.bool_)),
        is_manoeuvred=joined(found.is_manoeuvred, np.ones(len(objects), dtype=np.bool_)),
    )
