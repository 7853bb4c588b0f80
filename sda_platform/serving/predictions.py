"""States of an object with covariances: by the best ephemeris of each time, else by SGP4 from the set in force.

The covariance of an element set is the platform's model by regime and age, scaled by the object's own history. The
sets of the view give that history, as those of the catalogue give its columns of error scales.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.clock import iso
from sda_platform.formats.element_set import OWN_ORIGINATOR, set_marking
from sda_platform.formats.markings import Marking
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.element_history import HISTORY_NS, newest_scales
from sda_platform.orbits.element_order import rank
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.serving.record import StoredElements
from sda_platform.serving.source import KnownPath
from sda_platform.serving.states import elements_of
from sda_platform.serving.view import View, place

T = TypeVar("T")
ELEMENT_SET: Final = "element_set"
_NONE: Final = -1


@dataclass(frozen=True, eq=False)
class Stretch:
    """States (n, 6) and covariances (n, 6, 6) at ``time_ns`` (n,), TEME, that one source gives; km and km/s.

    ``origin``: the kind of source; ``name``: which one; ``error_scales``: of an element set. NaN: no covariance.
    """

    origin: str
    name: str
    time_ns: IntArray
    states: FloatArray
    covariances: FloatArray
    marking: Marking
    error_scales: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is predicted of an object: stretches by time, and of how many times there is no state, and why."""

    stretches: tuple[Stretch, ...]
    missing: int
    reason: str


def predicted(view: View, record: StoredElements, time_ns: IntArray, paths: Sequence[KnownPath]) -> Prediction:
    """Predict the object of ``record``, its set in force, at times that ascend; of ``paths`` the last one is best."""
    chosen = _chosen(view, record.norad_id, time_ns, paths)
    stretches, codes = list[Stretch](), list[int]()
    for number, rows in _runs(chosen.tolist()):
        if number != _NONE:
            stretches.append(_on_path(paths[number], time_ns[rows]))
            continue
        times = time_ns[rows].tolist()
        sets = view.in_force_at(record.norad_id, times)
        for _, part in _runs([place(each) for each in sets]):
            found, errors = _by_set(view, record, sets[part.start], time_ns[rows][part])
            codes += errors
            stretches += [found] if len(found.time_ns) else []
    reason = SGP4_ERRORS.get(codes[0], f"SGP4 error {codes[0]}") if codes else ""
    return Prediction(tuple(stretches), len(codes), reason)


def error_scales(view: View, record: StoredElements) -> FloatArray:
    """Return how much faster the errors of a set's object grow than those of its regime, (3,), by its history.

    As `catalog.error_history`: the sets of 30 days up to its epoch, without those that this platform determined.
    """
    until_ns = record.epoch_time_ns
    history = view.history(record.norad_id, until_ns - HISTORY_NS + 1, until_ns)
    sets = [each for each in history if each.originator != OWN_ORIGINATOR]
    if not sets:
        return np.ones(3)
    sets.sort(key=lambda each: rank(each._asdict(), FOREVER_NS), reverse=True)
    _, scales, _ = newest_scales(elements_of(sets))
    return np.asarray(scales[0])


def _chosen(view: View, norad_id: int, time_ns: IntArray, paths: Sequence[KnownPath]) -> IntArray:
    """Return the number of the best path at each time, or _NONE.

    A path of our own ends where a set that is ahead comes into force: it lacks the planned manoeuvre.
    """
    ahead = next(view.history(norad_id, view.as_of_ns + EPOCH_TOLERANCE_NS + 1), None)
    ends_ns = ahead.epoch_time_ns - EPOCH_TOLERANCE_NS if ahead else FOREVER_NS
    chosen = np.full(len(time_ns), _NONE)
    for number, each in enumerate(paths):
        path = each.ephemeris
        is_inside = (time_ns >= path.usable_from_ns) & (time_ns <= path.usable_until_ns)
        chosen[is_inside & (time_ns < ends_ns) if each.is_own else is_inside] = number
    return chosen


def _on_path(known: KnownPath, time_ns: IntArray) -> Stretch:
    states, covariances = known.ephemeris.at(time_ns)
    return Stretch(known.origin, known.ephemeris_id, time_ns, states, covariances, known.marking)


def _by_set(view: View, current: StoredElements, found: StoredElements, time_ns: IntArray) -> tuple[Stretch, list[int]]:
    """Return the states by SGP4 where there are any, and the codes of those that it refuses."""
    is_ahead = found.epoch_time_ns > view.as_of_ns + EPOCH_TOLERANCE_NS
    scales = error_scales(view, current if is_ahead else found)  # an object's next sets err like its others
    propagator, rows = Propagator(elements_of([found]), scales[None]), np.zeros(len(time_ns), np.int64)
    error, r, v = propagator.at(rows, time_ns)
    is_known: npt.NDArray[np.bool_] = error == 0
    time_ns, r, v, rows = time_ns[is_known], r[is_known], v[is_known], rows[is_known]
    covariances = rtn_to_teme(element_covariance_rtn(propagator, rows, time_ns, r, v), r, v)
    name = f"{iso(found.epoch_time_ns)} by {found.originator or 'UNKNOWN'}"
    marking = set_marking(found.classification, found.data_mode)
    states = np.concatenate([r, v], axis=1)
    stretch = Stretch(ELEMENT_SET, name, time_ns, states, covariances, marking, tuple(scales.tolist()))
    return stretch, error[~is_known].tolist()


def _runs(keys: Iterable[T]) -> list[tuple[T, slice]]:
    """Return each run of equal keys, and where it lies."""
    found, begin = list[tuple[T, slice]](), 0
    for key, run in groupby(keys):
        end = begin + sum(1 for _ in run)
        found.append((key, slice(begin, end)))
        begin = end
    return found
