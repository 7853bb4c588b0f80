"""Commands that repeat a step until they are interrupted, whatever becomes of the disk or the network meanwhile."""

import time
from collections.abc import Callable
from contextlib import suppress

from deltalake.exceptions import DeltaError

from sda_platform.cli.people import console
from sda_platform.foreign_text import printable

_PASSING = (OSError, DeltaError)


def until_interrupted(
    step: Callable[[], None], interval_s: float, doing: str, *, wait: Callable[[float], None] = time.sleep
) -> None:
    """Call ``step`` each ``interval_s``. A step may be repeated after an error.

    An error of the disk, the network or the lake is printed once, as what prevents ``doing``; so is its end.
    """
    failure = ""
    with suppress(KeyboardInterrupt):
        while True:
            began_s = time.monotonic()
            try:
                step()
            except _PASSING as error:
                reason = printable(f"{type(error).__name__}: {error}")
                if reason != failure:
                    console.print(f"cannot {doing}, and tries again: {reason}", markup=False)
                failure = reason
            else:
                if failure:
                    console.print(f"can {doing} again")
                failure = ""
            wait(max(0.0, interval_s - (time.monotonic() - began_s)))
