"""Screening in several processes: spans of time and volumes are the tasks, as they are Spark's tasks on a platform.

Nothing but numerics is imported here: a worker starts with importing this module, and a search of seconds would wait
for whatever came along.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from sda_platform.orbits.elements import ElementSets, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import Screening, joined, spans
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import Volume

_Task = tuple[Volume, IntArray, IntArray, int, int]
_propagator: Propagator


def screen_elements(
    elements: ElementSets,
    work: Sequence[tuple[Volume, IntArray]],
    secondaries: IntArray,
    start_ns: int,
    end_ns: int,
    *,
    processes: int,
    tell: Callable[[int, int], None],
) -> Screening:
    """Screen primaries (rows, each list with its volume) against ``secondaries`` (rows) over [start, end).

    ``tell`` hears how many tasks are done, and of how many.
    """
    tasks = [(*each, secondaries, *span) for each in work for span in spans(start_ns, end_ns)]
    parts = []
    for part in _mapped(elements, tasks, min(processes, len(tasks))):
        parts.append(part)
        tell(len(parts), len(tasks))
    return joined(Propagator(elements), parts)


def _mapped(elements: ElementSets, tasks: Sequence[_Task], processes: int) -> Iterator[Screening]:
    if processes == 1:
        _start_worker(elements)
        yield from map(_carry_out, tasks)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (elements,)) as pool:
        yield from pool.map(_carry_out, tasks)


def _start_worker(elements: ElementSets) -> None:
    global _propagator
    _propagator = Propagator(elements)


def _carry_out(task: _Task) -> Screening:
    volume, primaries, secondaries, start_ns, end_ns = task
    return screen_volume(_propagator, primaries, secondaries, start_ns, end_ns, volume)
