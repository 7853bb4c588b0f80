"""Waiting for what a running platform does by itself."""

import time
from collections.abc import Callable

_TIMEOUT_S = 300.0
_LOOK_EVERY_S = 0.1


def wait_for(is_true: Callable[[], bool], what: str) -> None:
    """Return when ``is_true``. SystemExit: ``what`` did not come in time."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_true():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not come within {_TIMEOUT_S:.0f} s")
        time.sleep(_LOOK_EVERY_S)
