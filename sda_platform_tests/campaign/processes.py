"""T1 of the fault campaign: real processes, real files, real SQLite; delta-rs represents the engine.

A case lands a partner's file and runs the pool in processes of their own. At one fault point the process is killed,
stopped (while another does its work, and continued then) or fails, or its disk becomes read-only; or the disk fills
up, or the clock jumps. What is restarted must end with every record once, every alert once, and nothing waiting.
"""

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Literal

from sda_platform import failpoints
from sda_platform_tests.campaign import small_disk
from sda_platform_tests.campaign.process_home import (
    Home,
    contradictions,
    new_home,
    started,
    to_its_end,
    until_reached,
    work,
)
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_platform import ORPHAN_GRACE_S
from sda_platform_tests.support import injections
from sda_platform_tests.support.segments import START_NS

Disturbance = Literal["kill", "stop", "fail", "read-only", "full", "clock"]
_CLOCK_JUMPS_S = (3600, -3600, 86_400, -86_400, -START_NS // 1_000_000_000)
# About what an undisturbed case needs, and much more.
_NEEDED_KIB, _PLENTY_KIB = 200, 16_384
_LARGEST_FILE_BYTES = 30_000


@dataclass(frozen=True)
class Case:
    """``disturbance`` strikes at ``point``; ``full`` and ``clock`` need none: their ``number`` shows how much.

    A full disk has ``number`` KiB where mounting is allowed; elsewhere the size of files is limited in that proportion.
    """

    disturbance: Disturbance
    point: str = ""
    number: int = 0

    def __str__(self) -> str:
        return f"{self.disturbance} {self.point or self.number}"

    @property
    def disk_kib(self) -> int | None:
        """The size of the disk that it needs for itself, if any."""
        if self.disturbance not in ("full", "read-only") or not small_disk.is_allowed():
            return None
        return self.number if self.disturbance == "full" else _PLENTY_KIB


def points() -> list[str]:
    """The fault points that an undisturbed process passes, in the order in which it comes to them."""
    passed: dict[str, None] = {}
    with new_home() as home:
        failpoints.watch(lambda point: passed.setdefault(point))
        try:
            home.land()
            home.run_tables()
        finally:
            failpoints.watch(None)
    return list(passed)


def cases(repeats: int, seed: int) -> Iterator[Case]:
    """Every disturbance at every point; a disk that is full sooner or later; clocks that jump.

    Only who may mount can make a disk read-only.
    """
    chance = random.Random(seed)
    at_points: list[Disturbance] = ["kill", "stop", "fail"]
    if small_disk.is_allowed():
        at_points.append("read-only")
    for _ in range(repeats):
        for point in points():
            yield from (Case(disturbance, point) for disturbance in at_points)
        yield from (Case("full", number=chance.randint(8, _NEEDED_KIB)) for _ in range(5))
        yield from (Case("clock", number=number) for number in range(len(_CLOCK_JUMPS_S)))


def run(repeats: int = 25, seed: int = 1, *, stride: int = 1, point: str = "") -> Report:
    """Every ``stride``-th case whose name has the regular expression ``point``, ``repeats`` times each."""
    tried = [case for case in cases(repeats, seed) if re.search(point, str(case))][::stride]
    failures: list[str] = []
    recoveries: list[float] = []
    reached: set[str] = set()
    for case in tried:
        with new_home(case.disk_kib) as home:
            problems, seconds = outcome(case, home)
            recoveries.append(seconds)
            reached.update(injections.hits(home.order))
            failures += [
                f"{case}: {problem} [replay: --tier t1 --seed {seed} --point '{case}']" for problem in problems
            ]
    wanted = {case.point for case in tried if case.point}
    return Report(
        "T1 processes",
        seed,
        len(tried),
        frozenset(reached),
        frozenset(wanted - reached),
        tuple(failures),
        tuple(recoveries),
        (_how_disks_fill(),),
    )


def _how_disks_fill() -> str:
    if small_disk.is_allowed():
        return "disks that fill up or become read-only were real ones (tmpfs)"
    return "mounting is not allowed here: a limit on the size of files stood for a full disk, and none was read-only"


def outcome(case: Case, home: Home) -> tuple[list[str], float]:
    """What went wrong in ``case``, and the seconds from the restart to its end."""
    zombie = _disturb(case, home)
    began = time.perf_counter()
    failed = to_its_end(started(partial(work, home.root)))
    seconds = time.perf_counter() - began
    if zombie is not None and zombie.pid is not None:
        os.kill(zombie.pid, signal.SIGCONT)
        to_its_end(zombie)
        failed = 0  # while the zombie was stopped it may have held the subscriber's lock
    # Partial files of dead writers go once they are old.
    failed = failed or to_its_end(started(partial(work, home.root, 2 * ORPHAN_GRACE_S)))
    told = home.told.read_text() if failed and home.told.exists() else ""
    ended = [f"O8: the restarted process ended with {failed} {told}"] if failed else []
    return ended + contradictions(home), seconds


def _disturb(case: Case, home: Home) -> BaseProcess | None:
    """Have the disturbance; gives the process where it is stopped now."""
    match case.disturbance:
        case "clock":
            to_its_end(started(partial(work, home.root, float(_CLOCK_JUMPS_S[case.number]))))
        case "full":
            _fill(home, case)
        case "read-only":
            _without_writes(home, case.point)
        case action:
            injections.Injection(case.point, action).arm(home.order)
            process = started(partial(work, home.root))
            if action == "stop":
                return process if until_reached(process, home.order) else None
            to_its_end(process)
    return None


def _fill(home: Home, case: Case) -> None:
    """Work on a disk that has too little room, which is then given more."""
    if case.disk_kib is None:
        to_its_end(started(partial(work, home.root, 0.0, case.number * _LARGEST_FILE_BYTES // _NEEDED_KIB)))
        return
    to_its_end(started(partial(work, home.root)))
    small_disk.enlarge(home.disk, _PLENTY_KIB)


def _without_writes(home: Home, point: str) -> None:
    """From this point on every write is refused, until the process has ended.

    Where it has a file open to write at that moment the disk stays as it was, and it is killed instead.
    """
    injections.Injection(point, "stop").arm(home.order)
    process = started(partial(work, home.root))
    if not until_reached(process, home.order) or process.pid is None:
        return
    is_refused = small_disk.make_read_only(home.disk)
    os.kill(process.pid, signal.SIGCONT if is_refused else signal.SIGKILL)
    to_its_end(process)
    small_disk.make_writable(home.disk)
