"""Screening in several processes: spans of time and volumes are the tasks, as they are Spark's tasks on a platform.

Only numerics are imported here, because every worker imports this module before a search of seconds.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from sda_platform.arrays import IntArray
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.piecewise import REACH_NS, within_terms
from sda_platform.orbits.screening.search import ScreeningResult, joined, spans
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import Volume

_Task = tuple[Volume, IntArray, IntArray, int, int]
# When each row is in force, and the part of time in which pairs and rejections count.
_Counted = tuple[Terms, tuple[int, int]]
_propagator: Propagator
_terms: _Counted | None


def screen_elements(
    elements: ElementSets,
    terms: Terms,
    work: Sequence[tuple[Volume, IntArray]],
    secondaries: IntArray,
    start_ns: int,
    end_ns: int,
    *,
    processes: int,
    report: Callable[[int, int], None],
) -> ScreeningResult:
    """Screen primaries (rows, each list with its volume) against ``secondaries`` (rows) over [start, end).

    ``terms``: when each row is in force (row 0 … n-1). ``report`` is called with the numbers of tasks done and of all.
    """
    if len(np.unique(elements.norad_id)) == len(elements):
        tasks = [(*each, secondaries, *span) for each in work for span in spans(start_ns, end_ns)]
        return _carried_out(elements, None, tasks, processes, report)
    # Beyond the window too: a border within it may truncate a set's encounter.
    tasks = [
        (volume, _near(terms, primaries, *span), _near(terms, secondaries, *span), *span)
        for volume, primaries in work
        for span in spans(start_ns - REACH_NS, end_ns + REACH_NS)
    ]
    given = [task for task in tasks if len(task[1]) and len(task[2])]
    found = _carried_out(elements, (terms, (start_ns, end_ns)), given, processes, report)
    largest_km = max(volume.circumscribed_km for volume, _ in work)
    return within_terms(Propagator(elements), terms, found, start_ns, end_ns, largest_km)


def _near(terms: Terms, rows: IntArray, start_ns: int, end_ns: int) -> IntArray:
    """Return the rows whose term is no farther from the span than REACH_NS."""
    is_near = (terms.from_ns[rows] < end_ns + REACH_NS) & (terms.until_ns[rows] > start_ns - REACH_NS)
    return rows[is_near]


def _carried_out(
    elements: ElementSets,
    terms: _Counted | None,
    tasks: Sequence[_Task],
    processes: int,
    report: Callable[[int, int], None],
) -> ScreeningResult:
    parts = []
    for part in _mapped(elements, terms, tasks, min(processes, len(tasks))):
        parts.append(part)
        report(len(parts), len(tasks))
    return joined(Propagator(elements), parts)


def _mapped(
    elements: ElementSets, terms: _Counted | None, tasks: Sequence[_Task], processes: int
) -> Iterator[ScreeningResult]:
    if processes == 1:
        _start_worker(elements, terms)
        yield from map(_carry_out, tasks)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (elements, terms)) as pool:
        yield from pool.map(_carry_out, tasks)


def _start_worker(elements: ElementSets, terms: _Counted | None) -> None:
    global _propagator, _terms
    _propagator, _terms = Propagator(elements), terms


def _carry_out(task: _Task) -> ScreeningResult:
    volume, primaries, secondaries, start_ns, end_ns = task
    terms, counted_ns = _terms or (None, None)
    return screen_volume(_propagator, primaries, secondaries, start_ns, end_ns, volume, terms, counted_ns=counted_ns)
