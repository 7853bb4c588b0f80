"""`sda up` in a process of its own, as a user's terminal would hold it, and what its user can ask."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.cli.alert.current import CurrentAlert, current_alerts
from sda_platform.clock import MissionClock
from sda_platform.formats.segments import Sender
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.table import Table
from sda_platform.landing.lander import seal
from sda_platform.landing.zone import LandingZone
from sda_platform.runtime import guardian, platform_home
from sda_platform.settings import Settings
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.spark.engine import python_path

# Dagster's own tag on a run that a schedule started.
SCHEDULE_TAG = "dagster/schedule_name"

_START_S = 480


def land_simulated(segment: SimulatedSegment, landing_root: str) -> None:
    """Seal a simulated segment where its feed lands, as the collector would at this moment."""
    origins = (Sender("simulation").origin(segment.meta.records),)
    meta = replace(segment.meta, sealed_wall_time_ns=time.time_ns(), origins=origins)
    seal(segment.data, meta, landing_root, stem=f"{segment.feed}-{segment.available_time_ns}")


def eventually(condition: Callable[[], bool], within_s: float, pause_s: float = 0.25) -> bool:
    """Whether ``condition`` came true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
    return True


class RunningPlatform:
    """A platform in ``home``; up when this returns.

    Its mission time starts at ``mission_start_ns``, or is what the home's clock states. ``environment`` adds to what
    its processes inherit.
    """

    def __init__(
        self, home: Path, mission_start_ns: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.home = home
        if mission_start_ns is not None:
            MissionClock.starting_at(mission_start_ns).save(home)
        self.environment = {
            **os.environ,
            "PYTHONPATH": python_path(),
            "SDA_HOME": str(home),
            "SDA_WEBSERVER_PORT": "0",
            "SDA_ENGINE_PORT": "0",
            "SDA_HEALTH_PORT": "0",
            "SDA_DRIVER_MEMORY": "2g",
            "SDA_SERVING": "false",
            "SDA_SERVING_PORT": "0",
            "SDA_SCREENING_HORIZON_H": "24",
            "SDA_ALERT_YELLOW_PC": "1e-7",  # higher risks are rare in a small scene
            "SDA_FUSION_REFRESH": "false",  # these jobs come by the clock, and would run next to any test
            "SDA_TASKING": "false",
            "SDA_ORPHAN_GRACE_S": "1",
            **(environment or {}),
        }
        self._output = home.with_suffix(".out")
        # Leashed: it ends with the test process, even when that one is killed.
        leash = [sys.executable, guardian.__file__, "leash", str(os.getpid())]
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [*leash, sys.executable, "-m", "sda_platform.cli.main", "up"],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        eventually(lambda: "the platform is up" in self.output or self.process.poll() is not None, _START_S)
        if "the platform is up" not in self.output:
            self.kill()
            raise RuntimeError(f"the platform did not start:\n{self.output}")
        state = platform_home.read_state(home)
        self.url, self.mark = str(state["addresses"]["webserver"]), str(state["mark"])

    @property
    def output(self) -> str:
        """What the user has seen so far."""
        return self._output.read_text()

    def interrupt(self, within_s: float) -> int | None:
        """Press Ctrl-C; the exit code, None when it has not ended in time."""
        self.process.send_signal(signal.SIGINT)
        eventually(lambda: self.process.poll() is not None, within_s)
        return self.process.poll()

    def kill(self) -> None:
        """End it by force, if it still runs; its guardian ends the rest."""
        self.process.kill()
        self.process.wait()

    def processes(self) -> set[int]:
        """Ids of every process that belongs to it, run workers too."""
        return guardian.marked(self.mark)

    def sda(self, *arguments: str | Path, within_s: float = 60.0) -> str:
        """Run the command line and return what it prints; fails the test where it fails."""
        done = self.ask(*arguments, within_s=within_s)
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    def ask(self, *arguments: str | Path, within_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run the command line and return how it ended."""
        return subprocess.run(
            [sys.executable, "-m", "sda_platform.cli.main", *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        """`sda status --json`, tables and zones by name."""
        found = json.loads(self.sda("status", "--json"))
        found["tables"] = {table["table"]: table for table in found["tables"]}
        found["zones"] = {zone["zone"]: zone for zone in found["zones"]}
        return dict(found)

    @property
    def landing_root(self) -> str:
        """Where segments land."""
        return self.environment.get("SDA_LANDING") or str(self.home / "landing")

    def zone(self, feed: str) -> LandingZone:
        """The landing zone of one feed."""
        return LandingZone(self.landing_root, feed)

    def observe(self, segments: Iterable[SimulatedSegment]) -> None:
        """Let the collectors seal these segments now."""
        for segment in segments:
            land_simulated(segment, self.landing_root)

    @property
    def lake(self) -> Lake:
        """The tables, as anyone without a session reads them."""
        return Lake(
            self.environment.get("SDA_LAKE") or str(self.home / "lake"), MissionClock.load(self.home), without_session
        )

    def rows(self, table: Table, *columns: str) -> pa.Table:
        """The stored rows of a table."""
        return self.lake.log(table).rows(columns or None)

    def alerts(self) -> list[CurrentAlert]:
        """The alerts that hold at the subscriber."""
        return current_alerts(Settings(home=self.home))

    @property
    def instance(self) -> dg.DagsterInstance:
        """A fresh view of the platform's Dagster instance, to be used as a context manager."""
        return dg.DagsterInstance.from_config(str(self.home / "dagster"))

    def runs(self, *, scheduled: bool = False) -> list[dg.DagsterRun]:
        """The runs, newest first; those of schedules only if asked for, since which there are depends on the hour."""
        with self.instance as instance:
            return [run for run in instance.get_runs() if scheduled or SCHEDULE_TAG not in run.tags]

    def is_idle(self) -> bool:
        """No segment waits and no run is under way."""
        feeds = ("radar", "optical", "isl", "elements")
        waiting = any(self.zone(feed).pending_names() for feed in feeds)
        return not waiting and all(run.is_finished for run in self.runs(scheduled=True))
