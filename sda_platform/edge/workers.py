"""Work that would hold up the event loop, and with it every socket: done by a process of its own, one task at a time.

A thread does not help: reading a document of 10 MB keeps Python's lock for a second, in which fresh radar frames are
lost. The process is started when it is first needed, and anew when it died.
"""

import asyncio
import errno
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

_NICE: Final = 5


class Worker:
    """One process; what waits for it is bounded by the sources, each of which has few tasks at once."""

    def __init__(self, start: Callable[[], Executor]) -> None:
        self._start = start
        self._executor: Executor | None = None

    async def run(self, function: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """The result of a module's ``function``. Raises what it raises; OSError if the process died."""
        if self._executor is None:
            self._executor = self._start()
        executor = self._executor
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, partial(function, *args, **options))
        except BrokenProcessPool:
            if self._executor is executor:
                self._executor = None
            raise OSError(errno.ECHILD, "the process that reads documents died; it is started again") from None

    def close(self) -> None:
        """End the process, without waiting for its task."""
        if self._executor is not None:
            processes = list((getattr(self._executor, "_processes", None) or {}).values())
            self._executor.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()


def worker_process() -> Executor:
    """A process that ends with this one, and gives way to it on a machine of few processors."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
