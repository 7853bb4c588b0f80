"""`sda demo`: a day of real orbits through the whole platform.

The real catalogue of 2024-11-01 is landed and screened; a simulated world observes the protected fleet and what it
will meet; the alerts that follow are printed as the subscriber has them. Nothing here computes a result: it lands
files, watches tables and reads the subscriber, as a user would.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import dagster as dg
from rich.console import Console

from sda_platform.clock import MissionClock, parse_iso_ns
from sda_platform.conjunction.fleet import protected_fleet
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.formats.segments import describe_segment
from sda_platform.ingest.partner_files import Landed, seal
from sda_platform.lake.lake import Lake, without_session
from sda_platform.operations.alerts import StandingAlert, alert_grid, standing_alerts
from sda_platform.operations.platform_home import take_lock
from sda_platform.operations.running import progress_printer, running
from sda_platform.operations.supervisor import Platform
from sda_platform.registry import TABLES
from sda_platform.settings import Settings
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.world import SimulatedSegment, simulate, write_truth

MISSION_START = "2024-11-01T00:00:00Z"
_PATIENCE_S = 600.0
_POLL_S = 0.5
# The world is simulated around the fleet and its most dangerous encounters: what a surveillance network tasks.
_MOST_OBJECTS = 200


class DemoFailed(RuntimeError):
    """The alerts did not arrive; the text says why."""


@dataclass
class Demo:
    """One run of the demo in ``<home>/demo``, which it empties first."""

    settings: Settings
    console: Console
    scenario: str
    seed: int
    minutes: float
    _say: Callable[[str], None] = field(init=False)
    _seen: dict[str, int] = field(default_factory=dict)

    def run(self, *, once: bool) -> int:
        """Run it; the exit code is 0 when the alerts were delivered."""
        self._say = progress_printer(self.console)
        settings = self.settings.model_copy(update={"home": self.settings.home.absolute() / "demo"})
        try:
            _refuse_if_running(settings.home)
            _empty(settings.home)
            clock = MissionClock.starting_at(parse_iso_ns(MISSION_START))
            clock.save(settings.home)
            with running(settings, self._say) as (platform, addresses):
                self._play(settings, platform, clock)
                self._say(f"UI: {addresses.webserver}")
                if not once:
                    self._say("Ctrl-C stops the platform; meanwhile try: sda --home var/demo status")
                    self._keep_observing(settings, platform, clock)
            return 0
        except KeyboardInterrupt:
            return 0 if not once else 1
        except DemoFailed as failure:
            self.console.print(f"[bold red]the demo failed:[/] {failure}")
            return 1

    def _play(self, settings: Settings, platform: Platform, clock: MissionClock) -> None:
        """Catalogue → first alerts → observations → alerts that rest on fused tracks."""
        landed = land_catalogue(settings, clock)
        self._say(f"landed {landed.records:,} real element sets in landing/{landed.zone}")
        self._until(settings, platform, lambda: self._seen.get(ALERT_DELIVERIES.name, 0) > 0, "the catalogue's alerts")
        self._say("the catalogue is screened; its alerts are delivered. Now the sensors observe")
        self._observe(settings, platform, clock, until=lambda: _from_tracks(settings))
        self.console.print(alert_grid(standing_alerts(settings.subscriber_path)))

    def _until(self, settings: Settings, platform: Platform, is_done: Callable[[], bool], what: str) -> None:
        """Wait for ``is_done``, telling which tables grow. Raises DemoFailed."""
        deadline = time.monotonic() + _PATIENCE_S
        while not is_done():
            self._tell_growth(settings)
            self._raise_on_failure(settings, platform, what, deadline)
            time.sleep(_POLL_S)
        self._tell_growth(settings)

    def _observe(self, settings: Settings, platform: Platform, clock: MissionClock, until: Callable[[], bool]) -> None:
        """Land what the simulated sensors send, when they send it, until ``until`` holds."""
        deadline = time.monotonic() + _PATIENCE_S
        for segment in self._world(settings, clock):
            while clock.now_ns() < segment.available_time_ns:
                if until():
                    return
                self._tell_growth(settings)
                self._raise_on_failure(settings, platform, "alerts from fused tracks", deadline)
                time.sleep(_POLL_S)
            land_simulated(segment, settings.landing_uri)
        self._until(settings, platform, until, "alerts from fused tracks")

    def _world(self, settings: Settings, clock: MissionClock) -> Iterator[SimulatedSegment]:
        objects = _objects_of_interest(standing_alerts(settings.subscriber_path))
        start_ns, duration_s = clock.now_ns(), self.minutes * 60.0
        self._say(f"simulating {self.minutes:g} min of 14 radars, 4 telescopes and links on {len(objects)} objects")
        return simulate(self.scenario, start_time_ns=start_ns, duration_s=duration_s, seed=self.seed, objects=objects)

    def _keep_observing(self, settings: Settings, platform: Platform, clock: MissionClock) -> None:
        """Go on as live: one stretch of simulated time after the other, until somebody stops the platform."""
        while platform.is_running:
            self._observe(settings, platform, clock, until=lambda: not platform.is_running)

    def _tell_growth(self, settings: Settings) -> None:
        lake = _lake(settings)
        for table in TABLES:
            head = lake.head(table)
            if head.commit and head.sequence > self._seen.get(table.name, 0):
                self._seen[table.name] = head.sequence
                self._say(f"{table.name}: {head.commit.rows_written:,} rows, {lake.log(table).row_count():,} in all")

    def _raise_on_failure(self, settings: Settings, platform: Platform, what: str, deadline: float) -> None:
        if not platform.is_running:
            raise KeyboardInterrupt
        if time.monotonic() > deadline:
            raise DemoFailed(f"{what} did not arrive within {_PATIENCE_S:.0f} s; logs are in {settings.home / 'logs'}")
        failed = _failed_run(settings.home / "dagster")
        if failed:
            raise DemoFailed(f"run {failed} failed; logs are in {settings.home / 'logs'}, the run is in the UI")


def land_catalogue(settings: Settings, clock: MissionClock) -> Landed:
    """Seal the shipped catalogue of 2024-11-01 where element sets land."""
    data = reference_catalogue()
    facts = {"sealed_time_ns": clock.now_ns(), "sealed_wall_time_ns": time.time_ns()}
    meta = describe_segment(data, feed="elements", segment_format="omm-csv", **facts)
    return seal(data, meta, settings.landing_uri, stem="celestrak_2024-11-01", suffix=".csv")


def land_simulated(segment: SimulatedSegment, landing_root: str) -> None:
    """Seal a simulated segment where its feed lands, as the collector would at this moment."""
    meta = replace(segment.meta, sealed_wall_time_ns=time.time_ns())
    seal(segment.data, meta, landing_root, stem=f"{segment.feed}-{segment.available_time_ns}", suffix="")


def write_simulation(directory: Path, scenario: str, *, start: str, minutes: float, seed: int) -> int:
    """Write a simulated world as files for `sda land`, and its truth; returns the number of segments."""
    fleet = [member.norad_id for member in protected_fleet()]
    world = simulate(scenario, start_time_ns=parse_iso_ns(start), duration_s=minutes * 60, seed=seed, objects=fleet)
    segments = list(world)
    directory.mkdir(parents=True, exist_ok=True)
    for segment in segments:
        suffix = _SUFFIXES[segment.segment_format]
        (directory / f"{segment.feed}-{segment.available_time_ns}{suffix}").write_bytes(segment.data)
    write_truth(segments, directory / "truth.parquet")
    return len(segments)


_SUFFIXES = {
    "radar-frames": ".radar",
    "isl-frames": ".isl",
    "optical-jsonl": ".jsonl",
    "omm-csv": ".csv",
    "omm-json": ".json",
    "tle": ".tle",
}


def _objects_of_interest(alerts: Iterable[StandingAlert]) -> list[int]:
    met = [norad_id for alert in alerts for norad_id in (alert.norad_id_1, alert.norad_id_2)]
    return list(dict.fromkeys([*(m.norad_id for m in protected_fleet()), *met]))[:_MOST_OBJECTS]


def _from_tracks(settings: Settings) -> bool:
    return any(alert.from_tracks for alert in standing_alerts(settings.subscriber_path))


def _failed_run(dagster_home: Path) -> str | None:
    with dg.DagsterInstance.from_config(str(dagster_home)) as instance:
        runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=1)
    return f"{runs[0].run_id[:8]} ({runs[0].job_name})" if runs else None


def _lake(settings: Settings) -> Lake:
    return Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)


def _empty(home: Path) -> None:
    for name in ("lake", "landing", "dagster", "subscriber.sqlite", "subscriber.sqlite-wal", "subscriber.sqlite-shm"):
        path = home / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _refuse_if_running(home: Path) -> None:
    # Before anything is emptied: taking the lock and giving it back tells whether a platform works there.
    take_lock(home).close()
