"""Jumps between successive element sets of an object, and what each probably is: manoeuvre, bad fit or cross-tag.

Each set is compared with its predecessor, propagated to its epoch, and its neighbours with each other. A deviation is
measured in units of the object's own usual one, so that drag and the quality of tracking do not count. A manoeuvre
lasts: the next set agrees with the new orbit, and energy or inclination has changed. A bad fit or a set of another
object (a cross-tag) is alone: its neighbours agree with each other.

`benchmarks/element_jumps.py` measures false alarms on a month of real sets of objects that cannot manoeuvre: 2.3
manoeuvres, 3.7 bad fits and 0.1 cross-tags are reported per 1,000 sets. Of manoeuvres of 1 m/s it finds 88 %.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.elements import ElementSets, semi_major_axis_km
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_NS

NONE, MANOEUVRE, BAD_FIT, CROSS_TAG, UNSETTLED = range(5)
KINDS: Final = ("none", "manoeuvre", "bad fit", "cross-tag", "unsettled")
"""What a set is against its predecessor; unsettled: it deviates, and the sets after it do not decide why."""

LEAST_SETS: Final = 5
"""Sets of an object from which its usual deviation is known; objects with fewer are not judged."""
_JUMP: Final = 12.0  # times the usual deviation of position
_CHANGE: Final = 12.0  # times the usual deviation of energy or inclination
OTHER_ORBIT_KM: Final = 100.0
"""A set that is off by more, and alone, is probably of another object."""
# Deviations grow with the time between sets: radial and across the plane slower than in-track.
_GROWTH: Final = np.array([0.5, 1.0, 0.5])
_SHORTEST_DAYS: Final = 0.5
# No object is known better than this: the resolution of the two-line format.
LEAST_DEVIATION_KM: Final = np.array([0.05, 0.3, 0.05])
"""Radial, in-track and across the plane, after a day."""
_LEAST_ENERGY_KM: Final = 0.002
_LEAST_INCLINATION_DEG: Final = 2e-4


@dataclass(frozen=True, eq=False)
class Jumps:
    """One verdict per set.

    Attributes:
        kind: (n,) positions in KINDS.
        is_judged: (n,) whether the object has enough sets, and the set a predecessor and a successor.
        score: (n,) deviation of position from the predecessor, times the usual one; NaN where there is none.
    """

    kind: npt.NDArray[np.int8]
    is_judged: npt.NDArray[np.bool_]
    score: FloatArray


def classify_jumps(elements: ElementSets) -> Jumps:
    """Judge each of ``elements``, which are ordered by object, then strictly by epoch. Raises ValueError."""
    count = len(elements)
    if count == 0:
        return Jumps(np.zeros(0, np.int8), np.zeros(0, bool), np.zeros(0))
    same = elements.norad_id[1:] == elements.norad_id[:-1]
    if np.any(same & (np.diff(elements.epoch_time_ns) <= 0)) or np.any(np.diff(elements.norad_id) < 0):
        raise ValueError("sets must be ordered by object, then strictly by epoch")
    has_previous, has_next = np.append(False, same), np.append(same, False)
    later = np.flatnonzero(has_previous)
    inner = np.flatnonzero(has_previous & has_next)
    propagator = Propagator(elements)
    step_km, across_km = np.full((count, 3), np.nan), np.full((count, 3), np.nan)
    if len(later):
        step_km[later] = deviations_km(propagator, later - 1, later)
    if len(inner):
        across_km[inner] = deviations_km(propagator, inner - 1, inner + 1)
    days, days_across = _days(elements, later, 0), _days(elements, inner, 1)
    usual, change = _usual_deviations(elements, grown_km(step_km, days), days)
    score, across = _greatest(grown_km(step_km, days) / usual), _greatest(grown_km(across_km, days_across) / usual)
    is_judged = np.zeros(count, bool)
    is_judged[inner] = np.isfinite(score[inner])
    kind = _kinds(score, across, change, _greatest(np.abs(step_km)), has_next, is_judged)
    return Jumps(kind, is_judged, score)


def _kinds(
    score: FloatArray,
    across: FloatArray,
    change: FloatArray,
    distance_km: FloatArray,
    has_next: npt.NDArray[np.bool_],
    is_judged: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int8]:
    kind = np.zeros(len(score), np.int8)
    jumps, following = score > _JUMP, np.append(score[1:], np.nan)
    is_alone = is_judged & jumps & (following > _JUMP) & (across < _JUMP)
    kind[is_alone] = np.where(distance_km[is_alone] > OTHER_ORBIT_KM, CROSS_TAG, BAD_FIT)
    follows_one = np.append(False, is_alone[:-1])  # the return from an outlier is no jump of its own
    others = is_judged & jumps & ~is_alone & ~follows_one
    lasts = has_next & (following <= _JUMP)
    kind[others & lasts & (change > _CHANGE)] = MANOEUVRE
    kind[others & ~lasts] = UNSETTLED
    return kind


def deviations_km(propagator: Propagator, early: IntArray, late: IntArray) -> FloatArray:
    """Sets ``early`` against ``late`` at the epoch of ``late``: radial, in-track, across the plane (m, 3).

    Across the plane it is the distance at which the planes are furthest apart: many epochs lie at a node, where a
    change of inclination moves nothing.
    """
    time_ns = propagator.elements.epoch_time_ns[late]
    r_km, v_km_s = propagator.at(late, time_ns)[1:]
    early_r_km, early_v_km_s = propagator.at(early, time_ns)[1:]
    distance_km = np.linalg.norm(r_km, axis=1, keepdims=True)
    normal, early_normal = _normal(r_km, v_km_s), _normal(early_r_km, early_v_km_s)
    radial = r_km / distance_km
    axes = np.stack([radial, np.cross(normal, radial)], axis=1)
    in_plane_km = np.einsum("nij,nj->ni", axes, early_r_km - r_km)
    tilt = np.linalg.norm(np.cross(normal, early_normal), axis=1, keepdims=True)
    return np.hstack([in_plane_km, distance_km * tilt])


def _normal(r_km: FloatArray, v_km_s: FloatArray) -> FloatArray:
    momentum = np.cross(r_km, v_km_s)
    return np.asarray(momentum / np.linalg.norm(momentum, axis=1, keepdims=True))


def _days(elements: ElementSets, rows: IntArray, ahead: int) -> FloatArray:
    """Days from the set before each of ``rows`` to the one ``ahead`` of it, NaN for other sets."""
    days = np.full(len(elements), np.nan)
    if len(rows):
        days[rows] = (elements.epoch_time_ns[rows + ahead] - elements.epoch_time_ns[rows - 1]) / DAY_NS
    return days


def grown_km(deviation_km: FloatArray, days: FloatArray) -> FloatArray:
    """Deviations (m, 3) after ``days`` (m,), as of one day."""
    return np.asarray(np.abs(deviation_km) / np.maximum(days, _SHORTEST_DAYS)[:, None] ** _GROWTH)


def _usual_deviations(
    elements: ElementSets, of_a_day_km: FloatArray, days: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Of each set's object the usual deviation of position (n, 3), NaN where it has too few sets; and of each set the
    change of energy or inclination, times the object's usual one (n,)."""
    usual, change = np.full((len(elements), 3), np.nan), np.full(len(elements), np.nan)
    axis_km = semi_major_axis_km(elements)
    starts = np.flatnonzero(np.append(True, elements.norad_id[1:] != elements.norad_id[:-1]))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(elements)], strict=True):
        if end - start < LEAST_SETS:
            continue
        rows = slice(start + 1, end)
        usual[start:end] = np.maximum(np.nanmedian(of_a_day_km[rows], axis=0), LEAST_DEVIATION_KM)
        decay_km = np.diff(axis_km[start:end])
        energy_km = np.abs(decay_km - np.median(decay_km / days[rows]) * days[rows])
        tilt_deg = np.diff(elements.inclination_deg[start:end])
        tilt_deg = np.abs(tilt_deg - np.median(tilt_deg))
        change[rows] = np.maximum(
            energy_km / max(float(np.median(energy_km)), _LEAST_ENERGY_KM),
            tilt_deg / max(float(np.median(tilt_deg)), _LEAST_INCLINATION_DEG),
        )
    return usual, change


def _greatest(values: FloatArray) -> FloatArray:
    """Return the greatest component of each row; NaN where one is."""
    return np.asarray(values.max(axis=1))
