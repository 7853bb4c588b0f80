"""Fault points: named places at which a test may kill, stop or fail the process that reaches them.

A point is a call of `reach` with its name, and, where several tables pass it, the table. Unarmed, that is one
comparison. A test arms one point at a time: it sets
``SDA_FAULTS`` to the path of an order file before the process starts, and writes the order (`Order`) whenever it
likes, so that a running platform can be hit at one point after another. The order is taken by exactly one process;
what was reached is written, and synced, to ``<order file>.reached`` before the fault strikes: a campaign can tell a
point that held from one that was never reached.
"""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

ORDER_FILE = "SDA_FAULTS"

Action = Literal["kill", "stop", "fail", "kill-other"]


class InjectedFault(Exception):
    """What an armed point raises for the action ``fail``."""


@dataclass(frozen=True)
class Order:
    """Strike at the ``nth`` time that a process reaches ``point``, for whatever table, or ``point:table`` for that one.

    ``kill`` and ``stop`` send SIGKILL and SIGSTOP to the process itself, ``fail`` raises `InjectedFault`, and
    ``kill-other`` kills the process ``pid`` (the engine, say) and lets this one go on.
    """

    point: str
    action: Action = "kill"
    nth: int = 1
    pid: int = 0

    def arm(self, order_file: Path) -> None:
        """Put the order where the processes under test look for it, whole at once."""
        partial = order_file.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self)))
        partial.rename(order_file)


def reach(point: str, table: str = "") -> None:
    """Tell that this process is at ``point`` (of ``table``); does nothing unless a test ordered a fault there."""
    if _strike is not None:
        _strike(f"{point}:{table}" if table else point)


def reached(order_file: Path) -> list[str]:
    """The points at which an order struck, oldest first."""
    told = order_file.with_suffix(".reached")
    return told.read_text().split() if told.exists() else []


def watch(strike: Callable[[str], None] | None) -> None:
    """Have ``strike`` called with every point of this process (``point:table``), for tests inside it."""
    global _strike
    _strike = strike


def obey(order_file: Path) -> None:
    """Strike in this process as ``order_file`` says: for one that was forked, and could not be told by `ORDER_FILE`."""
    watch(_OrderFile(order_file))


class _OrderFile:
    """Strikes as the order file says."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._visits: Counter[str] = Counter()

    def __call__(self, point: str) -> None:
        try:
            order = Order(**json.loads(self._path.read_text()))
        except FileNotFoundError:
            return
        if order.point not in (point, point.partition(":")[0]):
            return
        self._visits[order.point] += 1
        if self._visits[order.point] < order.nth:
            return
        try:
            self._path.rename(self._path.with_suffix(".taken"))
        except FileNotFoundError:
            return  # another process took it
        self._visits.clear()
        self._tell(order.point)
        _carry_out(order)

    def _tell(self, point: str) -> None:
        with self._path.with_suffix(".reached").open("a") as file:
            file.write(point + "\n")
            file.flush()
            os.fsync(file.fileno())


def _carry_out(order: Order) -> None:
    if order.action == "fail":
        raise InjectedFault(f"injected at {order.point}")
    if order.action == "kill-other":
        os.kill(order.pid, signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL if order.action == "kill" else signal.SIGSTOP)


_strike: Callable[[str], None] | None = _OrderFile(Path(os.environ[ORDER_FILE])) if os.environ.get(ORDER_FILE) else None
