"""An event loop whose clock jumps: where all wait for time, it is that time at once. An hour takes no second."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")

_IO_S = 0.002


class WarpedLoop(asyncio.SelectorEventLoop):
    """Waits 2 ms for sockets and threads, then lets the next timer be due."""

    def __init__(self) -> None:
        self.warped_s = 0.0
        super().__init__()
        select = self._selector.select  # type: ignore[attr-defined]

        def warp(timeout: float | None = None) -> Any:
            events = select(timeout if timeout is None else min(timeout, _IO_S))
            if not events and timeout is not None and timeout > _IO_S:
                self.warped_s += timeout
            return events

        self._selector.select = warp  # type: ignore[attr-defined]

    def time(self) -> float:
        """The loop's clock, with the jumps."""
        return super().time() + self.warped_s


def run_warped(scenario: Coroutine[Any, Any, Answer]) -> Answer:
    """Run ``scenario`` on such a loop."""
    with asyncio.Runner(loop_factory=WarpedLoop) as runner:
        return runner.run(scenario)


async def reached(condition: Callable[[], bool], every_s: float = 2.0, within_s: float = 3600.0) -> None:
    """Return once ``condition`` holds, which is asked every few seconds of the loop's time. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(every_s)
