"""A platform of T1: its directories, the processes that work on them, its oracle; delta-rs represents the engine."""

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, setrlimit
from typing import Any

import pyarrow as pa

from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import Table
from sda_platform.landing.lander import Lander
from sda_platform.landing.zone import LandingZone
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.campaign import small_disk
from sda_platform_tests.campaign.simulated_platform import FEEDS, Zones, run_tables
from sda_platform_tests.support import injections
from sda_platform_tests.support.delta_tables import with_delta_rs
from sda_platform_tests.support.segments import START_NS, radar_segment

RECORDS = 5
# Records of a frame are 72 bytes: the file becomes two segments.
SEGMENT_MAX_BYTES = 300
_TIMEOUT_S = 60.0
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


class DeltaRsLake(Lake):
    """A lake whose engine is delta-rs, and whose assets run without checks; records go by files, alerts by frames."""

    reads_unverified = True
    requires_lineage = False
    engine = staticmethod(with_delta_rs)

    def open(self) -> "DeltaRsLake":
        """As the lake's resource: here it is the lake itself."""
        return self

    def frame(self, table: Table, rows: pa.Table, *, stamped: bool = False) -> Any:
        """Arrow rows are the engine's frames here."""
        return rows

    def _goes_by_files(self, plan: Plan, rows: pa.Table) -> bool:
        """As many records would."""
        return plan.table.name == RAW_RECORDS.name and rows.num_rows > 0


@dataclass(frozen=True)
class Home:
    """The directories of one case: what the platform reads and writes is below ``disk``."""

    root: Path

    @property
    def order(self) -> Path:
        """Where the order for a fault is put."""
        return self.root / "order"

    @property
    def told(self) -> Path:
        """The file in which a failed process writes the reason."""
        return self.root / "failure"

    @property
    def disk(self) -> Path:
        """What a disturbance of the disk strikes."""
        return self.root / "disk"

    @property
    def file(self) -> Path:
        """The partner's file."""
        return self.disk / "pass.radar"

    @property
    def landing(self) -> str:
        """The landing zones."""
        return str(self.disk / "landing")

    @property
    def subscriber(self) -> SqliteSubscriber:
        """Who receives the alerts."""
        return SqliteSubscriber(self.disk / "subscriber.sqlite")

    def lake(self, now_s: float = 0.0) -> DeltaRsLake:
        """The lake, with the mission clock ``now_s`` off the data's day."""
        now_ns = START_NS + round(now_s * 1_000_000_000)
        return DeltaRsLake(str(self.disk / "lake"), MissionClock(now_ns, 0, 0.0), without_session, f"run-{os.getpid()}")

    def land(self, now_s: float = 0.0) -> None:
        """Land the partner's file, as `sda land` does."""
        Lander(self.landing, self.lake(now_s).clock, segment_max_bytes=SEGMENT_MAX_BYTES).land(self.file)

    def run_tables(self, now_s: float = 0.0) -> None:
        """One run of the pool."""
        run_tables(self.lake(now_s), Zones(self.landing, time.time() + now_s), self.subscriber)

    def zones(self) -> list[LandingZone]:
        """The landing zones of every feed."""
        return [LandingZone(self.landing, feed) for feed in FEEDS]


@contextmanager
def new_home(disk_kib: int | None = None) -> Iterator[Home]:
    """A place with the partner's file in it, gone afterwards; with ``disk_kib`` its disk is a small one of its own."""
    home = Home(Path(tempfile.mkdtemp(prefix="sda-t1-")))
    home.disk.mkdir()
    try:
        with small_disk.mounted(home.disk, disk_kib) if disk_kib else nullcontext():
            home.file.write_bytes(radar_segment(RECORDS))
            yield home
    finally:
        shutil.rmtree(home.root)


def work(root: Path, jump_s: float = 0.0, file_bytes: int = RLIM_INFINITY) -> None:
    """One process: it lands the partner's file, and runs the pool until nothing waits; 1 where something failed.

    Its clock is ``jump_s`` off, and it can write no file of more than ``file_bytes``.
    """
    home = Home(root)
    injections.arm_from(home.order)
    if file_bytes != RLIM_INFINITY:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        setrlimit(RLIMIT_FSIZE, (file_bytes, file_bytes))
    try:
        home.land(jump_s)
        home.run_tables(jump_s)
        while any(zone.pending_names() for zone in home.zones()):
            home.run_tables(jump_s)
    except Exception as error:
        home.told.write_text(f"{type(error).__name__}: {error}")
        sys.exit(1)


def started(program: Callable[[], None]) -> BaseProcess:
    """A process of its own that runs ``program``."""
    process = _FORKS.Process(target=program)
    process.start()
    return process


def to_its_end(process: BaseProcess) -> int:
    """The exit code; a process that does not end in time is killed, and the exit code is then -9."""
    process.join(_TIMEOUT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode or 0


def until_reached(process: BaseProcess, order: Path) -> bool:
    """Wait until the process is stopped at its point. False: it ended without coming there."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not injections.hits(order) and process.exitcode is None and time.monotonic() < deadline:
        process.join(0.02)
    return bool(injections.hits(order))


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
    held = Counter(entry.revision for entry in home.subscriber.held())
    if held != alerts or len(alerts) != expected.total():
        problems.append(f"O6: the subscriber lacks {alerts - held} and has {held - alerts} beyond the journal")
    waiting = [name for zone in home.zones() for name in zone.pending_files()]
    return problems + ([f"O8: {waiting} still wait"] if waiting else [])


def _expected(home: Home) -> Iterator[tuple[str, int]]:
    """Every record of the partner's file, under the segment that a lander of any run must cut it into."""
    with tempfile.TemporaryDirectory() as elsewhere:
        Lander(elsewhere, MissionClock(START_NS, 0, 0.0), segment_max_bytes=SEGMENT_MAX_BYTES).land(home.file)
        for segment in LandingZone(elsewhere, "radar").pending():
            if segment.meta is not None:
                yield from ((segment.meta.sha256, number) for number in range(segment.meta.records))
