"""T1 of the fault campaign: real processes, real files, real SQLite; delta-rs stands for the engine.

A case lands a partner's file and runs the lane in processes of their own. At one fault point the process is killed,
stopped (while another does its work, and continued then) or fails; or the disk or the clock does. What is restarted
must end with every record once, every alert once, and nothing waiting.
"""

import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, setrlimit
from typing import Any, Literal

import pyarrow as pa

from sda_platform import faults
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.ingest.lander import Lander
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.table import Table
from sda_platform.lake.verification import broken_chain
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_platform import FEEDS, ORPHAN_GRACE_S, Zones, run_lane
from sda_platform_tests.delta_tables import with_delta_rs
from sda_platform_tests.segments import START_NS, radar_segment

Disturbance = Literal["kill", "stop", "fail", "full", "clock"]
RECORDS = 5
# Records of a frame are 72 bytes: the file becomes two segments.
SEGMENT_MAX_BYTES = 300
_PATIENCE_S = 60.0
_CLOCK_JUMPS_S = (3600, -3600, 86_400, -86_400, -START_NS // 1_000_000_000)
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Case:
    """``disturbance`` strikes at ``point`` the ``nth`` time it is reached; ``full`` and ``clock`` need no point."""

    disturbance: Disturbance
    point: str = ""
    number: int = 0

    def __str__(self) -> str:
        return f"{self.disturbance} {self.point or self.number}"


class DeltaRsLake(Lake):
    """A lake whose engine is delta-rs."""

    engine = staticmethod(with_delta_rs)

    def open(self) -> "DeltaRsLake":
        """As the lake's resource: here it is the lake itself."""
        return self

    def frame(self, table: Table, rows: pa.Table) -> Any:
        """Arrow rows are the engine's frames here."""
        return rows


@dataclass(frozen=True)
class Home:
    """The directories of one case."""

    root: Path

    @property
    def order(self) -> Path:
        """Where the order for a fault is put."""
        return self.root / "order"

    @property
    def landing(self) -> str:
        """The landing zones."""
        return str(self.root / "landing")

    @property
    def subscriber(self) -> SqliteSubscriber:
        """Who receives the alerts."""
        return SqliteSubscriber(self.root / "subscriber.sqlite")

    def lake(self, now_s: float = 0.0) -> DeltaRsLake:
        """The lake, with the mission clock ``now_s`` off the data's day."""
        now_ns = START_NS + round(now_s * 1_000_000_000)
        return DeltaRsLake(str(self.root / "lake"), MissionClock(now_ns, 0, 0.0), without_session, f"run-{os.getpid()}")


def work(root: Path, jump_s: float = 0.0, file_bytes: int = RLIM_INFINITY) -> None:
    """One process: it lands the partner's file, and runs the lane until nothing waits; 1 where something failed."""
    faults.obey(Home(root).order)
    if file_bytes != RLIM_INFINITY:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        setrlimit(RLIMIT_FSIZE, (file_bytes, file_bytes))
    try:
        _land_and_run(Home(root), jump_s)
    except Exception as error:
        (root / "failure").write_text(f"{type(error).__name__}: {error}")
        sys.exit(1)


def _land_and_run(home: Home, jump_s: float) -> None:
    lake = home.lake(jump_s)
    Lander(home.landing, lake.clock, segment_max_bytes=SEGMENT_MAX_BYTES).land(home.root / "pass.radar")
    zones = Zones(home.landing, time.time() + jump_s)
    run_lane(lake, zones, home.subscriber)
    while any(zone.pending_names() for zone in zones.zones(FEEDS)):
        run_lane(lake, zones, home.subscriber)


def points() -> list[str]:
    """The fault points that an undisturbed process passes, in the order in which it comes to them."""
    passed: dict[str, None] = {}
    with _home() as home:
        faults.watch(lambda point: passed.setdefault(point))
        try:
            run = Home(home)
            Lander(run.landing, run.lake().clock, segment_max_bytes=SEGMENT_MAX_BYTES).land(home / "pass.radar")
            run_lane(run.lake(), Zones(run.landing, time.time()), run.subscriber)
        finally:
            faults.watch(None)
    return list(passed)


def cases(repeats: int, seed: int) -> Iterator[Case]:
    """Kill, stop and fail at every point; a disk that is full at one size of file after another; clocks that jump."""
    chance = random.Random(seed)
    for _ in range(repeats):
        for point in points():
            yield from (Case(disturbance, point) for disturbance in ("kill", "stop", "fail"))
        yield from (Case("full", number=chance.randint(1, 20_000)) for _ in range(3))
        yield from (Case("clock", number=number) for number in range(len(_CLOCK_JUMPS_S)))


def run(repeats: int = 25, seed: int = 1, *, stride: int = 1, point: str = "") -> Report:
    """Every ``stride``-th case whose name has the regular expression ``point``, ``repeats`` times each."""
    tried = [case for case in cases(repeats, seed) if re.search(point, str(case))][::stride]
    failures: list[str] = []
    recoveries: list[float] = []
    reached: set[str] = set()
    for case in tried:
        with _home() as root:
            problems, seconds = outcome(case, root)
            recoveries.append(seconds)
            reached.update(faults.reached(Home(root).order))
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
    )


