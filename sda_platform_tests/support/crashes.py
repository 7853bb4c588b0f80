"""Crashing the code under test at its fault points, in the test's own process: it leaves what a kill leaves."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sda_platform import failpoints


@contextmanager
def crash_at(point: str, nth: int = 1) -> Iterator[None]:
    """The block ends where the code in it reaches ``point`` for the n-th time; it may also never get there."""
    visits: Counter[str] = Counter()

    def is_due(reached: str) -> bool:
        visits[reached] += 1
        return reached == point and visits[point] == nth

    with _crash_when(is_due):
        yield


def crashes(every: int = 1) -> Iterator[AbstractContextManager[None]]:
    """A block for each run of the code under test: each ends at a fault point, the last one is not ended.

    The first ends at the first point, the others at the next of ``every`` so many.
    """
    n, survived = 1, False

    @contextmanager
    def attempt(at: int) -> Iterator[None]:
        nonlocal survived
        points: list[str] = []

        def is_due(reached: str) -> bool:
            points.append(reached)
            return len(points) == at

        with _crash_when(is_due):
            yield
            survived = True

    while not survived:
        yield attempt(n)
        n += every


@contextmanager
def _crash_when(is_due: Callable[[str], bool]) -> Iterator[None]:
    def strike(point: str) -> None:
        if is_due(point):
            raise failpoints.InjectedFault(point)

    failpoints.watch(strike)
    try:
        yield
    except failpoints.InjectedFault:
        pass
    finally:
        failpoints.watch(None)
