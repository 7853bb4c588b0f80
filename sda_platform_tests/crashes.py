"""Crashing the code under test at each of its fault points in turn, inside the test's own process."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sda_platform import faults


def crashes() -> Iterator[AbstractContextManager[None]]:
    """A block for each run of the code under test: the n-th ends at its n-th fault point, the last one is not ended.

    What the code leaves behind at a crash is what the next run finds, as after a kill.
    """
    n, survived = 0, False

    @contextmanager
    def attempt(at: int) -> Iterator[None]:
        nonlocal survived
        visits = 0

        def strike(point: str) -> None:
            nonlocal visits
            visits += 1
            if visits == at:
                raise faults.InjectedFault(point)

        faults.watch(strike)
        try:
            yield
            survived = True
        except faults.InjectedFault:
            pass
        finally:
            faults.watch(None)

    while not survived:
        n += 1
        yield attempt(n)
