"""Failpoints: named places in the code where a test kills, stops or fails the process that hits them.

A failpoint is a call of `hit` with its name and, where several tables pass it, the table. While none is armed, a hit is
one comparison. A test sets ``SDA_FAILPOINTS`` to the path of an injection file before the process starts. It arms one
failpoint at a time by writing an `Injection` to that file, also while the platform runs. Exactly one process carries an
injection out. The name is first written and synced to ``<injection file>.hits``. So a campaign can tell a failpoint
that withstood the fault from one that was never hit.
"""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

INJECTION_FILE = "SDA_FAILPOINTS"

Action = Literal["kill", "stop", "fail", "kill-other"]


class InjectedFault(Exception):
    """What an armed failpoint raises for the action ``fail``."""


@dataclass(frozen=True)
class Injection:
    """A fault at the ``nth`` hit of ``point`` by one process, for any table, or of ``point:table`` for that one.

    ``kill`` and ``stop`` send SIGKILL and SIGSTOP to the process itself. ``fail`` raises `InjectedFault`.
    ``kill-other`` kills the process ``pid``, for example the engine, and lets this one continue.
    """

    point: str
    action: Action = "kill"
    nth: int = 1
    pid: int = 0

    def arm(self, injection_file: Path) -> None:
        """Write the injection atomically to the file that the processes under test read."""
        partial = injection_file.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self)))
        partial.rename(injection_file)


def hit(point: str, table: str = "") -> None:
    """Inject the fault that a test armed at ``point`` (of ``table``); do nothing while none is armed."""
    if _on_hit is not None:
        _on_hit(f"{point}:{table}" if table else point)


def hits(injection_file: Path) -> list[str]:
    """The failpoints at which a fault was injected, oldest first."""
    recorded = injection_file.with_suffix(".hits")
    return recorded.read_text().split() if recorded.exists() else []


def watch(on_hit: Callable[[str], None] | None) -> None:
    """Call ``on_hit`` with every failpoint of this process (``point:table``)."""
    global _on_hit
    _on_hit = on_hit


def arm_from(injection_file: Path) -> None:
    """Read injections from ``injection_file`` in this process, which was forked and has no `INJECTION_FILE`."""
    watch(_InjectionFile(injection_file))


class _InjectionFile:
    """Carries out what the injection file holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: Counter[str] = Counter()

    def __call__(self, point: str) -> None:
        try:
            injection = Injection(**json.loads(self._path.read_text()))
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


_on_hit: Callable[[str], None] | None = (
    _InjectionFile(Path(os.environ[INJECTION_FILE])) if os.environ.get(INJECTION_FILE) else None
)
