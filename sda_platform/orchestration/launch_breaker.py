"""A circuit breaker before the launches of runs: a worker host that cannot start a process fails no run after run.

After three launches that failed in a row, queued runs stay in the queue. After a pause the host is asked to start an
empty worker, and so again after twice the pause, up to a minute. Where it can, launches go on. No run is spent on that.
The state is a small file in Dagster's home, because the vitals are evaluated in another process.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sda_platform.resilience import BreakerRecord

OPENS_AFTER: Final = 3
_FILE: Final = "launch_breaker.json"
_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 60.0


class LaunchBreaker:
    """The breaker of the Dagster home ``home``; ``can_start`` asks its worker host, and may raise any error."""

    def __init__(self, home: Path, can_start: Callable[[], bool], now_s: Callable[[], float] = time.time) -> None:
        self._place, self._can_start, self._now_s = home / _FILE, can_start, now_s

    def allows(self) -> bool:
        """Return whether a run may be launched now; asks the worker host where a pause is over."""
        record = self.record()
        if record.failures < OPENS_AFTER:
            return True
        if self._now_s() < record.until_s:
            return False
        try:
            is_well, reason = self._can_start(), record.reason
        except Exception as error:
            is_well, reason = False, f"{type(error).__name__}: {error}"
        if is_well:
            self.succeeded()
        else:
            self.failed(reason)
        return is_well

    def failed(self, reason: str) -> None:
        """Count a launch that failed."""
        after = self.record().failed(
            reason, self._now_s(), opens_after=OPENS_AFTER, pause_s=_PAUSE_S, longest_s=_LONGEST_PAUSE_S
        )
        after.save(self._place)

    def succeeded(self) -> None:
        """Record that a worker was started: earlier failures no longer count."""
        if self.record().failures:
            BreakerRecord().save(self._place)

    def record(self) -> BreakerRecord:
        """Return the state of the breaker, to be stored."""
        return BreakerRecord.load(self._place)


def why_nothing_starts(home: Path) -> str:
    """Return why the Dagster home ``home`` launches no run; empty where it does."""
    record = BreakerRecord.load(home / _FILE)
    return record.reason if record.failures >= OPENS_AFTER else ""
