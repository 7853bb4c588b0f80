"""Screening: finds all pairs of objects that pass within a threshold during a window of time.

Complete by construction for closed orbits. Samples are thirty seconds apart. At the sample nearest to its closest
approach, a pair is no farther apart than a bound: the threshold plus, for each object, its interpolation error and its
motion in fifteen seconds. Every pair within that bound is tested. The error is bounded by the fourth derivative of the
orbit, or measured (``path_bounds``); the result itself always comes from SGP4. Samples are at fixed instants, so that
the events of a window are the union of the events of its parts, for any division. docs/explanation/screening.md has
the full argument.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.broad_phase import find_nearby, sieve
from sda_platform.orbits.screening.closest_approach import (
    SLOWEST_EVENT_KM_S,
    RefinedApproaches,
    Seeds,
    passes_joined,
    refine,
    seed_approaches,
)
from sda_platform.orbits.screening.interpolated_paths import KNOT_S, InterpolatedEphemerides
from sda_platform.orbits.screening.path_bounds import path_bounds
from sda_platform.orbits.screening.slow_approaches import slow_approaches
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import SECOND_NS

_KNOT_NS = KNOT_S * SECOND_NS
# Two hours: long enough that per-block overhead vanishes, short enough that 27,000 objects fit in 100 MB.
_BLOCK_NS = 12 * _KNOT_NS
_SAME_EVENT_NS = SECOND_NS


@dataclasses.dataclass(frozen=True, eq=False)
class Events:
    """Close approaches, each column (m,), ordered by time, then pair.

    ``lo`` and ``hi`` are positions in the propagator's elements, the lower NORAD id first.
    """

    lo: IntArray
    hi: IntArray
    tca_time_ns: IntArray
    miss_distance_km: FloatArray
    relative_speed_km_s: FloatArray

    def __len__(self) -> int:
        return len(self.lo)

    def take(self, chosen: npt.NDArray[np.bool_]) -> Events:
        return Events(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(Events)))


@dataclasses.dataclass(frozen=True, eq=False)
class CoLocated:
    """Pairs near each other at less than ``SLOWEST_EVENT_KM_S``, once per pair, with the first such sample.

    Slow approaches (``slow_approaches``) of such a pair are events as well. Based on interpolated states: the
    threshold is good to tens of metres, the speed to 1 m/s.
    """

    lo: IntArray
    hi: IntArray
    time_ns: IntArray


@dataclasses.dataclass(frozen=True, eq=False)
class Failures:
    """Objects SGP4 rejected in the window, once each: not screened in knot intervals that touch a rejection.

    ``time_ns`` is the first knot (every ``KNOT_S`` seconds) rejected; ``error`` a key of ``SGP4_ERRORS``.
    """

    index: IntArray
    time_ns: IntArray
    error: ErrorArray


@dataclasses.dataclass(frozen=True, eq=False)
class ScreeningResult:
    """Result of screening a window: events, pairs that move together, and objects that could not be screened."""

    events: Events
    colocated: CoLocated
    failures: Failures


def screen(
    propagator: Propagator,
    primary_index: npt.ArrayLike,
    secondary_index: npt.ArrayLike,
    start_time_ns: int,
    end_time_ns: int,
    threshold_km: float = 5.0,
    terms: Terms | None = None,
    *,
    counted_ns: tuple[int, int] | None = None,
    volume: Volume | None = None,
    is_fast_only: bool = False,
) -> ScreeningResult:
    """Find every approach to <= ``threshold_km`` in [start, end) between a primary and a secondary.

    An approach is a minimum of distance at 10 m/s or faster, or the least distance of a slow pair's stay within the
    threshold (``slow_approaches``).

    Args:
        primary_index, secondary_index: positions in ``propagator.elements``; they may overlap, and a pair is reported
            once.
        start_time_ns, end_time_ns: nanoseconds since the Unix epoch, UTC, end exclusive.
        terms: when each row of the propagator is in force, where objects have several; pairs that move together and
            rejections count within them only. Events of all times are returned: ``piecewise`` filters them.
        counted_ns: with terms, the part [start, end) of the window in which pairs and rejections count; all of it.
        volume: around a primary, within the threshold, that slow approaches must enter; the threshold's sphere.
        is_fast_only: leave out slow approaches and pairs that move together.

    The cost grows with the longer list and the window; the other list costs little up to thousands of objects.

    Raises:
        ValueError: the window is empty or the threshold not positive.
    """
    if end_time_ns <= start_time_ns:
        raise ValueError(f"screening window is empty: start {start_time_ns} ns, end {end_time_ns} ns")
    if not threshold_km > 0:
        raise ValueError(f"threshold_km is {threshold_km}, must be positive")
    primaries = np.unique(np.asarray(primary_index, dtype=np.int64))
    secondaries = np.unique(np.asarray(secondary_index, dtype=np.int64))
    if len(primaries) > len(secondaries):
        # The order affects only the cost: the shells of the fewer objects exclude more of the many.
        primaries, secondaries = secondaries, primaries
    found: list[Seeds] = []
    together: list[Seeds] = []
    slow: list[Seeds] = []
    counted = terms if terms is None or counted_ns is None else terms.clipped(*counted_ns)
    failures: list[Failures] = []
    for block_ns in range(start_time_ns // _BLOCK_NS * _BLOCK_NS, end_time_ns, _BLOCK_NS):
        knots = _knots(block_ns, start_time_ns, end_time_ns)
        block = _screen_block(propagator, primaries, secondaries, knots, block_ns + _BLOCK_NS // 2, threshold_km)
        found.append(block[0])
        if not is_fast_only:
            together, slow = [*together, block[1]], [*slow, block[2]]
        failures.extend(_failures(tracks, counted) for tracks in block[3])
    passes = refine(propagator, _of_two_objects(propagator, _joined(found)))
    if terms is None:  # with terms, Newton's method may look at a row out of its term
        failures.append(_refine_failures(passes))
    samples = _of_two_objects(propagator, _joined(together))
    if counted is not None:
        samples = samples.take(np.flatnonzero(_in_force(counted, samples)))
    slow_passes = slow_approaches(
        propagator,
        _pairs(propagator, _of_two_objects(propagator, _joined(slow))),
        start_time_ns,
        end_time_ns,
        volume or Volume.sphere(threshold_km),
        np.isin(np.arange(len(propagator)), primary_index),
        terms,
    )
    return ScreeningResult(
        _events(propagator, passes, slow_passes, start_time_ns, end_time_ns, threshold_km),
        _colocated(propagator, samples, start_time_ns, end_time_ns),
        _first_failures(failures),
    )


def joined(propagator: Propagator, parts: Sequence[ScreeningResult]) -> ScreeningResult:
    """Return the union of ``parts``, each finding once: windows or groups of objects that were screened separately.

    Equal to screening their union at once, since an event found twice is the same to the last bit.
    """
    events = [part.events for part in parts]
    columns = {f.name: np.concatenate([getattr(e, f.name) for e in events]) for f in dataclasses.fields(Events)}
    identity = np.stack([columns[name] for name in ("tca_time_ns", "lo", "hi")])
    _, order = np.unique(identity, axis=1, return_index=True)
    together = Seeds(
        *(np.concatenate([getattr(part.colocated, name) for part in parts]) for name in ("lo", "hi", "time_ns"))
    )
    return ScreeningResult(
        Events(**{name: column[order] for name, column in columns.items()}),
        _first_of_pairs(propagator, together),
        _first_failures([part.failures for part in parts]),
    )


def spans(start_time_ns: int, end_time_ns: int) -> list[tuple[int, int]]:
    """The window [start, end) cut where the blocks of screening meet: the parts that can be screened side by side."""
    first = start_time_ns // _BLOCK_NS * _BLOCK_NS + _BLOCK_NS
    edges = [start_time_ns, *range(first, end_time_ns, _BLOCK_NS), end_time_ns]
    return list(itertools.pairwise(edges))


def _knots(block_ns: int, start_time_ns: int, end_time_ns: int) -> IntArray:
    """Knots of a block, cut to the intervals the window touches."""
    first = max(block_ns, start_time_ns // _KNOT_NS * _KNOT_NS)
    last = min(block_ns + _BLOCK_NS, -(-end_time_ns // _KNOT_NS) * _KNOT_NS)
    return np.arange(first, last + 1, _KNOT_NS, dtype=np.int64)


def _screen_block(
    propagator: Propagator,
    primary_index: IntArray,
    secondary_index: IntArray,
    knots: IntArray,
    middle_ns: int,
    threshold_km: float,
) -> tuple[Seeds, Seeds, Seeds, list[InterpolatedEphemerides]]:
    primaries = InterpolatedEphemerides.propagate(propagator, primary_index, knots)
    bounds = (path_bounds(propagator, primaries),) * 2
    secondaries = primaries
    if not np.array_equal(primary_index, secondary_index):
        kept = sieve(propagator, secondary_index, primaries, middle_ns, threshold_km)
        secondaries = InterpolatedEphemerides.propagate(propagator, kept, knots)
        bounds = bounds[0], path_bounds(propagator, secondaries)
    nearby = find_nearby(primaries, secondaries, bounds, threshold_km=threshold_km)
    close, together, slow = seed_approaches(primaries, secondaries, nearby, bounds, threshold_km)
    return close, together, slow, [primaries, secondaries]


def _events(
    propagator: Propagator,
    passes: RefinedApproaches,
    slow: RefinedApproaches,
    start_time_ns: int,
    end_time_ns: int,
    threshold_km: float,
) -> Events:
    with np.errstate(invalid="ignore"):
        wanted = passes.is_minimum & (passes.distance_km <= threshold_km) & (passes.error == 0)
        wanted &= passes.speed_km_s >= SLOWEST_EVENT_KM_S
    wanted &= (passes.time_ns >= start_time_ns) & (passes.time_ns < end_time_ns)
    passes = passes_joined([passes.take(np.flatnonzero(wanted)), slow])
    lo, hi = _ordered(propagator, passes.first, passes.second)
    order = np.lexsort((passes.time_ns, hi, lo))
    passes, lo, hi = passes.take(order), lo[order], hi[order]
    time_ns = passes.time_ns
    repeated = np.zeros(len(order), dtype=np.bool_)
    repeated[1:] = (np.diff(lo) == 0) & (np.diff(hi) == 0) & (np.diff(time_ns) < _SAME_EVENT_NS)
    single = np.flatnonzero(~repeated)
    single = single[np.lexsort((hi[single], lo[single], time_ns[single]))]
    return Events(lo[single], hi[single], time_ns[single], passes.distance_km[single], passes.speed_km_s[single])


def _colocated(propagator: Propagator, samples: Seeds, start_time_ns: int, end_time_ns: int) -> CoLocated:
    in_window = (samples.time_ns >= start_time_ns) & (samples.time_ns < end_time_ns)
    return _first_of_pairs(propagator, samples.take(np.flatnonzero(in_window)))


def _first_of_pairs(propagator: Propagator, samples: Seeds) -> CoLocated:
    lo, hi = _ordered(propagator, samples.first, samples.second)
    time_ns = samples.time_ns
    order = np.lexsort((time_ns, hi, lo))
    _, first = np.unique(np.stack([lo[order], hi[order]]), axis=1, return_index=True)
    chosen = order[first]
    return CoLocated(lo[chosen], hi[chosen], time_ns[chosen])


def _ordered(propagator: Propagator, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    norad_id = propagator.elements.norad_id
    swap = norad_id[first] > norad_id[second]
    return np.where(swap, second, first), np.where(swap, first, second)


def _pairs(propagator: Propagator, samples: Seeds) -> IntArray:
    """Return the pairs of ``samples`` (p, 2), each once, the lower NORAD id first."""
    pairs = np.stack(_ordered(propagator, samples.first, samples.second), axis=-1)
    return np.asarray(np.unique(pairs, axis=0), dtype=np.int64)


def _joined(parts: list[Seeds]) -> Seeds:
    names, nothing = ("first", "second", "time_ns"), [np.zeros(0, np.int64)]
    return Seeds(*(np.concatenate(nothing + [getattr(part, name) for part in parts]) for name in names))


def _of_two_objects(propagator: Propagator, seeds: Seeds) -> Seeds:
    ids = propagator.elements.norad_id
    return seeds.take(np.flatnonzero(ids[seeds.first] != ids[seeds.second]))


def _in_force(terms: Terms, seeds: Seeds) -> npt.NDArray[np.bool_]:
    from_ns = np.maximum(terms.from_ns[seeds.first], terms.from_ns[seeds.second])
    until_ns = np.minimum(terms.until_ns[seeds.first], terms.until_ns[seeds.second])
    return np.asarray((seeds.time_ns >= from_ns) & (seeds.time_ns < until_ns))


def _failures(tracks: InterpolatedEphemerides, terms: Terms | None) -> Failures:
    failed = tracks.error != 0
    if terms is not None:  # the intervals that touch a refused knot must touch the term
        knots = tracks.knot_time_ns
        failed = failed & (knots > terms.from_ns[tracks.index][:, None] - _KNOT_NS)
        failed &= knots < terms.until_ns[tracks.index][:, None] + _KNOT_NS
    rows = np.flatnonzero(failed.any(axis=1))
    knot = failed[rows].argmax(axis=1)
    return Failures(tracks.index[rows], tracks.knot_time_ns[knot], tracks.error[rows, knot])


def _refine_failures(passes: RefinedApproaches) -> Failures:
    rows = np.flatnonzero(passes.error != 0)
    return Failures(passes.failed_index[rows], passes.time_ns[rows], passes.error[rows])


def _first_failures(parts: list[Failures]) -> Failures:
    index = np.concatenate([part.index for part in parts])
    time_ns = np.concatenate([part.time_ns for part in parts])
    error = np.concatenate([part.error for part in parts])
    order = np.lexsort((time_ns, index))
    _, first = np.unique(index[order], return_index=True)
    chosen = order[first]
    return Failures(index[chosen], time_ns[chosen], error[chosen])
