"""How the platform is hit: each strike lands input, waits until its point is reached, strikes, and returns.

What it needs is a `Victim` and a way to land; mending is the platform's business, and judging the oracle's.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pyspark.sql.connect.session import SparkSession
from upath import UPath

from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform_tests.campaign.job_process import run_job
from sda_platform_tests.campaign.platform import NotReached, Victim, frozen_until
from sda_platform_tests.campaign.world import Input
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.injections import Injection
from sda_platform_tests.support.running_platform import eventually

# Lands what decides which tables are written, before a blow.
Land = Callable[[Input], None]
Files = set[UPath]
State = Callable[[Files, Files], bool]
_FREEZE_S = 120.0
# How long the engine works between two looks; to list an object store takes longer than to list a directory.
_SLICE_S, _STORE_SLICE_S = 0.001, 0.01


class Strike(Protocol):
    """One way to hit the platform."""

    def hit(self, victim: Victim, land: Land) -> float:
        """Do it; gives the moment of the (last) blow, monotonic seconds.

        Raises NotReached where the platform did not come to the point.
        """
        ...


@dataclass(frozen=True)
class Kill:
    """SIGKILL, when some process is at ``point``: that process, or the named service."""

    point: str
    landed: Input = "readings"
    service: str = ""
    action: Literal["kill", "fail"] = "kill"

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        if self.service:
            return _strike(victim, land, self.landed, Injection(self.point, "kill-other", pid=victim.pid(self.service)))
        return _strike(victim, land, self.landed, Injection(self.point, self.action))


@dataclass(frozen=True)
class KillAgain:
    """SIGKILL of the worker at ``point``, and of the one that takes its place when it is at ``again``."""

    point: str
    again: str
    landed: Input = "readings"

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        _strike(victim, land, self.landed, Injection(self.point))
        return _strike(victim, lambda _input: None, self.landed, Injection(self.again))


@dataclass(frozen=True)
class KillBetween:
    """SIGKILL of the worker at ``point``; before its successor is at work, ``meanwhile`` is done to the tables."""

    point: str
    meanwhile: Callable[[Victim], None]
    landed: Input = "readings"

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        worker = _stopped_at(victim, land, self.point, self.landed)
        self.meanwhile(victim)
        return _killed(worker)


@dataclass(frozen=True)
class KillEngine:
    """SIGKILL of the engine in the middle of a commit to ``table``, as soon as its directory is in ``state``.

    ``state`` is queried while the engine is stopped, about the files of before and those of now.
    """

    table: Table
    state: State
    landed: Input = "readings"

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        worker = _stopped_at(victim, land, f"commit.planned:{self.table.name}", self.landed)
        return _kill_engine_at(victim, self.table, self.state, lambda: os.kill(worker, signal.SIGCONT))


@dataclass(frozen=True)
class KillClient:
    """SIGKILL of the worker while the engine executes its statement about ``table``, at ``state`` of the directory.

    The engine is stopped until the next worker has planned the same commit. Then the statement of the dead worker
    continues, and when it has landed or failed, so does the next worker.
    """

    table: Table
    state: State
    landed: Input = "readings"

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        name, engine = self.table.name, victim.pid("engine")
        worker = _stopped_at(victim, land, f"commit.planned:{name}", self.landed)
        directory = Path(victim.platform.lake.log(self.table).uri)
        before, sequence = set(directory.rglob("*")), victim.platform.lake.head(self.table).sequence
        _freeze_engine_at(victim, self.table, self.state, lambda: os.kill(worker, signal.SIGCONT))
        try:
            struck_at = _killed(worker)
            _strike(victim, lambda _input: None, self.landed, Injection(f"lake.planned:{name}", "stop"))
        finally:
            os.kill(engine, signal.SIGCONT)
        if victim.pid("engine") != engine:
            raise NotReached("the engine was restarted while it stood still")
        landed = eventually(lambda: victim.platform.lake.head(self.table).sequence > sequence, _FREEZE_S)
        if not landed:
            raise NotReached(
                f"the statement never landed; new: {sorted(p.name for p in set(directory.rglob('*')) - before)}"
            )
        for pid in victim.stopped():
            os.kill(pid, signal.SIGCONT)
        return struck_at


@dataclass(frozen=True)
class KillDuring:
    """SIGKILL of the engine in the middle of a ``statement`` about ``table``, likewise; then input comes in."""

    statement: str
    table: Table
    state: State
    prepare: Callable[[Victim], None] = lambda _victim: None

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        self.prepare(victim)
        work = threading.Thread(target=self._carry_out, args=[victim.session("maintenance"), victim], daemon=True)
        struck_at = _kill_engine_at(victim, self.table, self.state, work.start)
        land("readings")
        return struck_at

    def _carry_out(self, session: SparkSession, victim: Victim) -> None:
        with contextlib.suppress(Exception):  # the engine is killed under it
            session.sql(self.statement.format(f"delta.`{victim.home}/lake/{self.table.name}`")).collect()


@dataclass(frozen=True)
class Crash:
    """All processes end at once while a worker is at ``point``; the disk suffers ``damage``, and all starts anew."""

    point: str
    damage: Callable[[Victim], None] = lambda _victim: None
    landed: Input = "readings"
    recovery_killed_at: str = ""

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        _stopped_at(victim, land, self.point, self.landed)
        victim.crash()
        struck_at = time.monotonic()
        self.damage(victim)
        if self.recovery_killed_at:
            _strike(victim, lambda _input: _fail_to_restart(victim), self.landed, Injection(self.recovery_killed_at))
        victim.restart()
        return struck_at


@dataclass(frozen=True)
class Rot:
    """The platform ends, and the oldest live data file of ``table`` rots by ``change``.

    `sda lake verify --deep` must name the file, and `--repair` refuse it; then it is restored, as from a backup, and
    all starts anew.
    """

    table: Table
    change: Callable[[bytes], bytes]
    landed: Input = "readings"

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        victim.crash()
        struck_at = time.monotonic()
        log = victim.platform.lake.log(self.table)
        live = [Path(log.uri) / path for path in log.live_files().column("path").to_pylist()]
        file = min(live, key=lambda f: f.stat().st_mtime)
        written = file.read_bytes()
        file.write_bytes(self.change(written))
        try:
            for arguments in (("--deep",), ("--deep", "--repair")):
                answer = victim.platform.ask("lake", "verify", *arguments)
                if answer.returncode != 1 or file.name not in answer.stdout:
                    told = f"{answer.stdout}{answer.stderr}"
                    raise RuntimeError(f"sda lake verify {' '.join(arguments)} did not name {file.name}: {told}")
        finally:
            file.write_bytes(written)
            victim.restart()
        land(self.landed)
        return struck_at


@dataclass(frozen=True)
class LoseStore:
    """``fault`` befalls the network to the object store while a worker is at ``point``, for every process.

    It ends when a run has failed, at the latest after ``within_s``: clients repeat what was short.
    """

    point: str
    fault: Callable[[CuttingProxy], None]
    landed: Input = "readings"
    within_s: float = 60.0

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        network = victim.network
        if network is None:
            raise ValueError("the lake of this platform is in no object store")
        worker = _stopped_at(victim, land, self.point, self.landed)
        failed, met = victim.failed_runs(), network.faults
        self.fault(network)
        try:
            os.kill(worker, signal.SIGCONT)
            eventually(lambda: victim.failed_runs() > failed, self.within_s)
        finally:
            network.mend()
        if network.faults == met:
            raise NotReached("nobody asked the object store meanwhile")
        return time.monotonic()


@dataclass(frozen=True)
class Zombie:
    """A worker of the alerts pool is stopped at ``point`` until another has committed; then it continues (CP-27)."""

    point: str

    def hit(self, victim: Victim, land: Land) -> float:
        """See `Strike`."""
        worker = _stopped_at(victim, land, self.point, "readings")
        run_job("observations_to_alerts", victim.home, victim.engine_address, victim.settings)
        os.kill(worker, signal.SIGCONT)
        return time.monotonic()


def _strike(victim: Victim, land: Land, landed: Input, order: Injection) -> float:
    earlier = len(victim.struck())
    victim.arm(order)
    land(landed)
    victim.await_strike(earlier)
    return time.monotonic()


def _killed(pid: int) -> float:
    os.kill(pid, signal.SIGKILL)
    return time.monotonic()


def _stopped_at(victim: Victim, land: Land, point: str, landed: Input) -> int:
    """Process id of a worker that is stopped at ``point``."""
    _strike(victim, land, landed, Injection(point, "stop"))
    if not eventually(lambda: bool(victim.stopped()), 10.0, pause_s=0.02):
        raise NotReached(f"the worker did not stop at {point}")
    return victim.stopped()[0]


def _fail_to_restart(victim: Victim) -> None:
    with contextlib.suppress(RuntimeError):
        victim.restart()
        victim.crash()


def _kill_engine_at(victim: Victim, table: Table, state: State, begin: Callable[[], None]) -> float:
    return _killed(_freeze_engine_at(victim, table, state, begin))


def _freeze_engine_at(victim: Victim, table: Table, state: State, begin: Callable[[], None]) -> int:
    """Process id of the engine, which is stopped with the directory of ``table`` in ``state``. Raises NotReached."""
    directory, engine = location(victim.platform.lake.log(table).uri), victim.pid("engine")
    before = set(directory.rglob("*"))
    begin()
    slice_s = _STORE_SLICE_S if victim.network else _SLICE_S
    is_there = frozen_until(engine, lambda: state(before, set(directory.rglob("*"))), _FREEZE_S, slice_s)
    if not is_there:
        raise NotReached(f"the engine was never seen with {state.__name__.replace('_', ' ')}")
    return engine


def nothing_written_yet(before: Files, now: Files) -> bool:
    """CP-31: the engine computes."""
    return now == before


def data_file_half_written(before: Files, now: Files) -> bool:
    """CP-09: a data file is there and has no end yet."""
    data = _data_files(now - before)
    return bool(data) and not all(map(_is_whole, data)) and not _is_committed(now - before)


def data_files_written_but_no_commit(before: Files, now: Files) -> bool:
    """CP-10: what was to be committed is there, whole, and the log does not know it."""
    data = _data_files(now - before)
    return bool(data) and all(map(_is_whole, data)) and not _is_committed(now - before)


def commit_in_place(before: Files, now: Files) -> bool:
    """CP-12: the commit is in the log, and it was not reported."""
    return _is_committed(now - before)


def some_files_deleted(before: Files, now: Files) -> bool:
    """CP-39: the first file is gone."""
    return not before <= now


def _data_files(new: Files) -> list[UPath]:
    return [path for path in new if path.suffix == ".parquet" and path.parent.name != "_delta_log"]


def _is_whole(path: UPath) -> bool:
    return path.read_bytes()[-4:] == b"PAR1"


def _is_committed(new: Files) -> bool:
    return any(path.suffix == ".json" and path.stem.isdigit() for path in new)
