"""Supervision of sources: a source whose failure may pass is restarted within a budget; every end is reported (DP2-F5).

A source that ends by itself, fails too often or has a programming error is `failed`. It stays failed, the health
report includes it, and the other sources continue.
"""

import asyncio
import time

from sda_platform.edge.sources.source import Source, SourceFailed, SourceGone, SourceState
from sda_platform.resilience import RestartBudget, pause_s

_STATELESS, _STATEFUL = 5, 3
_STOP_S = 3.0


class Supervised:
    """One source and the task that keeps it running."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.restarts = 0
        self.started_s = time.monotonic()
        self._budget = RestartBudget(_STATEFUL if source.is_stateful else _STATELESS)
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

    async def _keep_running(self) -> None:
        source = self.source
        while True:
            self.started_s = time.monotonic()
            try:
                await source.run()
                failure: Exception = SourceFailed("the source ended by itself")
            except SourceGone as gone:
                self._fail(str(gone))
                return
            except (SourceFailed, OSError) as error:
                failure = error
            except Exception as error:
                source.log.fault("fault of the program", error)
                self._fail(f"fault of the program: {type(error).__name__}: {error}")
                return
            if source.stopping.is_set():
                return
            if not self._budget.spend(time.monotonic()):
                self._fail(f"failed {self._budget.restarts + 1} times within {self._budget.window_s:.0f} s: {failure}")
                return
            self.restarts += 1
            pause = pause_s(self.restarts, base_s=0.1, cap_s=5.0, seed=f"{source.name}{time.time_ns()}")
            source.state, source.detail = SourceState.RETRYING, str(failure)
            source.log.warning("restarting", in_s=round(pause, 2), restarts=self.restarts, reason=str(failure))
            if await source.pause(pause):
                return

    def _fail(self, reason: str) -> None:
        self.source.state, self.source.detail = SourceState.FAILED, reason
        self.source.log.error("source failed", reason=reason)
