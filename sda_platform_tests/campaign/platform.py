"""The platform under attack: a real `sda up` that takes orders to fail, and what can be done to its processes."""

import atexit
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import dagster as dg
from pyspark.sql.connect.session import SparkSession

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.clock import MissionClock
from sda_platform.formats.registry import ZONES
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.unconsumed import unconsumed_commits
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import (
    GROUND_SEGMENT,
    JOBS,
    PLATFORM_METRICS,
    SCHEDULED_JOBS,
    TELEMETRY_TO_FRAMES,
)
from sda_platform.registry import TABLES
from sda_platform.runtime import platform_home
from sda_platform.spark.session import open_session, session_id
from sda_platform_tests.campaign.world import HORIZON_H, NOW_S
from sda_platform_tests.support import injections
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.injections import Injection, armed
from sda_platform_tests.support.running_platform import RunningPlatform, eventually
from sda_platform_tests.support.segments import after

# Windows that never close and a horizon of few events: what is current in the end does not depend on how the input was
# batched, and a run takes seconds.
SETTINGS: Mapping[str, str] = {
    "SDA_SCREENING_HORIZON_H": str(HORIZON_H),
    "SDA_ALLOWED_LATENESS_S": "36000",
    # What a schedule computes depends on when it starts: victim and twin would differ.
    "SDA_FUSION_REFRESH": "false",
    "SDA_TASKING": "false",
    # Samples of metrics come by the wall clock: the world did not land them, and the twin has none.
    "SDA_METRICS_INTERVAL_S": "1e9",
    # Alerts that depend on the assessments alone, not on what was sent before: every change is sent, no level is kept.
    "SDA_ALERT_YELLOW_PC": "1e-7",
    "SDA_ALERT_DILUTION_WITHIN_H": "0",
    "SDA_ALERT_HYSTERESIS_DECADES": "0",
    "SDA_ALERT_REVISE_DECADES": "1e-12",
    "SDA_ALERT_REVISE_TCA_S": "1e-9",
    "SDA_ALERT_REVISE_MISS_KM": "1e-12",
    # What lands here comes data first, metadata at once: no lone file is one for long, even on a busy machine.
    "SDA_ORPHAN_GRACE_S": "60",
    # Strikes hold the engine still for longer than an engine that hangs is waited for.
    "SDA_HUNG_AFTER_S": "900",
}
# What comes forward when something lands; in what is determined by the clock victim and twin would differ by right.
# Telemetry, ground events and sampled metrics are landed by the same code as the other bronze tables; no alert rests on
# them.
UNFED_JOBS = (TELEMETRY_TO_FRAMES, GROUND_SEGMENT, PLATFORM_METRICS)
_NOT_FED = [table for job in (*SCHEDULED_JOBS, *UNFED_JOBS) for table in tables_of(job)]
FED_TABLES = tuple(table for table in TABLES if table not in _NOT_FED)
_POLL_S = 0.25


class NotReached(Exception):
    """The platform never came to the point at which it was to be hit."""