def outcome(case: Case, root: Path) -> tuple[list[str], float]:
    """What went wrong in ``case``, and the seconds from the restart to its end."""
    zombie = _disturb(case, root)
    began = time.perf_counter()
    failed = _to_its_end(_started(partial(work, root)))
    seconds = time.perf_counter() - began
    if zombie is not None and zombie.pid is not None:
        os.kill(zombie.pid, signal.SIGCONT)
        _to_its_end(zombie)
        failed = 0  # while the zombie stood still it may have held the subscriber's lock
    # Partial files of dead writers go once they are old.
    failed = failed or _to_its_end(_started(partial(work, root, 2 * ORPHAN_GRACE_S)))
    told = (root / "failure").read_text() if failed and (root / "failure").exists() else ""
    ended = [f"O8: the restarted process ended with {failed} {told}"] if failed else []
    return ended + contradictions(Home(root)), seconds


def contradictions(home: Home) -> list[str]:
    """What does not hold at the end (O1, O3, O6, O8), by the tables' columns and the subscriber's own account."""
    expected = Counter(_expected(home))
    lake, problems = home.lake(), []
    rows = lake.log(RAW_RECORDS).rows(["segment_sha256", "record_number"]).to_pylist()
    if (found := Counter((r["segment_sha256"], r["record_number"]) for r in rows)) != expected:
        problems.append(f"O1: records missing {expected - found}, surplus {found - expected}")
    for table in (RAW_RECORDS, CONJUNCTION_ALERTS):
        problems += [f"O3: {table.name}: {problem}" for problem in broken_chain(lake.log(table).commits())]
    journal = lake.log(CONJUNCTION_ALERTS).rows(["event_id", "sequence", "op"]).to_pylist()
    alerts = Counter((r["event_id"], r["sequence"], r["op"]) for r in journal)
    held = Counter(entry.key for entry in home.subscriber.held())
    if held != alerts or len(alerts) != expected.total():
        problems.append(f"O6: the subscriber lacks {alerts - held} and has {held - alerts} beyond the journal")
    waiting = [name for feed in FEEDS for name in LandingZone(home.landing, feed).pending_files()]
    return problems + ([f"O8: {waiting} still wait"] if waiting else [])


def _expected(home: Home) -> Iterator[tuple[str, int]]:
    """Every record of the partner's file, under the segment that a lander of any run must cut it into."""
    with _home() as undisturbed:
        Lander(str(undisturbed), MissionClock(START_NS, 0, 0.0), segment_max_bytes=SEGMENT_MAX_BYTES).land(
            home.root / "pass.radar"
        )
        for segment in LandingZone(str(undisturbed), "radar").pending():
            if segment.meta is not None:
                yield from ((segment.meta.sha256, number) for number in range(segment.meta.records))


def _disturb(case: Case, root: Path) -> BaseProcess | None:
    """Have the disturbance; gives the process where it stands still now."""
    if case.disturbance == "clock":
        _to_its_end(_started(partial(work, root, float(_CLOCK_JUMPS_S[case.number]))))
    elif case.disturbance == "full":
        _to_its_end(_started(partial(work, root, 0.0, case.number)))
    else:
        order = Home(root).order
        faults.Order(case.point, case.disturbance).arm(order)
        process = _started(partial(work, root))
        if case.disturbance == "stop":
            return process if _until_reached(process, order) else None
        _to_its_end(process)
    return None


def _started(program: Callable[[], None]) -> BaseProcess:
    process = _FORKS.Process(target=program)
    process.start()
    return process


def _to_its_end(process: BaseProcess) -> int:
    """The exit code; a process that does not end within the patience is killed, and -9 tells it."""
    process.join(_PATIENCE_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode or 0


def _until_reached(process: BaseProcess, order: Path) -> bool:
    """Wait until the process stands still at its point. False: it ended without coming there."""
    deadline = time.monotonic() + _PATIENCE_S
    while not faults.reached(order) and process.exitcode is None and time.monotonic() < deadline:
        process.join(0.02)
    return bool(faults.reached(order))


@contextmanager
def _home() -> Iterator[Path]:
    """A place with the partner's file in it, gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="sda-t1-"))
    (root / "pass.radar").write_bytes(radar_segment(RECORDS))
    try:
        yield root
    finally:
        shutil.rmtree(root)
