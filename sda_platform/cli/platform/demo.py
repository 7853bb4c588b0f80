"""`sda demo`: a day of real orbits through the whole platform.

The real catalogue of 2024-11-01 is landed and screened; a simulated world observes the protected fleet and what it
will meet, and sends that to the collector over sockets; the alerts that follow are printed as the subscriber has them.
Nothing here computes a result: it sends data, watches tables and reads the subscriber, as a user would.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
from rich.console import Console
from rich.text import Text

from sda_platform.cli.alert.current import alert_grid, current_alerts
from sda_platform.cli.collector.feeder import BURST, Feeder, ObservationArchive
from sda_platform.cli.collector.feeding import balance_lines, collector_config, rates_line
from sda_platform.cli.collector.report import read_report, source_grid
from sda_platform.cli.people import STORY
from sda_platform.cli.platform.simulated_world import continued_world, land_catalogue, made_ahead
from sda_platform.clock import MissionClock, parse_iso_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.edge.address import Address
from sda_platform.edge.config import ServiceConfig
from sda_platform.formats.fleet import protected_fleet
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.zone import LandingZone
from sda_platform.orbits.risk.levels import YELLOW_FROM
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.registry import TABLES
from sda_platform.runtime.current_rows import scheduled_observations
from sda_platform.runtime.platform_home import DEMO_HOME, take_lock
from sda_platform.runtime.processes import free_port
from sda_platform.runtime.running import progress_printer, running
from sda_platform.runtime.supervisor import Platform
from sda_platform.settings import Settings
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.scenarios import Incidents
from sda_platform.simulation.story import UNOBSERVED, Story
from sda_platform.simulation.visibility import ScheduledTime
from sda_platform.simulation.world import SimulatedSegment
from sda_platform.units import SECOND_NS

MISSION_START = "2024-11-01T00:00:00Z"
_TIMEOUT_S = 600.0
_POLL_S = 0.5
# Half a day instead of the default week, because a user watches the demo.
_HORIZON_H = 12.0
# The world is simulated around the fleet and its most dangerous encounters: what a surveillance network tasks.
_MOST_OBJECTS = 200
# The sensors have observed for a while when the first alerts come: an object is tracked from its third window on.
_ALREADY_OBSERVED_NS = 90 * SECOND_NS
_REPORTED_S = 10.0
# Segments of a minute and a half.
_MADE_AHEAD = 60
_BURST_S = 60.0
_FEW_SEGMENTS = 10
# Some seconds of a burst fill this, and usual data does not.
_BURST_BACKLOG_BYTES = 400_000


class DemoFailed(RuntimeError):
    """The alerts did not arrive; the text is the reason."""


@dataclass
class Demo:
    """One run of the demo in ``<home>/demo``, which it empties first."""

    settings: Settings
    console: Console
    scenario: str
    seed: int
    minutes: float
    _say: Callable[[str], None] = field(init=False)
    _platform: Platform = field(init=False)
    _clock: MissionClock = field(init=False)
    _live: Settings = field(init=False)
    _lake: Lake = field(init=False)
    _runs: dg.DagsterInstance = field(init=False)
    _open: ExitStack = field(init=False)
    _archive: ObservationArchive = field(default_factory=ObservationArchive)
    _seen: dict[str, int] = field(default_factory=dict)
    _world: Iterator[SimulatedSegment] | None = None
    _next: SimulatedSegment | None = None
    _feeder: Feeder | None = None
    _chapters: list[tuple[int, str]] = field(default_factory=list)
    _copies: int = 1
    _reported_s: float = 0.0

    def run(self, *, once: bool) -> int:
        """Run it; the exit code is 0 when the alerts were delivered."""
        self._say = progress_printer(self.console)
        home, screening = self.settings.home.absolute() / DEMO_HOME, self.settings.screening
        screening = screening.model_copy(update={"horizon_h": min(screening.horizon_h, _HORIZON_H)})
        sources = home / "collect.toml"
        # A scene of two hours has events of interest, but seldom one that an operator must know of.
        alerting = self.settings.alerting.model_copy(update={"yellow_pc": YELLOW_FROM})
        changed = {"home": home, "screening": screening, "alerting": alerting, "collect": str(sources)}
        settings = self.settings.model_copy(update=changed, deep=True).with_lists_of_home()
        try:
            _refuse_if_running(settings.home)
            _empty(settings.home)
            clock = MissionClock.starting_at(parse_iso_ns(MISSION_START))
            clock.save(settings.home)
            polled = Address("127.0.0.1", free_port(0))
            bound = _BURST_BACKLOG_BYTES if self.scenario == "burst" else None
            # Where Prometheus' shipped configuration looks for it.
            sources.write_text(collector_config(polled, bound, free_port(ServiceConfig().control.port)))
            with (
                self._archive.serving(polled),
                ExitStack() as self._open,
                running(settings, self._say) as (platform, addresses),
            ):
                self._platform, self._clock, self._live = platform, clock, settings
                self._lake = Lake(settings.lake_uri, clock, without_session)
                instance = dg.DagsterInstance.from_config(str(settings.home / "dagster"))
                self._runs = self._open.enter_context(instance)
                self._play()
                if self.scenario == "burst":
                    self._burst()
                self._say(f"UI: {addresses.webserver}")
                if not once:
                    self._say(f"Ctrl-C stops the platform; meanwhile try: sda --home {settings.home} status")
                    self._keep_observing()
            return 0
        except KeyboardInterrupt:
            return 1 if once else 0
        except DemoFailed as failure:
            self.console.print(Text.assemble(("the demo failed: ", "bold red"), str(failure)))
            return 1

    def _play(self) -> None:
        """Catalogue → first alerts → observations → alerts that rest on fused tracks."""
        landed = land_catalogue(self._live, self._clock)
        self._say(f"landed {landed.records:,} real element sets in landing/{landed.feed}")
        self._until(lambda: self._seen.get(ALERT_DELIVERIES.name, 0) > 0, "the catalogue's alerts")
        self._say("the catalogue is screened and its alerts are delivered; now the sensors observe")
        self._feeder = self._open.enter_context(self._new_feeder().connected())
        begin_ns, truth_from_ns = self._clock.now_ns() - _ALREADY_OBSERVED_NS, parse_iso_ns(MISSION_START)
        story = None
        if self.scenario == STORY:
            story = Story(begin_ns, truth_from_ns, self.seed, ObservingPlan.catalogue_error_s)
        self._chapters = list(story.chapters) if story else []
        world = continued_world(
            "nominal" if self.scenario in (STORY, "burst") else self.scenario,
            from_ns=begin_ns,
            truth_from_ns=truth_from_ns,
            now_ns=self._clock.now_ns,
            minutes=self.minutes,
            seed=self.seed,
            objects=self._objects_of_interest,
            scheduled=lambda: _scheduled(self._lake),
            incidents=story.incidents if story else Incidents(),
        )
        self._world = made_ahead(world, _MADE_AHEAD)
        self._until(self._rests_on_tracks, "alerts from fused tracks")
        self.console.print(alert_grid(current_alerts(self._live)))

    def _new_feeder(self) -> Feeder:
        return Feeder(self._live.home, self._live.landing_uri, self._archive)

    def _burst(self) -> None:
        """Send each radar frame often for a minute; then wait until what the collector deferred is consumed."""
        self._say(f"burst: each radar frame is sent {BURST} times for {_BURST_S:.0f} s; the copies are redundant")
        self._copies, until_s = BURST, time.monotonic() + _BURST_S
        self._until(lambda: time.monotonic() > until_s, "the end of the burst")
        self._copies = 1
        self._say("the burst is over; segments of low priority and deferred ones are consumed now")
        radar = LandingZone(self._live.landing_uri, "radar")
        self._until(lambda: not self._is_saturated() and len(radar.pending_names()) < _FEW_SEGMENTS, "recovery")
        report = read_report(self._live.home)
        self.console.print(source_grid(report))
        for line in balance_lines(report):
            self.console.print(line)

    def _is_saturated(self) -> bool:
        return bool(read_report(self._live.home)["saturated"])

    def _until(self, is_done: Callable[[], bool], what: str) -> None:
        """Go on with the demo until ``is_done``. Raises DemoFailed."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not is_done():
            self._go_on()
            if failed := self._failed_runs():
                raise DemoFailed(f"run {failed[0]} failed; the UI has the run, {self._live.home / 'logs'} the logs")
            if time.monotonic() > deadline:
                raise DemoFailed(f"{what} did not arrive within {_TIMEOUT_S:.0f} s; see {self._live.home / 'logs'}")

    def _keep_observing(self) -> None:
        """Continue in real time until the user stops the platform. A failed run is only reported."""
        reported: set[str] = set()
        while self._platform.is_running:
            self._go_on()
            for failed in set(self._failed_runs()) - reported:
                self._say(f"run {failed} failed; see it in the UI")
                reported.add(failed)
        self._platform.wait()

    def _go_on(self) -> None:
        """Send what the simulated sensors have measured by now, and report rates and which tables grew."""
        if not self._platform.is_running:
            self._platform.wait()
            raise KeyboardInterrupt
        while self._chapters and self._chapters[0][0] <= self._clock.now_ns():
            self._say(self._chapters.pop(0)[1])
        while self._world is not None and self._feeder is not None:
            self._next = self._next or next(self._world)
            if self._next.available_time_ns > self._clock.now_ns():
                break
            self._feeder.send(self._next, copies=self._copies)
            self._next = None
        if self._feeder is not None and time.monotonic() > self._reported_s + _REPORTED_S:
            self._reported_s = time.monotonic()
            self._say(rates_line(read_report(self._live.home)))
        self._tell_growth()
        time.sleep(_POLL_S)

    def _objects_of_interest(self, observed: Sequence[int]) -> list[int]:
        """Return what was ``observed`` before, the fleet, and the objects of the alerts, each once."""
        alerts = current_alerts(self._live)
        met = [norad_id for alert in alerts for norad_id in (alert.norad_id_1, alert.norad_id_2) if norad_id]
        left_out = UNOBSERVED if self.scenario == STORY else ()
        known = dict.fromkeys([*observed, *(m.norad_id for m in protected_fleet()), *met])
        objects = [norad_id for norad_id in known if norad_id not in left_out][:_MOST_OBJECTS]
        self._say(f"simulating {self.minutes:g} min of {_sensors()} and links on {len(objects)} objects")
        return objects

    def _rests_on_tracks(self) -> bool:
        """Return whether an alert at the subscriber rests on a fused track, and the ledger of deliveries has it too."""
        if not any(alert.from_tracks for alert in current_alerts(self._live)):
            return False
        commit = self._lake.log(ALERT_DELIVERIES).head().commit
        window = commit.manifest.window(CONJUNCTION_ALERTS.name) if commit else None
        return window is not None and window.upto_sequence == self._lake.log(CONJUNCTION_ALERTS).head().sequence

    def _tell_growth(self) -> None:
        for table in TABLES:
            log = self._lake.log(table)
            head = log.head()
            if head.commit and head.sequence > self._seen.get(table.name, 0):
                self._seen[table.name] = head.sequence
                self._say(f"{table.name}: {head.commit.rows_written:,} rows, {log.row_count():,} in all")

    def _failed_runs(self) -> list[str]:
        runs = self._runs.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=5)
        return [f"{run.run_id[:8]} ({run.job_name})" for run in runs]


def _scheduled(lake: Lake) -> list[ScheduledTime]:
    """Return what the platform has scheduled so far: the simulated sensors follow it."""
    names = ScheduledTime.__dataclass_fields__
    return [ScheduledTime(**{name: row[name] for name in names}) for row in scheduled_observations(lake)]


def _sensors() -> str:
    kinds = Counter(sensor.kind for sensor in sensor_registry().values())
    return f"{kinds['radar']} radars, {kinds['optical']} telescopes"


def _empty(home: Path) -> None:
    for name in ("lake", "landing", "dagster", "subscriber.sqlite", "subscriber.sqlite-wal", "subscriber.sqlite-shm"):
        path = home / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _refuse_if_running(home: Path) -> None:
    # Before any deletion: the lock can be taken only if no platform runs there.
    take_lock(home).close()
