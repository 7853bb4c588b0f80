"""Faults that are injected at failpoints of other processes.

`armed` gives the environment in which a process, and every Python process that it starts, reads injections from a file.
A test arms one failpoint at a time by writing an `Injection` to that file, also while the processes run. Exactly one
process carries an injection out. The name is first written and synced to ``<injection file>.hits``. So a campaign can
tell a failpoint that withstood the fault from one that was never hit.
"""

import json
import os
import signal
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from sda_platform import failpoints
from sda_platform.failpoints import InjectedFault

INJECTION_FILE = "FAILPOINT_INJECTIONS"
"""The environment variable that names the injection file; `armed/sitecustomize.py` reads it."""

Action = Literal["kill", "stop", "fail", "kill-other"]


@dataclass(frozen=True)
class Injection:
    """A fault at the ``nth`` hit of ``point`` by one process, for any table, or of ``point:table`` for that one.

    ``kill`` and ``stop`` send SIGKILL and SIGSTOP to the process itself. ``fail`` raises `InjectedFault`.
    ``kill-other`` kills the process ``pid``, for example the engine, and lets this one continue. ``then`` is armed
    before, so that the same run may meet it as well.
    """

    point: str
    action: Action = "kill"
    nth: int = 1
    pid: int = 0
    then: "Injection | None" = None

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Self:
        """What `arm` wrote."""
        then = facts.pop("then")
        return cls(**facts, then=cls.of(then) if then else None)

    def arm(self, injection_file: Path) -> None:
        """Write the injection atomically to the file that the processes under test read."""
        partial = injection_file.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self)))
        partial.rename(injection_file)


def armed(injection_file: Path) -> dict[str, str]:
    """The variables with which a process and its children carry out what ``injection_file`` holds."""
    # Python imports `sitecustomize` from this directory when it starts.
    directory = Path(__file__).with_name("armed")
    path = os.pathsep.join([str(directory), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return {INJECTION_FILE: str(injection_file), "PYTHONPATH": path}


def hits(injection_file: Path) -> list[str]:
    """The failpoints at which a fault was injected, oldest first."""
    recorded = injection_file.with_suffix(".hits")
    return recorded.read_text().split() if recorded.exists() else []


def arm_from(injection_file: Path) -> None:
    """Read injections from ``injection_file`` in this process."""
    failpoints.watch(_InjectionFile(injection_file))


class _InjectionFile:
    """Carries out what the injection file holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: Counter[str] = Counter()

    def __call__(self, point: str) -> None:
        try:
            injection = Injection.of(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return
        if injection.point not in (point, point.partition(":")[0]):
            return
        self._counts[injection.point] += 1
        if self._counts[injection.point] < injection.nth:
            return
        try:
            self._path.rename(self._path.with_suffix(".taken"))
        except FileNotFoundError:
            return  # another process took it
        self._counts.clear()
        self._record(injection.point)
        if injection.then is not None:
            injection.then.arm(self._path)
        _carry_out(injection)

    def _record(self, point: str) -> None:
        with self._path.with_suffix(".hits").open("a") as file:
            file.write(point + "\n")
            file.flush()
            os.fsync(file.fileno())


def _carry_out(injection: Injection) -> None:
    if injection.action == "fail":
        raise InjectedFault(f"injected at {injection.point}")
    if injection.action == "kill-other":
        os.kill(injection.pid, signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL if injection.action == "kill" else signal.SIGSTOP)
