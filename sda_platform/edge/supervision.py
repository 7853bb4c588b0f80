"""Supervision of sources: one that ends or fails is started again, after pauses that grow to a minute.

Only a wrong configuration is final: such a source is `failed` until it is configured anew. All else may pass: a full
disk, a port in use, an answer that makes no sense, a fault of the program. The source continues by itself when it is
over. Meanwhile the health report includes it, and the other sources continue.
"""

import asyncio
import time

from sda_platform.edge.sources.source import (
    LONGEST_PAUSE_S,
    Source,
    SourceBlocked,
    SourceFailed,
    SourceMisconfigured,
    SourceState,
)
from sda_platform.resilience import pause_s

STEADY_S = 60.0
"""After a run of this length the pauses begin anew."""
RECOVERED_S = 5.0
"""A source that has run for so long is not reported any more."""
_FIRST_PAUSE_S = 0.1
_GROWING = 20
_STOP_S = 3.0


class Supervised:
    """One source and the task that keeps it running."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.restarts = 0
        self.started_s = time.monotonic()
        self._in_a_row, self._reason, self._is_blocked = 0, "", False
        self._failing_since_s: float | None = None
        self._began_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Run it from now on."""
        self._task = asyncio.create_task(self._keep_running(), name=f"source {self.source.name}")

    async def stop(self, within_s: float = _STOP_S) -> None:
        """Drain it and end it; what does not end in time is cancelled."""
        if self._task is None:
            return
        if self.source.state is not SourceState.FAILED:
            self.source.state = SourceState.DRAINING
        self.source.stop()
        _, late = await asyncio.wait({self._task}, timeout=within_s)
        for task in late:
            task.cancel()
            self.source.log.warning("source did not drain in time", within_s=within_s)
        await asyncio.gather(self._task, return_exceptions=True)
        if self.source.state is not SourceState.FAILED:
            self.source.state = SourceState.STOPPED
        self.source.log.info("stopped")

    def problem(self) -> str | None:
        """Return what a person must know of the source now; None: nothing."""
        source, now_s = self.source, asyncio.get_running_loop().time()
        found = source.problem(now_s)
        is_down = source.state is SourceState.RETRYING or now_s - self._began_s < RECOVERED_S
        if found or self._failing_since_s is None or not is_down:
            return found
        failing_s = now_s - self._failing_since_s
        if failing_s < source.patience_s and not self._is_blocked:
            return None
        return f"{self._reason} (started {self._in_a_row} times in {failing_s:,.0f} s; it is started again)"

    async def _keep_running(self) -> None:
        source = self.source
        while not source.stopping.is_set():
            self.started_s, self._began_s = time.monotonic(), asyncio.get_running_loop().time()
            try:
                await source.run()
                reason = "the source ended by itself"
            except SourceMisconfigured as error:
                source.state, source.detail = SourceState.FAILED, str(error)
                source.log.error("source failed", reason=str(error))
                return
            except (SourceFailed, OSError) as error:
                reason = str(error)
                self._is_blocked = isinstance(error, SourceBlocked)
            except Exception as error:
                reason = source.note_fault(error)
            if not source.stopping.is_set():
                await source.pause(self._restarting(reason))

    def _restarting(self, reason: str) -> float:
        """Account for a failure, and return the seconds until the next start."""
        source, now_s = self.source, asyncio.get_running_loop().time()
        if now_s - self._began_s >= STEADY_S:
            self._in_a_row, self._failing_since_s = 0, None
        self._in_a_row += 1
        self._failing_since_s = self._failing_since_s or now_s
        self.restarts += 1
        pause = pause_s(
            min(self._in_a_row, _GROWING),
            base_s=_FIRST_PAUSE_S,
            cap_s=LONGEST_PAUSE_S,
            seed=f"{source.name}{time.time_ns()}",
        )
        source.state, source.detail, self._reason = SourceState.RETRYING, reason, reason
        source.log.warning("restarting", in_s=round(pause, 2), restarts=self.restarts, reason=reason)
        return pause
