"""Work that would hold up the event loop, and with it every socket: done by a process of its own, one task at a time.

A thread does not help: reading a document of 10 MB keeps Python's lock for a second, in which fresh radar frames are
lost. The process is started when it is first needed, and anew when it died. It is killed in a task that takes too long,
and has a bound of memory: five hundred bytes of Parquet are fifteen gigabytes of rows. It ends when this one does,
because its end of their socket is closed then. What goes over the socket comes from this program only.

    python -m sda_platform.edge.workers <descriptor of the socket> <most bytes of memory>
"""

import asyncio
import errno
import importlib
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

_NICE: Final = 5
DEADLINE_S: Final = 900.0
"""Of one task. The largest file that a partner may land needs minutes; all others wait for it."""


MOST_BYTES: Final = 2 * 2**30
"""Memory of the process. A segment, or a part of a file, needs some hundred megabytes."""
_CRASHES: Final = frozenset({-signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL, -signal.SIGSEGV})


class TaskFailed(Exception):
    """A task took too long or too much memory, or crashed its process: it would again."""


class Worker:
    """Runs functions elsewhere than in the event loop; what waits is bounded by the sources, each with few tasks.

    ``refusal`` is what a function raises for a file that cannot be used: one that costs too much is refused as well.
    """

    def __init__(self, start: Callable[[], Executor], refusal: type[Exception] = TaskFailed) -> None:
        self._executor, self._refusal = start(), refusal

    async def run(self, function: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Return the result of a module's ``function``. Raises what it raises; OSError if the process died."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args, **options))
        except TaskFailed as error:
            raise self._refusal(str(error)) from None
        except MemoryError:
            raise self._refusal("reading it needs more memory than there is for a file; land it in parts") from None

    def close(self) -> None:
        """End without waiting for what runs."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class ProcessExecutor(Executor):
    """One process, and the thread that waits for it."""

    def __init__(self, deadline_s: float = DEADLINE_S, most_bytes: int = MOST_BYTES) -> None:
        self.deadline_s, self._most_bytes = deadline_s, most_bytes
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="worker")
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def submit(self, function: Callable[..., Result], /, *args: Any, **options: Any) -> "Future[Result]":
        """See `Executor.submit`; the function and what it is called with are pickled."""
        return self._thread.submit(self._call, partial(function, *args, **options))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the process, also in the middle of a task."""
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _call(self, call: "partial[Result]") -> Result:
        connection = self._connection or self._start()
        try:
            connection.send(call)
            if not connection.poll(self.deadline_s):
                self._end(connection)
                raise TaskFailed(f"reading it took more than {self.deadline_s:g} s and was ended; land it in parts")
            value, error = connection.recv()
        except (EOFError, ConnectionError):
            if self._end(connection) in _CRASHES:
                raise TaskFailed("reading it crashed the process that reads documents") from None
            raise OSError(errno.ECHILD, "the process that reads documents died; it is started again") from None
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]

    def _end(self, connection: Connection) -> int | None:
        """End the process, and return how it ended, as `subprocess.Popen.returncode`."""
        self._connection = None
        connection.close()
        if self._process is None:
            return None
        self._process.kill()
        return self._process.wait()

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(self._most_bytes)]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        self._connection = Connection(ours.detach())
        return self._connection


def serve(connection: Connection, most_bytes: int) -> None:
    """Call what comes, with ``most_bytes`` of memory, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)  # it gives way to what reads the sockets
    with suppress(OSError, ValueError):  # an operator has set a lower one
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    with suppress(EOFError, ConnectionError):
        while True:
            connection.send(_outcome(connection.recv()))


def _outcome(call: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return call(), None
    except Exception as error:  # it is raised where the call came from
        return None, error


if __name__ == "__main__":
    importlib.import_module("sda_platform.edge.config")  # and with it what the sources call
    serve(Connection(int(sys.argv[1])), int(sys.argv[2]))
