"""Screening of objects with several element sets, each in force for a term: assignment to terms, and term borders.

Rows of one object are searched like several objects. At the border between two sets the object's path jumps, so that
the distance of a pair is piecewise. Its approaches are the minima within the terms. A border itself is one where the
distance falls up to it and does not fall further beyond it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import CoLocated, Events, Failures, ScreeningResult
from sda_platform.units import SECOND_NS

REACH_NS = 600 * SECOND_NS
"""How far beyond its term a row is searched; a pair's minima this near on both sides of a border are one encounter.

A pair within 5 km at 10 m/s or more passes its minimum within this time; encounters are a quarter of an orbit apart.
"""
_EQUAL_KM = 1e-9


def within_terms(
    propagator: Propagator, terms: Terms, found: ScreeningResult, start_ns: int, end_ns: int, threshold_km: float
) -> ScreeningResult:
    """Return the part of ``found`` in [start, end) when each row counts in its term only; each finding of a pair once.

    ``terms.row`` must be 0 … n-1 of the propagator. ``found`` covers each row up to REACH_NS beyond its term.
    """
    events = _joined(
        _inside(terms, found.events),
        _at_end(propagator, terms, found.events, threshold_km),
        _at_begin(propagator, terms, found.events, threshold_km),
    )
    events = _one_per_encounter(propagator.elements.norad_id, events)
    in_window = (events.tca_time_ns >= start_ns) & (events.tca_time_ns < end_ns)
    ids = propagator.elements.norad_id
    return ScreeningResult(
        events.take(in_window), _first_by_pair(ids, found.colocated), _first_by_object(ids, found.failures)
    )


def _bounds(terms: Terms, lo: IntArray, hi: IntArray) -> tuple[IntArray, IntArray]:
    """When rows of both objects are in force together: [begin, end), empty where begin >= end."""
    return np.maximum(terms.from_ns[lo], terms.from_ns[hi]), np.minimum(terms.until_ns[lo], terms.until_ns[hi])


def _inside(terms: Terms, events: Events) -> Events:
    begin_ns, end_ns = _bounds(terms, events.lo, events.hi)
    return events.take((events.tca_time_ns >= begin_ns) & (events.tca_time_ns < end_ns))


def _at_end(propagator: Propagator, terms: Terms, events: Events, threshold_km: float) -> Events:
    """Pairs that still approach when a term ends, and are no nearer by the sets that take over."""
    begin_ns, end_ns = _bounds(terms, events.lo, events.hi)
    after_ns = events.tca_time_ns - end_ns
    chosen = events.take((begin_ns < end_ns) & (after_ns >= 0) & (after_ns < REACH_NS))
    _, border_ns = _bounds(terms, chosen.lo, chosen.hi)
    km, km_s, speed = _relative(propagator, chosen.lo, chosen.hi, border_ns)
    next_km, _, _ = _relative(
        propagator, _row_at(propagator, terms, chosen.lo, border_ns), _row_at(propagator, terms, chosen.hi, border_ns),
        border_ns,
    )  # fmt: skip
    wanted = (km <= threshold_km) & (km_s < 0) & ~(next_km < km)
    return Events(chosen.lo, chosen.hi, border_ns - 1, km, speed).take(wanted)


def _at_begin(propagator: Propagator, terms: Terms, events: Events, threshold_km: float) -> Events:
    """Pairs that already recede when a term begins, and were no nearer by the sets before."""
    begin_ns, end_ns = _bounds(terms, events.lo, events.hi)
    before_ns = begin_ns - events.tca_time_ns
    chosen = events.take((begin_ns < end_ns) & (before_ns > 0) & (before_ns < REACH_NS))
    border_ns, _ = _bounds(terms, chosen.lo, chosen.hi)
    km, km_s, speed = _relative(propagator, chosen.lo, chosen.hi, border_ns)
    last_km, _, _ = _relative(
        propagator, _row_at(propagator, terms, chosen.lo, border_ns - 1),
        _row_at(propagator, terms, chosen.hi, border_ns - 1), border_ns,
    )  # fmt: skip
    wanted = (km <= threshold_km) & (km_s > 0) & ~(last_km <= km)
    return Events(chosen.lo, chosen.hi, border_ns, km, speed).take(wanted)


def _row_at(propagator: Propagator, terms: Terms, row: IntArray, time_ns: IntArray) -> IntArray:
    """Return the row of the same object that is in force at ``time_ns``; rows are ordered by object, then term."""
    found = row.copy()
    for step in (1, -1):
        while True:
            leaves = time_ns >= terms.until_ns[found] if step > 0 else time_ns < terms.from_ns[found]
            if not leaves.any():
                break
            found = np.where(leaves, found + step, found)
    assert (propagator.elements.norad_id[found] == propagator.elements.norad_id[row]).all()
    return found


def _relative(
    propagator: Propagator, lo: IntArray, hi: IntArray, time_ns: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distance in km, its rate and the relative speed in km/s, (n,) each; NaN where SGP4 refuses."""
    if not len(lo):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    (_, r1, v1), (_, r2, v2) = propagator.at(lo, time_ns), propagator.at(hi, time_ns)
    distance = np.linalg.norm(r2 - r1, axis=-1)
    rate = np.einsum("ni,ni->n", r2 - r1, v2 - v1) / np.where(distance > 0, distance, 1.0)
    return distance, rate, np.linalg.norm(v2 - v1, axis=-1)


