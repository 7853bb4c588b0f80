"""Processes that a test can stop, interleave and kill at every step, one at a time and repeatably.

Each process is a greenlet. At every operation on the disk, and at every fault point of the platform, it comes back to
the scheduler, which decides who continues and who is killed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

# Steps that change nothing: dying before one of them is dying before the next that does.
LOOKING = frozenset({"look", "list", "read", "point"})


class Killed(BaseException):
    """Ends a process wherever it is; no handler of errors catches it."""


class ConnectionLost(Exception):
    """What a process sees when the one it waits for is gone."""


class Process:
    """One program run; ``number`` is its id, and ``waits_for`` the process whose end it awaits."""

    def __init__(self, name: str, number: int, program: Callable[[], Any], scheduler: greenlet) -> None:
        self.name = name
        self.number = number
        self.is_dead = False
        self.waits_for: Process | None = None
        self.result: Any = None
        self.failure: Exception | None = None
        self._program = program
        self._greenlet = greenlet(self._run, parent=scheduler)

    @property
    def is_over(self) -> bool:
        """Whether it ended, by itself or not."""
        return self.is_dead or self._greenlet.dead

    @property
    def can_go_on(self) -> bool:
        """Whether it has something to do now."""
        return not self.is_over and (self.waits_for is None or self.waits_for.is_over)

    def go_on(self) -> None:
        """Let it run up to its next step."""
        self._greenlet.switch()

    def kill(self) -> None:
        """End it where it is: nothing of it runs any more, not even its handlers."""
        self.is_dead = True
        if self._greenlet:  # has begun and has not ended
            self._greenlet.throw(Killed)

    def _run(self) -> None:
        try:
            self.result = self._program()
        except Killed:
            pass
        except Exception as error:  # the program failed: the waiting caller gets the error
            self.failure = error


@dataclass
class Scheduler:
    """Runs processes step by step and keeps count of the steps that they are about to take."""

    steps: int = 0
    looks: int = 0
    trace: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    _running: Process | None = None
    _started: int = 0
    _own: greenlet = field(default_factory=getcurrent)
    _thread: int = field(default_factory=threading.get_ident)

    @property
    def is_idle(self) -> bool:
        """Whether no process has anything left to do."""
        return all(process.is_over for process in self.processes)

    @property
    def running(self) -> int:
        """The number of the process that runs; 0 outside of one."""
        return self._running.number if self._running else 0

    def start(self, name: str, program: Callable[[], Any]) -> Process:
        """Make a process; it takes its first step when it is chosen."""
        self._started += 1
        process = Process(name, self._started, program, self._own)
        self.processes.append(process)
        return process

    def step(self, kind: str, path: str = "") -> None:
        """A process is about to do this, and does it when it is chosen next; outside of a process, continue at once."""
        process = self._running
        if process is None or threading.get_ident() != self._thread:
            return  # helpers in threads of the platform only read
        if process.is_dead:
            raise Killed
        if kind in LOOKING:
            self.looks += 1
        else:
            self.steps += 1
            self.trace.append(f"{process.name}: {kind} {path}")
        self._own.switch()

    def wait(self, process: Process) -> Any:
        """From inside a process: the result of another one. Raises what made that one fail, or ConnectionLost."""
        waiting = self._running
        if waiting is None:
            raise RuntimeError("only a process can wait for another")
        waiting.waits_for = process
        self._own.switch()
        waiting.waits_for = None
        if process.is_dead:
            raise ConnectionLost(f"{process.name} does not answer any more")
        if process.failure is not None:
            raise process.failure
        return process.result

    def run(self, choose: Callable[[list[Process]], Process | None]) -> None:
        """Let ``choose`` pick who continues, until all are over or it picks no one (who then are where they are)."""
        while ready := [p for p in self.processes if p.can_go_on]:
            chosen = choose(ready)
            if chosen is None:
                return
            self._running = chosen
            try:
                chosen.go_on()
            finally:
                self._running = None
        self.processes.clear()

    def kill_all(self) -> None:
        """The machine stops."""
        for process in self.processes:
            self._running = process
            process.kill()
        self._running = None
        self.processes.clear()