class Victim:
    """One platform in ``home`` and the faults that are done to it. `restart` brings it back after `crash`.

    ``settings`` are added to those of the campaign. ``network`` leads to the object store of its lake, if it has one.
    """

    def __init__(
        self, home: Path, settings: Mapping[str, str] | None = None, network: CuttingProxy | None = None
    ) -> None:
        self.home, self.network = home, network
        self.settings = {**SETTINGS, **(settings or {})}
        self._orders = home / "orders"
        home.mkdir(parents=True, exist_ok=True)
        standing_clock(home)
        self._running = self._start()

    @property
    def platform(self) -> RunningPlatform:
        """The platform as its user sees it."""
        return self._running

    @property
    def landing_root(self) -> str:
        """Where segments land."""
        return self._running.landing_root

    @property
    def engine_address(self) -> str:
        """Where its engine answers."""
        return str(platform_home.read_state(self.home)["addresses"]["engine"])

    def pid(self, service: str) -> int:
        """Process id of the engine, daemon, code-server or webserver."""
        return int(platform_home.read_state(self.home)["processes"][service]["pid"])

    def arm(self, order: Injection) -> None:
        """Have the next process that reaches the order's point carry it out."""
        order.arm(self._orders)

    def disarm(self) -> None:
        """Take back an order that no one carried out, and let stopped processes continue."""
        self._orders.unlink(missing_ok=True)
        for pid in self.stopped():
            os.kill(pid, signal.SIGCONT)

    def struck(self) -> list[str]:
        """The points at which an order was carried out, oldest first."""
        return injections.hits(self._orders)

    def await_strike(self, earlier: int, within_s: float = 240.0) -> None:
        """Return once one more order than ``earlier`` was carried out. Raises NotReached."""
        if not eventually(lambda: len(self.struck()) > earlier, within_s, pause_s=0.02):
            raise NotReached("nobody came by in time")

    def crash(self) -> None:
        """End everything at once, as a power cut does: no one writes anything any more when this returns."""
        self._running.kill()
        if not eventually(lambda: not self._running.processes(), 20.0, pause_s=0.02):
            raise RuntimeError("processes of the platform outlive its supervisor")

    def restart(self) -> None:
        """Start the platform on what `crash` left."""
        self._running = self._start()

    def wipe_dagster(self) -> None:
        """Delete what Dagster remembers: runs, events, cursors, ticks."""
        shutil.rmtree(self.home / "dagster")

    def failed_runs(self) -> int:
        """How many of its runs failed."""
        with self._running.instance as instance:
            return instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))

    def stopped(self) -> list[int]:
        """Its processes that a SIGSTOP holds."""
        return [pid for pid in self._running.processes() if _state(pid) == "T"]

    def backlog(self) -> str:
        """What is left to do, in words; empty when no run is under way, either. Raises as `TableLog.head` does."""
        with self._running.instance as instance:
            return work_left(self.landing_root, instance, self._running.lake)

    def drain(self, within_s: float) -> None:
        """Wait until nothing is left to do. Raises TimeoutError with what is left."""
        began = time.monotonic()
        while left := self._left():
            if time.monotonic() - began > within_s:
                raise TimeoutError(f"after {within_s:.0f} s {left}")
            time.sleep(_POLL_S)

    def _left(self) -> str:
        """The backlog; a log that cannot be read is one, until it was repaired."""
        try:
            return self.backlog()
        except InvariantError as error:
            return str(error)

    def session(self, name: str) -> SparkSession:
        """A session of our own on its engine."""
        session = cast("SparkSession", open_session(self.engine_address, session_id(name, self._running.lake.uri)))
        # At the exit of this process a client asks its engine to clear a cache, for ten minutes if that was killed.
        atexit.unregister(session.client._cleanup_ml_cache)
        return session

    def close(self) -> None:
        """End it."""
        self._running.kill()
        eventually(lambda: not self._running.processes(), 20.0)

    def _start(self) -> RunningPlatform:
        return RunningPlatform(self.home, environment={**self.settings, **armed(self._orders)})


def standing_clock(home: Path) -> None:
    """Stop mission time in ``home``, after all that is ever measured."""
    MissionClock(after(NOW_S), 0, 0.0).save(home)


def work_left(landing_root: str, instance: dg.DagsterInstance, lake: Lake) -> str:
    """What a platform has left to do, in words; empty when no run is under way, either. Raises as `TableLog.head`."""
    waiting = [feed for feed in ZONES if LandingZone(landing_root, feed).pending_names()]
    if waiting:
        return f"segments wait in {', '.join(waiting)}"
    unfinished = unfinished_run_of(instance, *JOBS)
    if unfinished:
        return f"run {unfinished} is under way"
    heads = {table.name: lake.head(table) for table in TABLES}
    unread = {upstream for table in FED_TABLES for upstream in unconsumed_commits(table, heads)}
    return f"commits of {', '.join(sorted(unread))} wait for their readers" if unread else ""


def frozen_until(pid: int, holds: Callable[[], bool], within_s: float, slice_s: float = 0.001) -> bool:
    """Let the process run a slice at a time until ``holds``, and leave it frozen then; False: it ran out of time.

    The state on disk is looked at while the process is stopped: what holds then is what a kill would leave.
    """
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        os.kill(pid, signal.SIGSTOP)
        if holds():
            return True
        os.kill(pid, signal.SIGCONT)
        time.sleep(slice_s)
    return False


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
