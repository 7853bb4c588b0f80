"""Sensors that look several times in one tick, because Dagster evaluates sensors only every five seconds.

The period of Dagster's sensor loop is no setting of Dagster. A tick that finds no work looks again until shortly before
the loop comes round, so that work is found within about a second (docs/decisions/0005).
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

import dagster as dg

LOOP_S: Final = 5.0
"""Period of Dagster's sensor loop, seconds."""
_RESERVE_S: Final = 1.0
"""Left for the tick's own records. A tick that is under way when the loop comes round costs a whole period."""

Found = TypeVar("Found")


def until_found(
    look: Callable[[], Found | dg.SkipReason],
    every_s: float,
    *,
    is_over: Callable[[], bool] = lambda: False,
    now_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Found | dg.SkipReason:
    """Return what ``look`` finds first, looking every ``every_s`` seconds; after four seconds the last reason to skip.

    So it is, too, once ``is_over``: a platform that stops waits for its ticks.
    """
    last_s = now_s() + LOOP_S - _RESERVE_S - every_s
    while isinstance(found := look(), dg.SkipReason) and now_s() <= last_s and not is_over():
        sleep(every_s)
    return found
