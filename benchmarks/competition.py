"""Work of the pools that give way, repeated in a process of its own beside a running platform."""

import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path

import dagster as dg
from history import write_observations

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.history.maintenance import alerts_wait, maintain_all
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.retention import RETENTION
from sda_platform.spark.pools import Pool
from sda_platform.spark.priority import give_way
from sda_platform.spark.session import attach
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.segments import START_NS, catalogue_ids, catalogue_of, land

Round = Callable[[str, Path, dg.DagsterInstance], None]
ROWS, FILES = 4_000_000, 200
_DAY_MS = 86_400_000
_POLL_S = 0.05


def maintenance(_: str, directory: Path, instance: dg.DagsterInstance) -> None:
    """Compact 200 small files of four million observations; record what has expired, and remove it.

    As the platform's job, it stops while alerts wait, by the runs of ``instance``.
    """
    first, copy = directory / "first", directory / "copy"
    if not first.exists():
        small = Lake(str(first), MissionClock(0, 0, 0.0), without_session)
        small.reads_unverified = True
        write_observations(small, ROWS, FILES)
    shutil.copytree(first, copy)
    lake = Lake(str(copy), MissionClock(0, 0, 0.0), without_session)
    lake.reads_unverified = True
    now_ms = time.time_ns() // 1_000_000
    at_once = replace(RETENTION, data_files_h=0)
    for at_ms in (now_ms, now_ms + 2 * _DAY_MS):
        figures = maintain_all(
            lake,
            [OBSERVATIONS],
            now_ms=at_ms,
            retention=at_once,
            is_manual=True,
            alerts_wait=lambda: alerts_wait(instance),
        )
    if figures["deleted_files"] < FILES:  # and what a stopped merge left
        raise RuntimeError(f"the maintenance removed {figures['deleted_files']} of {FILES} files")
    shutil.rmtree(copy)


def screening(remote: str, directory: Path, _: dg.DagsterInstance) -> None:
    """Take in the whole real catalogue, and screen all against all for a day."""
    home = directory / "screening"
    home.mkdir(parents=True)
    session = attach(remote, Pool.CATALOG, lake_uri=str(home / "lake"))
    platform = Platform(home, session, START_NS, ScreeningResource(scope="all", horizon_h=24.0), remote=remote)
    land(platform.zone("elements"), "catalogue.csv", catalogue_of(catalogue_ids()))
    chosen = [ELEMENT_SETS, ORBITAL_CATALOG, CONJUNCTION_CANDIDATES]
    platform.run("catalog_to_alerts", only=[table.name for table in chosen])
    if not platform.lake.log(CONJUNCTION_CANDIDATES).row_count():
        raise RuntimeError("the screening found nothing")
    shutil.rmtree(home)


WORK: Mapping[str, Round] = {"maintenance": maintenance, "screening": screening}


class Competition:
    """Rounds of ``name`` while `beside` is entered. `end` stops it; ``seconds`` are those of each completed round."""

    def __init__(self, name: str, remote: str, directory: Path, home: Path) -> None:
        spawned = multiprocessing.get_context("spawn")
        self._wanted, self._busy = spawned.Event(), spawned.Event()
        self._told, telling = spawned.Pipe(duplex=False)
        arguments = (name, remote, directory, home, self._wanted, self._busy, telling)
        self._process = spawned.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        self.seconds: list[float] = []

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Work is under way from entry to exit. The round at exit is completed before this returns."""
        self._wanted.set()
        self._await(is_busy=True)
        yield
        self._wanted.clear()
        self._await(is_busy=False)

    def end(self) -> None:
        """Stop it, at once: what it leaves is in the benchmark's own directory."""
        self._process.kill()
        self._process.join()

    def _await(self, *, is_busy: bool) -> None:
        while self._busy.is_set() is not is_busy:
            if not self._process.is_alive():
                raise RuntimeError("the competing work failed")
            time.sleep(_POLL_S)
        while self._told.poll():
            self.seconds.append(self._told.recv())


def _work(name: str, remote: str, directory: Path, home: Path, wanted: Event, busy: Event, telling: object) -> None:
    give_way()
    instance = dg.DagsterInstance.from_config(str(home / "dagster"))
    while wanted.wait():
        busy.set()
        began_s = time.perf_counter()
        WORK[name](remote, directory, instance)
        telling.send(time.perf_counter() - began_s)  # type: ignore[attr-defined]
        if not wanted.is_set():
            busy.clear()
