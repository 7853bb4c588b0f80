"""Error scales of an object from the history of its element sets.

Each set is propagated to the epochs of later sets of its object and compared with them. The differences, in units of
the regime's model (`element_errors`), give a scale along each axis. Manoeuvres and bad sets hardly count: they are the
long tails of the distribution.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.element_errors import middle_variance, regimes, scale_by_history, set_covariance_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_NS

HISTORY_NS: Final = 30 * DAY_NS
"""How far back the history of a set reaches."""
AGES_DAYS: Final = (1.0, 3.0, 7.0)
"""Ages at which predictions are compared, within a quarter."""
_AGE_TOLERANCE = 0.25
# More frequent sets share observations; they would add no information.
_SPACING_NS = 0.7 * DAY_NS
_MOST_SETS = 20
# The model of the regime counts as much as this many differences, of which many share their sets.
_PRIOR_DIFFERENCES = 2.5
# Of Student's t distribution, by which an object's own differences are weighted: many sigmas count little.
_OWN_DEGREES = 3.0
_ITERATIONS = 8
_LEAST_SQUARE = 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class Differences:
    """Predictions (m,) of sets against later sets of the same object, at the epochs of these.

    Attributes:
        early, late: (m,) rows of the sets.
        age_days: (m,) time between their epochs.
        nominal_days: (m,) the age that it represents.
        rtn_km: (m, 3) prediction minus later set, along the later set's radius, orbit and normal: height, arc, arc.
        r_teme_km, v_teme_km_s: (m, 3) states of the later sets.
    """

    early: IntArray
    late: IntArray
    age_days: FloatArray
    nominal_days: FloatArray
    rtn_km: FloatArray
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray

    def take(self, chosen: npt.NDArray[Any]) -> Differences:
        """Select differences by mask or position."""
        return Differences(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def own_differences(propagator: Propagator, ages_days: tuple[float, ...] = AGES_DAYS) -> Differences:
    """Each set against the set of its object nearest to each age later; sets are ordered by object, then epoch."""
    elements = propagator.elements
    early, late, nominal = _pairs(elements, ages_days)
    time_ns = elements.epoch_time_ns[late]
    _, r_own, v_own = propagator.at(np.arange(len(elements)), elements.epoch_time_ns)
    _, predicted, _ = propagator.at(early, time_ns)
    r, v = r_own[late], v_own[late]
    rtn_km = _along_orbit(r, v, predicted)
    age_days = (time_ns - elements.epoch_time_ns[early]) / DAY_NS
    return Differences(early, late, age_days, nominal, rtn_km, r, v).take(np.asarray(np.isfinite(rtn_km).all(axis=1)))


def difference_covariance(propagator: Propagator, found: Differences) -> FloatArray:
    """Compute the model's covariance (m, 3, 3) of differences of two sets, along the later set's axes, km2.

    What SGP4 lacks is left out: both have it.
    """
    time_ns, states = propagator.elements.epoch_time_ns[found.late], (found.r_teme_km, found.v_teme_km_s)
    both = [set_covariance_rtn(propagator, rows, time_ns, *states) for rows in (found.early, found.late)]
    return both[0][:, :3, :3] + both[1][:, :3, :3]


def newest_scales(elements: ElementSets) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the error scales of each object by the history up to its newest set.

    Args:
        elements: sets of any objects in any order. Of sets of one object with one epoch the first given counts.

    Returns:
        catalogue numbers (g,) ascending, scales (g, 3) radial, in-track and cross-track, and the number of differences
        (g,) that they rest on.
    """
    norad_id, last_ns = _last_epochs(elements)
    recent = elements.epoch_time_ns > last_ns[np.searchsorted(norad_id, elements.norad_id)] - HISTORY_NS
    sets = elements.take(np.flatnonzero(recent))
    propagator = Propagator(sets.take(_spaced(sets)))
    newest = np.searchsorted(propagator.elements.norad_id, norad_id, side="right") - 1
    return norad_id, *_scales(propagator, newest)


def running_scales(propagator: Propagator) -> tuple[FloatArray, IntArray]:
    """Return the error scales (n, 3) of each set by the history up to it, and the number of differences (n,) in it.

    Sets are ordered by object, then epoch, without repetitions.
    """
    return _scales(propagator, np.arange(len(propagator)))


