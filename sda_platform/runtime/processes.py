"""One supervised process: leashed, in its own process group, logged to a file, restarted with growing pauses.

`services` has the commands of the processes.
"""

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sda_platform.resilience import RestartBudget, doubling_s
from sda_platform.runtime import guardian

LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0
"""A process that ran this long has recovered: its next restart has no pause."""
_RESTARTS = 5
"""Within a minute; a process that needs more is reported, and restarted with the longest pause."""
_PORTS = range(20_000, 32_768)
"""Below the ports that a kernel gives to outgoing connections: none of those takes a port before its server starts."""
_next_port = itertools.count(random.randrange(len(_PORTS)))


@dataclass
class Service:
    """A program that shall run while the platform does. ``is_ready`` answers fast and never raises."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    directory: Path
    log: Path
    is_ready: Callable[[], bool] = lambda: True
    restarts: int = 0
    is_exhausted: bool = False
    _budget: RestartBudget = field(default_factory=lambda: RestartBudget(_RESTARTS, _STEADY_S), repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _began: float = 0.0
    _failures: int = 0
    _due: float | None = None

    def start(self) -> None:
        """Start it in a process group of its own; its output is appended to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        leash = [sys.executable, "-I", "-S", guardian.__file__, "leash", str(os.getpid())]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*leash, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
                cwd=self.directory,
                process_group=0,
            )
        self._began, self._due = time.monotonic(), None

    @property
    def pid(self) -> int | None:
        """Process id, None before the first start."""
        return self._process.pid if self._process else None

    @property
    def is_alive(self) -> bool:
        """Tell whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the ended process; negative when a signal ended it."""
        return self._process.poll() if self._process else None

    def revive(self, now: float) -> str | None:
        """Restart an ended process once its pause is over; returns what was done, for people, or None.

        The pause doubles with every end in quick succession, from one second to LONGEST_PAUSE_S.
        """
        if self.is_alive:
            self.is_exhausted = self.is_exhausted and now - self._began <= _STEADY_S
            return None
        if self._due is None:
            self._failures = 0 if now - self._began > _STEADY_S else self._failures + 1
            self.is_exhausted = not self._budget.spend(now)
            pause = doubling_s(self._failures, base_s=1.0, cap_s=LONGEST_PAUSE_S) if self._failures else 0.0
            pause = LONGEST_PAUSE_S if self.is_exhausted else pause
            self._due = now + pause
            self.signal(signal.SIGKILL)  # its child processes must end before the new process starts
            often = f", more than {_RESTARTS} times within a minute" if self.is_exhausted else ""
            return f"{self.name} ended ({describe_exit(self.exit_code)}){often}; starting it again in {pause:.0f} s"
        if now < self._due:
            return None
        self.restarts += 1
        self.start()
        return f"{self.name} restarted (number {self.restarts})"

    def signal(self, number: int) -> None:
        """Send a signal to its whole process group, if there still is one."""
        if self._process is not None:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def wait(self) -> None:
        """Return when the process has ended."""
        if self._process is not None:
            self._process.wait()

    def last_words(self, lines: int = 12) -> str:
        """Read the end of the process's log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def stop_all(services: Iterable[Service], number: int, grace_s: float) -> None:
    """Send signal ``number`` to every process group; kill the remaining processes after ``grace_s`` seconds."""
    stopped = list(services)
    for service in stopped:
        service.signal(number)
    await_end(stopped, time.monotonic() + grace_s)


def await_end(services: Iterable[Service], until_s: float) -> None:
    """Wait until the process groups have ended; kill what remains at ``until_s`` of the monotonic clock, seconds."""
    waiting = list(services)
    while any(service.is_alive for service in waiting) and time.monotonic() < until_s:
        time.sleep(0.05)
    for service in waiting:
        service.signal(signal.SIGKILL)


def describe_exit(code: int | None) -> str:
    """Describe an exit code, for people."""
    if code is None:
        return "still running"
    if code < 0:
        return f"by {signal.Signals(-code).name}"
    return f"exit code {code}"


def free_port(preferred: int) -> int:
    """``preferred`` if the port is free on this machine, else a free port; 0 = any. A process gets no port twice.

    Raises:
        OSError: No port is free.
    """
    others = (_PORTS[next(_next_port) % len(_PORTS)] for _ in _PORTS)
    for port in itertools.chain([preferred] if preferred else [], others):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port on 127.0.0.1")
