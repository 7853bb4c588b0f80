"""The worker host's table of workers, with processes whose end a test decides; the system test has real ones."""

import errno
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sda_platform.runtime import liveness, worker_socket
from sda_platform.runtime.run_workers import RunWorkers, serve


class Worker:
    """A process that ends when the test states, and whose end is seen only when the test allows it."""

    def __init__(self, pid: int) -> None:
        self.pid, self.exitcode, self.alive = pid, 0, True
        self.seen = threading.Event()

    def start(self) -> None: ...

    def is_alive(self) -> bool:
        return self.alive

    def join(self) -> None:
        self.seen.wait()


class Processes:
    """Starts `Worker`s, as a context of multiprocessing starts processes."""

    def __init__(self) -> None:
        self.started: list[Worker] = []

    def new(self, **_arguments: Any) -> Any:
        self.started.append(Worker(1000 + len(self.started)))
        return self.started[-1]


def waiters() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "_await_end" in thread.name]


def test_a_second_worker_of_a_run_stays_known_when_the_end_of_the_first_is_seen_late_r12() -> None:
    processes = Processes()
    workers = RunWorkers(processes.new)
    assert workers.start("run", "") == 1000
    first = processes.started[0]
    (waiter,) = waiters()
    first.alive = False
    assert not workers.is_alive("run")
    assert workers.start("run", "") == 1001
    first.seen.set()
    waiter.join()
    assert workers.is_alive("run")
    second = processes.started[1]
    (waiter,) = waiters()
    second.alive = False
    second.seen.set()
    waiter.join()
    assert not workers.is_alive("run")


def test_a_run_that_has_a_worker_gets_no_second_one_r12() -> None:
    processes = Processes()
    workers = RunWorkers(processes.new)
    assert workers.start("run", "") == workers.start("run", "") == 1000
    processes.started[0].seen.set()


@contextmanager
def hosting(home: Path, new_process: Any) -> Iterator[None]:
    """A host that answers requests in a thread of this process."""
    with worker_socket.listen(home) as listener:
        threading.Thread(target=serve, args=(listener, RunWorkers(new_process)), daemon=True).start()
        yield


def refused(**_arguments: Any) -> Any:
    raise OSError(errno.EMFILE, "Too many open files")


def failing(**arguments: Any) -> Any:
    return multiprocessing.get_context("fork").Process(**{**arguments, "target": os._exit, "args": (1,)})


@pytest.mark.parametrize(
    ("new_process", "answers"),
    [(multiprocessing.get_context("fork").Process, True), (refused, False), (failing, False)],
)
def test_the_probe_of_the_worker_host_starts_a_worker(tmp_path: Path, new_process: Any, answers: bool) -> None:
    with hosting(tmp_path, new_process):
        assert worker_socket.ask(tmp_path, {"what": "ping"}) is True, "what only answers seems well in every case"
        assert liveness.worker_host_answers(tmp_path)(10.0) is answers


def test_a_host_without_a_free_descriptor_does_not_pass_the_probe(tmp_path: Path) -> None:
    code = (
        "import sys, resource; from multiprocessing import get_context; from pathlib import Path\n"
        "from sda_platform.runtime import worker_socket\n"
        "from sda_platform.runtime.run_workers import RunWorkers, serve\n"
        "listener = worker_socket.listen(Path(sys.argv[1])); print('listening', flush=True)\n"
        "serve(listener, RunWorkers(get_context('fork').Process))"
    )
    host = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path.cwd())
    try:
        assert host.stdout is not None and host.stdout.readline() == b"listening\n"
        answers = liveness.worker_host_answers(tmp_path)
        assert answers(30.0)
        descriptors = len(list(Path(f"/proc/{host.pid}/fd").iterdir()))
        resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (descriptors + 1, descriptors + 1))
        assert worker_socket.ask(tmp_path, {"what": "ping"}) is True
        assert not answers(30.0)
    finally:
        host.kill()
        host.wait()
