"""The worker host: holds the processes that execute runs.

    DAGSTER_HOME=DIRECTORY python -m sda_platform.runtime.run_workers

Each worker is forked from a process that has imported the platform (a *forkserver*, which has no threads, sessions or
connections). So a run starts in about a second instead of five or more. The workers end with this process, which
itself imports neither Dagster nor Spark: what it needs of Dagster is done by processes that are forked in the same way.
"""

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection, Listener
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, NoReturn

from sda_platform.runtime import run_worker, worker_socket
from sda_platform.settings import require_known_variables

PRELOADED: Final = "sda_platform.runtime.preload"
LOCK_FILE: Final = "run_workers.lock"
_REQUEST_WITHIN_S = 5.0
_PROBE_WITHIN_S = 10.0


class RunWorkers:
    """The workers of this process, by run."""

    def __init__(self, new_process: Callable[..., BaseProcess]) -> None:
        self._workers: dict[str, BaseProcess] = {}
        self._new_process = new_process

    def prepare(self) -> bool:
        """End the runs that an earlier host left unfinished, and set up the pools; whether that succeeded."""
        return self._run(run_worker.prepare_instance) == 0

    def answer(self, request: dict[str, Any]) -> Any:
        """Carry out one request of `worker_socket.ask`. Raises ValueError where it is none, KeyError."""
        match request["what"]:
            case "ping":
                return True
            case "probe":
                return self.can_start()
            case "start":
                return self.start(request["run_id"], request["arguments"])
            case "is_alive":
                return self.is_alive(request["run_id"])
            case "interrupt":
                return self.interrupt(request["run_id"])
            case other:
                raise ValueError(f"unknown request {other!r}")

    def can_start(self) -> bool:
        """Return whether a worker without work starts, and ends in order.

        Without descriptors, processes or memory the host still answers a ping, and every run fails (L A4).
        """
        try:
            worker = self._new_process(target=run_worker.do_nothing, args=())
            worker.start()
        except OSError:
            return False
        worker.join(_PROBE_WITHIN_S)
        if worker.is_alive():
            worker.kill()
            return False
        return worker.exitcode == 0

    def start(self, run_id: str, arguments: str) -> int | None:
        """Start the worker of a run, unless it has one; returns its process id."""
        worker = self._workers.get(run_id)
        if worker is None or not worker.is_alive():
            worker = self._new_process(target=run_worker.run_worker, args=(arguments,), name=f"run {run_id}")
            worker.start()
            self._workers[run_id] = worker
            threading.Thread(target=self._await_end, args=(run_id, worker), daemon=True).start()
        return worker.pid

    def is_alive(self, run_id: str) -> bool:
        """Return whether a worker executes the run."""
        worker = self._workers.get(run_id)
        return worker is not None and worker.is_alive()

    def interrupt(self, run_id: str) -> bool:
        """Send SIGINT to the worker, which then records its run as cancelled; False where there is none."""
        worker = self._workers.get(run_id)
        if worker is None or worker.pid is None or not worker.is_alive():
            return False
        os.kill(worker.pid, signal.SIGINT)
        return True

    def _await_end(self, run_id: str, worker: BaseProcess) -> None:
        worker.join()
        if self._workers.get(run_id) is worker:  # not a later one of the same run
            del self._workers[run_id]
        if worker.exitcode:
            self._run(run_worker.report_end, run_id, worker.exitcode)

    def _run(self, work: Callable[..., None], *arguments: Any) -> int | None:
        process = self._new_process(target=work, args=arguments)
        process.start()
        process.join()
        return process.exitcode


def serve(listener: Listener, workers: RunWorkers) -> NoReturn:
    """Answer one request after another until this process is interrupted."""
    while True:
        try:
            with listener.accept() as connection:
                _answer(connection, workers)
        except (OSError, EOFError):  # the requesting process has ended
            continue


def _answer(connection: "Connection[Any, Any]", workers: RunWorkers) -> None:
    if not connection.poll(_REQUEST_WITHIN_S):
        return
    try:
        answer = {"value": workers.answer(worker_socket.receive(connection))}
    except (ValueError, KeyError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    worker_socket.send(connection, answer)


def preloaded_context() -> ForkServerContext:
    """Return the context whose processes are forked with the platform imported. The imports take seconds and begin
    here.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    forkserver.ensure_running()
    return context


def main() -> int:
    """Hold the workers of the Dagster instance in DAGSTER_HOME; 1 where that fails or another process does it."""
    require_known_variables(os.environ)
    home = Path(os.environ["DAGSTER_HOME"])
    with (home / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"another process holds the run workers of {home}\n")
            return 1
        workers = RunWorkers(preloaded_context().Process)
        try:
            if not workers.prepare():
                sys.stderr.write(f"the Dagster instance in {home} cannot be prepared; the reason is above\n")
                return 1
            with worker_socket.listen(home) as listener:
                serve(listener, workers)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
