"""Turns of the runs that write one table: one that has lost is not overtaken again and again.

Runs of several pools write a table at once, and the loser of two commits computes again. A long run would lose to short
ones each time. So each try holds a shared lock of the table, and a run that lost before holds it alone. The lock is
advisory and of one machine: it orders runs, and commits stay correct without it. A wait is bounded, because a run that
hangs must not stop others.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

LONGEST_WAIT_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.05


@contextmanager
def turn(
    place: Path,
    *,
    is_alone: bool,
    longest_wait_s: float = LONGEST_WAIT_S,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the lock file ``place``, with others or alone.

    After ``longest_wait_s``, or where the file cannot be opened, the body runs without it.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(place, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        kind = fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH
        for _ in range(max(round(longest_wait_s / _LOOK_AGAIN_S), 1)):
            with suppress(BlockingIOError):
                fcntl.flock(lock, kind | fcntl.LOCK_NB)
                break
            pause(_LOOK_AGAIN_S)
        yield
    finally:
        os.close(lock)
