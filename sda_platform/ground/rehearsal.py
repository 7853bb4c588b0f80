"""What every rehearsed fault is: it strikes something real in a directory of its own, and times are measured."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_LOOK_S: Final = 0.02


@dataclass(frozen=True)
class Measured:
    """When a fault struck, and after how long it was detected and recovered from; None: not in time."""

    started_time_ns: int
    detected_after_s: float | None
    recovered_after_s: float | None


class RehearsedFault(Protocol):
    """A fault with its bounds. ``detect_within_s`` 0: it is no failure, and must not be declared as one."""

    @property
    def name(self) -> str:
        """What strikes."""

    @property
    def detect_within_s(self) -> float:
        """The bound of the time to detect it."""

    @property
    def recover_within_s(self) -> float:
        """The bound of the time to recover from it."""

    def rehearse(self, directory: Path) -> Measured:
        """Let it strike below the empty ``directory``. Raises Unavailable or OSError where that is not possible."""


class Stopwatch:
    """Time since it was made: seconds of the monotonic clock, and ``started_ns`` of the wall clock."""

    def __init__(self) -> None:
        self.started_ns, self._began_s = time.time_ns(), time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """How long ago it was made."""
        return time.monotonic() - self._began_s

    def when(self, holds: Callable[[], bool], within_s: float) -> float | None:
        """Seconds since it was made when it ``holds``; None: it does not before ``within_s``."""
        while self.elapsed_s < within_s:
            with suppress(FileNotFoundError):  # a segment that is just sealed
                if holds():
                    return self.elapsed_s
            time.sleep(_LOOK_S)
        return None