def _joined(*parts: Events) -> Events:
    columns = {f.name: np.concatenate([getattr(e, f.name) for e in parts]) for f in dataclasses.fields(Events)}
    _, order = np.unique(np.stack([columns[name] for name in ("tca_time_ns", "lo", "hi")]), axis=1, return_index=True)
    return Events(**{name: column[order] for name, column in columns.items()})


def _one_per_encounter(norad_id: IntArray, events: Events) -> Events:
    """Of minima of a pair by different sets within REACH_NS of each other, keep the nearer; of equal ones the later."""
    order = np.lexsort((events.tca_time_ns, norad_id[events.hi], norad_id[events.lo]))
    kept = np.ones(len(events), dtype=np.bool_)
    last = -1
    for this in order.tolist():
        if last >= 0 and _same_encounter(norad_id, events, last, this):
            farther = this if events.miss_distance_km[last] < events.miss_distance_km[this] - _EQUAL_KM else last
            kept[farther] = False
            last = last if farther == this else this
        else:
            last = this
    return events.take(kept)


def _same_encounter(norad_id: IntArray, events: Events, one: int, other: int) -> bool:
    rows = [(int(events.lo[n]), int(events.hi[n])) for n in (one, other)]
    pairs = [(norad_id[lo], norad_id[hi]) for lo, hi in rows]
    near = events.tca_time_ns[other] - events.tca_time_ns[one] < REACH_NS
    return bool(pairs[0] == pairs[1] and rows[0] != rows[1] and near)


def _first_by_pair(norad_id: IntArray, pairs: CoLocated) -> CoLocated:
    first = _first_of(pairs.time_ns, norad_id[pairs.lo], norad_id[pairs.hi])
    return CoLocated(pairs.lo[first], pairs.hi[first], pairs.time_ns[first])


def _first_by_object(norad_id: IntArray, failures: Failures) -> Failures:
    first = _first_of(failures.time_ns, norad_id[failures.index], norad_id[failures.index])
    return Failures(failures.index[first], failures.time_ns[first], failures.error[first])


def _first_of(time_ns: IntArray, one: IntArray, other: IntArray) -> npt.NDArray[np.int64]:
    order = np.lexsort((time_ns, other, one))
    _, first = np.unique(np.stack([one[order], other[order]]), axis=1, return_index=True)
    return order[first]