def _scales(propagator: Propagator, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Return `running_scales` of the sets ``rows`` (k,)."""
    elements = propagator.elements
    found, regime = own_differences(propagator), regimes(elements)
    expected = difference_covariance(Propagator(elements), found)
    middle = middle_variance(regime[found.early])[:, None] * np.einsum("nii->ni", expected)
    order = np.argsort(found.late, kind="stable")
    squares, late = (found.rtn_km**2 / middle)[order], found.late[order]
    place = _timeline(elements)
    since = np.searchsorted(place, place[rows] - HISTORY_NS / DAY_NS, side="right")
    first, end = np.searchsorted(late, since), np.searchsorted(late, rows, side="right")
    number = np.maximum(end - first, 0)
    owner = np.repeat(np.arange(len(rows)), number)
    own = squares[np.arange(len(owner)) - np.repeat(np.cumsum(number) - number - first, number)]
    return scale_by_history(_times_usual(own, owner, number), regime[rows], number), number


def _times_usual(squares: FloatArray, owner: IntArray, number: IntArray) -> FloatArray:
    """Return how many times larger than usual errors (n, 3) are in the middle, by squares (m, 3) of each ``owner``.

    It is the likeliest scale of Student's t distribution, together with the regime's, found by weights in turns.
    Source: Lange, Little & Taylor, "Robust Statistical Modeling Using the t Distribution", JASA 84 (1989).
    """
    count, known = len(number), (_PRIOR_DIFFERENCES + number)[:, None]

    def summed(values: FloatArray) -> FloatArray:
        return np.stack([np.bincount(owner, axis, minlength=count) for axis in values.T], axis=1)

    # The logarithm of the square of a normal variable is -1.27 in the mean.
    variance = np.exp(summed(np.log(squares + _LEAST_SQUARE) + 1.27) / known)
    for _ in range(_ITERATIONS):
        weight = (_OWN_DEGREES + 1) / (_OWN_DEGREES + squares / variance[owner])
        variance = (_PRIOR_DIFFERENCES + summed(weight * squares)) / known
    return np.asarray(np.sqrt(variance))


def _timeline(elements: ElementSets) -> FloatArray:
    """Epochs (n,) in days, each object's a million days after those of the object before."""
    starts = np.append(True, elements.norad_id[1:] != elements.norad_id[:-1])[: len(elements)]
    day = (elements.epoch_time_ns - elements.epoch_time_ns.min(initial=2**62)) / DAY_NS
    return np.asarray(np.cumsum(starts) * 1e6 + day)


def _pairs(elements: ElementSets, ages_days: tuple[float, ...]) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows of earlier and later sets, and the age that each pair represents."""
    place, rows = _timeline(elements), np.arange(len(elements))
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for age in ages_days if len(elements) else ():
        after = np.minimum(np.searchsorted(place, place + age), len(place) - 1)
        before = np.maximum(after - 1, 0)
        is_before = np.abs(place[before] - place - age) <= np.abs(place[after] - place - age)
        nearest = np.where(is_before, before, after)
        close = np.abs(place[nearest] - place - age) <= _AGE_TOLERANCE * age
        parts.append((rows[close], nearest[close], np.full(int(close.sum()), age)))
    early, late, nominal = (np.concatenate(column) for column in zip(*parts, strict=True))
    return early, late, nominal


def _along_orbit(r: FloatArray, v: FloatArray, predicted: FloatArray) -> FloatArray:
    """Height, arc along and arc across (m, 3), km: straight axes would show an arc of 1,000 km as 70 km of height."""
    x, y, z = np.einsum("nij,nj->ni", rtn_basis(r, v), predicted).T
    radius, distance = np.linalg.norm(r, axis=1), np.linalg.norm(predicted, axis=1)
    with np.errstate(invalid="ignore"):
        across = np.arcsin(np.clip(z / distance, -1, 1))
    return np.stack([distance - radius, radius * np.arctan2(y, x), radius * across], axis=1)


def _last_epochs(elements: ElementSets) -> tuple[IntArray, IntArray]:
    norad_id, row = np.unique(elements.norad_id, return_inverse=True)
    last = np.full(len(norad_id), -(2**62))
    np.maximum.at(last, row, elements.epoch_time_ns)
    return norad_id, last


def _spaced(elements: ElementSets) -> IntArray:
    """Return rows by object, then epoch: of each object the newest set, and before it those at least _SPACING_NS apart,
    at most _MOST_SETS.
    """
    order = np.lexsort((np.arange(len(elements))[::-1], elements.epoch_time_ns, elements.norad_id))
    ids, epochs = elements.norad_id[order].tolist(), elements.epoch_time_ns[order].tolist()
    kept, last_id, last_ns, count = [], None, 0, 0
    for place in range(len(order) - 1, -1, -1):
        is_new = ids[place] != last_id
        if is_new or (last_ns - epochs[place] >= _SPACING_NS and count < _MOST_SETS):
            kept.append(order[place])
            last_id, last_ns, count = ids[place], epochs[place], 1 if is_new else count + 1
    return np.array(kept[::-1], dtype=np.int64)
