"""Commands that repeat a step until they are interrupted, and what they state of errors that pass."""

import time
from collections.abc import Callable
from contextlib import suppress

from deltalake.exceptions import DeltaError

from sda_platform.cli.people import console
from sda_platform.foreign_text import printable
from sda_platform.lake.errors import Unavailable

_PASSING = (OSError, DeltaError, Unavailable)


def until_interrupted(
    step: Callable[[], None], interval_s: float, *, wait: Callable[[float], None] = time.sleep
) -> None:
    """Call ``step`` each ``interval_s``, until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        while True:
            began_s = time.monotonic()
            step()
            wait(max(0.0, interval_s - (time.monotonic() - began_s)))


def surviving(step: Callable[[], None], doing: str) -> Callable[[], None]:
    """Return ``step`` for a loop that survives errors of the disk, the network or the lake; it may be repeated.

    Such an error is printed once, as what prevents ``doing``; so is its end.
    """
    failure = ""

    def stepped() -> None:
        nonlocal failure
        try:
            step()
        except _PASSING as error:
            reason = printable(f"{type(error).__name__}: {error}")
            if reason != failure:
                console.print(f"cannot {doing}, and tries again: {reason}", markup=False)
            failure = reason
            return
        if failure:
            console.print(f"can {doing} again")
        failure = ""

    return stepped
