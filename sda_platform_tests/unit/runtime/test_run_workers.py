"""The worker host's table of workers, with processes whose end a test decides; the system test has real ones."""

import threading
from typing import Any

from sda_platform.runtime.run_workers import RunWorkers


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
