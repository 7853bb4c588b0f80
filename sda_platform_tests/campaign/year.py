"""A year in an hour: the kernel, its maintenance, its vitals and its deliveries, on a clock that a loop moves.

    python -m sda_platform_tests.campaign.year [--days 365] [--commits 500000] [--directory DIR]

Landing zones, tables, subscriber and all that reads and decides are the platform's, on a real disk; only the engine
(`year_engine`) and the partner are stand-ins. During the year a telescope vanishes, a month has no CDM, a leap second
and changes of daylight saving come, the subscriber's password changes, the disk fills, an upgrade adds columns, readers
hold old versions, and processes are killed. At the end every record, alert and file is accounted for.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from dagster._utils.schedules import schedule_execution_time_iterator
from upath import UPath

import sda_platform.delivery.assets  # noqa: F401  # declares the body of the deliveries
from sda_platform import failpoints
from sda_platform.clock import MissionClock, parse_iso_ns
from sda_platform.conjunction import cdm_decoding
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, RECEIVED_CDMS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import SubscriberUnavailable
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform.formats.segments import describe_segment
from sda_platform.fusion.sources import HEARD
from sda_platform.fusion.watermarks import Arrivals, Lateness, advance
from sda_platform.history.maintenance import maintain_all, maintenance_job, nightly
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.retention import RETENTION
from sda_platform.lake.version_leases import VersionLease, VersionLeases
from sda_platform.landing.decoding import one_by_one
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import DeliveryFacts, DiskFacts, Facts
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.lake_facts import lake_facts, unconsumed_s
from sda_platform.orchestration import landing_table
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.table_checks import log_is_sound
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import LostCommit, recover
from sda_platform.recovery.verification import broken_chain
from sda_platform.setting_sections import GrowthSettings, VitalsSettings
from sda_platform.units import SECOND_NS
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_partner import Delivery, delivery
from sda_platform_tests.campaign.simulated_platform import alert, decode
from sda_platform_tests.campaign.year_engine import YearEngine
from sda_platform_tests.campaign.year_oracle import left_over, wrong_events, wrong_rows
from sda_platform_tests.campaign.year_plan import (
    ADDED_COLUMNS,
    DAY_NS,
    FEEDS,
    FUSED,
    HOUR_NS,
    LANDED,
    LEAP_NS,
    TABLES,
    YearFindings,
    YearPlan,
    planned_kills,
)
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.webhook_receiver import Receiver, receiving

_LATENESS = Lateness({"radar": 10**8, "optical": 30 * 10**9}, 5 * 10**9, 30 * 10**9)
_TENTH = 10


class Killed(BaseException):
    """Ends a process where it is; no handler of errors catches it."""


class YearLake(Lake):
    """A lake whose engine is the year's, and whose assets run without checks; all else is the platform's."""

    requires_lineage = False

    reads_unverified = True

    def __init__(self, year: "Year", run_id: str) -> None:
        super().__init__(str(year.root / "lake"), MissionClock(year.now_ns, 0, 0.0), without_session, run_id)
        self.engine = year.engine.writing
        self.merge = lambda request, _is_stopped: year.engine.compact(request.uri)[1]

    def open(self) -> "YearLake":
        """As the lake's resource: here it is the lake itself."""
        return self

    def frame(self, table: Any, rows: pa.Table, *, stamped: bool = False) -> Any:
        """Arrow rows are the engine's frames here."""
        return rows


class YearZones:
    """As the landing zones' resource."""

    def __init__(self, root: Path) -> None:
        self._root = str(root / "landing")

    def zones(self, feeds: Any) -> list[LandingZone]:
        """The zones of these feeds."""
        return [LandingZone(self._root, feed) for feed in feeds]

    def zones_of(self, table: Any) -> TableZones:
        """The zones of ``table``."""
        return TableZones(self.zones(table.zones), 64, 10**7, UPath(self._root) / ".decoding" / f"{table.name}.json")


class Year:
    """One platform, its partner and its subscriber, from the first to the last day of ``plan``."""

    def __init__(self, root: Path, plan: YearPlan, receiver: Receiver) -> None:
        self.root, self.plan, self.receiver = root, plan, receiver
        self.found = YearFindings()
        self.now_ns = parse_iso_ns(plan.start)
        self.engine = YearEngine(lambda: self.now_ns // 1_000_000, plan.checkpoint_every)
        self.engine.absent = ADDED_COLUMNS
        self._kills, self._was_killed = planned_kills(plan), False
        self._day_of_message = -1
        self.sealed: list[Delivery] = []
        self.unsent: list[Delivery] = []
        self.zones = YearZones(root)
        self._password = receiver.password = "first"
        self._history = VitalHistory()
        self._refusal = ""
        self._runs = 0
        self._held: tuple[VersionLease, int] | None = None
        self._is_upgraded = False
        job = maintenance_job(TABLES)
        cron = str(nightly(job).cron_schedule)
        begin_s = self.now_ns / SECOND_NS
        self._due = (at.timestamp() for at in schedule_execution_time_iterator(begin_s, cron, "UTC"))
        self._next_night_s = next(self._due)

    def live(self) -> YearFindings:
        """Live through the year, then account for everything."""
        step_ns, after_leap = self.plan.days * DAY_NS // self.plan.landings, False
        end_ns, next_vitals_ns = self.now_ns + self.plan.days * DAY_NS, self.now_ns
        number = 0
        while self.now_ns < end_ns:
            number += 1
            self.now_ns += step_ns
            if not after_leap and self.now_ns >= LEAP_NS:
                self.now_ns, after_leap = self.now_ns - SECOND_NS, True  # the clock repeats 23:59:59
            self._receive(number)
            self._live_through_the_day()
            self._run()
            if self._was_killed:
                self._run()  # as the sensor requests it again
            if self.now_ns >= next_vitals_ns:
                self._evaluate()
                next_vitals_ns = self.now_ns + 6 * HOUR_NS
            while self.now_ns >= self._next_night_s * SECOND_NS:
                self._pass_night()
        self._account()
        return self.found

    def lake(self) -> YearLake:
        """The lake as one run sees it."""
        return YearLake(self, f"run-{self._runs}")

    def _receive(self, number: int) -> None:
        """The next file, and a message a day; what the disk does not take waits at the sender."""
        feed = FEEDS[number % len(FEEDS)]
        feed = "radar" if self._is_in(self.plan.telescope_away) else feed
        self.unsent.append(delivery(number, feed, f"{feed}-{number}", 1 + number % 3))
        if self._day != self._day_of_message and not self._is_in(self.plan.no_cdm):
            self._day_of_message = self._day
            self.unsent.append(_message(self.now_ns))
        self._send()
        if self._was_killed:
            self._send()

    def _send(self) -> None:
        """Land what waits at the sender."""
        self._was_killed = False
        for file in () if self.engine.is_full else tuple(self.unsent):
            with self._maybe_killed("landing"):
                LandingZone(str(self.root / "landing"), file.feed).seal(file.name, file.arriving, file.meta)
                self.unsent.remove(file)
                self.sealed.append(file)

    def _run(self) -> None:
        """One run of the pool, from segments to the subscriber."""
        self._runs += 1
        lake, began_s = self.lake(), time.process_time()
        url = self.receiver.url.replace("://", f"://platform:{self._password}@")
        deliver = declared(ALERT_DELIVERIES).body
        self._refusal, self._was_killed = "", False
        try:
            with self._maybe_killed("run"):
                landing_table.land(
                    cast("Any", lake), cast("Any", self.zones), LANDED, one_by_one(decode), report=lambda _event: None
                )
                landing_table.land(
                    cast("Any", lake),
                    cast("Any", self.zones),
                    RECEIVED_CDMS,
                    one_by_one(cdm_decoding.decode),
                    report=lambda _event: None,
                )
                alert(lake)
                _fuse(lake)
                deliver(lake, WebhookSubscriber(url))
        except SubscriberUnavailable as error:
            self._refusal = f"{type(error).__name__}: {error}"
        except OSError as error:
            if not self.engine.is_full:
                self.found.problems.append(f"run {self._runs}: {error}")
        self.found.run_seconds.append(time.process_time() - began_s)

    @contextmanager
    def _maybe_killed(self, what: str) -> Iterator[None]:
        """Some runs end at a failpoint; the engine starts anew with the process."""
        chosen = self._kills.get(self._runs, "")
        if chosen and chosen.startswith("landing") is (what == "landing"):

            def strike(point: str) -> None:
                if point == chosen:
                    failpoints.watch(None)
                    self.found.kills[chosen] += 1
                    raise Killed(point)

            failpoints.watch(strike)
        try:
            yield
        except Killed:
            self._was_killed = True
            self._kills.pop(self._runs)
            self.engine.restart()
        finally:
            failpoints.watch(None)

    def _live_through_the_day(self) -> None:
        """What the day's plan brings: another password, little disk, an upgrade, a reader of an old version."""
        changes_ns, low_ns = self.plan.begin_ns(self.plan.password_changes), self.plan.begin_ns(self.plan.disk_low)
        if self.now_ns >= changes_ns:
            self.receiver.password = "second"
        if self.now_ns >= changes_ns + DAY_NS:
            self._password = "second"
        self.engine.is_full = low_ns + DAY_NS <= self.now_ns < low_ns + 3 * DAY_NS // 2
        if not self._is_upgraded and self.now_ns >= self.plan.begin_ns(self.plan.upgrade):
            self._is_upgraded, self.engine.absent = True, frozenset()
            self._restart()
        if self._is_in(self.plan.version_held) and self._held is None:
            log = self.lake().log(LANDED)
            snapshot = TableSnapshot(LANDED.name, log.version(), log.head().sequence)
            lease = VersionLeases(self.lake().uri).take([snapshot], "a long query", ttl_s=10**6)
            self._held = (lease, log.rows(["segment_sha256"]).num_rows)
        elif self._held and self.now_ns >= self.plan.begin_ns(self.plan.version_held[1]):
            self._end_query(*self._held)
            self._held = None

    def _end_query(self, lease: VersionLease, rows: int) -> None:
        """The reader of an old version still finds all of its files, and releases it."""
        held = self.lake().log(LANDED).rows(["segment_sha256"], version=lease.versions[LANDED.name][0]).num_rows
        if held != rows:
            self.found.problems.append(f"the held version has {held} rows, not {rows}")
        VersionLeases(self.lake().uri).release(lease)

    def _restart(self) -> None:
        """The platform's start: an engine without memory, and the verification before any run."""
        began_s = time.perf_counter()
        with _timed(self.found.start_seconds):
            self.engine.restart()
            sources = {table.name: self.zones.zones(table.zones) for table in TABLES if table.zones}
            for finding in recover(self.lake(), TABLES, sources, depth=Depth.PRESENCE, repair=True):
                if finding.outcome == "damaged":
                    raise LostCommit(f"{finding.examination.table}: {finding.problems}; {finding.refused}")
        self.found.slowest_start_s = max(self.found.slowest_start_s, time.perf_counter() - began_s)

    def _pass_night(self) -> None:
        """The maintenance of a night at its scheduled hour, and a restart every Sunday."""
        self._next_night_s = next(self._due)
        self.found.nights += 1
        lake = self.lake()
        for table in TABLES:
            problems = broken_chain(lake.log(table).commits())
            self.found.problems += [f"{table.name}: {problem}" for problem in problems]
        with _timed(self.found.plan_seconds):
            lake.plan(FUSED)
        with _timed(self.found.check_seconds):
            sound = [log_is_sound(lake.log(table), self.root).passed for table in TABLES]
        self.found.problems += [] if all(sound) else [f"night {self.found.nights}: log_is_sound failed"]
        if not self.engine.is_full:
            with _timed(self.found.maintenance_seconds):
                done = maintain_all(
                    lake, TABLES, now_ms=self._night_ms(), retention=self._retention(), policy=self.plan.policy
                )
            self.found.maintenance.update(done)
        if self.found.nights % 7 == 0:
            self._restart()

    def _night_ms(self) -> int:
        """The hour of the maintenance, 03:00 UTC, on the day of the clock."""
        return (self.now_ns - self.now_ns % DAY_NS + 3 * HOUR_NS) // 1_000_000

    def _retention(self) -> Any:
        """The retention by the year's clock: delta-rs compares with today's, which is as much later."""
        behind_h = (time.time_ns() - self.now_ns) // HOUR_NS
        return replace(RETENTION, data_files_h=RETENTION.data_files_h + behind_h)

    def _evaluate(self) -> None:
        """A round of the watchdog."""
        lake, wall_s = self.lake(), self.now_ns / SECOND_NS
        found = lake_facts(
            lake,
            str(self.root / "landing"),
            GrowthSettings(),
            orphan_grace_s=3600.0,
            wall_s=wall_s,
            way=[(LANDED, FUSED)],
        )
        found["now_ns"] = self.now_ns
        waiting_s = unconsumed_s(lake, CONJUNCTION_ALERTS, ALERT_DELIVERIES, self.now_ns)
        low_ns = self.plan.begin_ns(self.plan.disk_low)
        free = 4 if low_ns <= self.now_ns < low_ns + 3 * DAY_NS // 2 else 40
        facts = Facts(**found, delivery=DeliveryFacts(waiting_s, self._refusal), disks=[DiskFacts(lake.uri, free, 100)])
        self._history = self._history.after(evaluate(facts, VitalsSettings()), wall_s)
        for notice in self._history.pending:
            self.found.notices.append(notice)
            self._history = self._history.without(notice)

    @property
    def _day(self) -> int:
        return self.now_ns // DAY_NS

    def _is_in(self, span: tuple[float, float]) -> bool:
        return self.plan.begin_ns(span[0]) <= self.now_ns < self.plan.begin_ns(span[1])

    def _account(self) -> None:
        """Everything that must hold at the end; what does not is a problem."""
        self._run()  # what the last kill left
        lake, found = self.lake(), self.found
        found.problems += wrong_rows(lake, self.sealed, self.receiver.store.held())
        found.problems += wrong_events(self.plan, found, self.now_ns)
        for table in TABLES:
            stored = self.engine.snapshot(lake.log(table).uri)
            found.problems += left_over(lake.log(table), stored, self.plan, self.now_ns)
            found.figures[f"{table.name} live files"] = len(stored.live)
        files = [path for path in self.root.rglob("*") if path.is_file()]
        found.figures |= {"commits": self.engine.commits, "files": len(files)}
        found.figures["bytes"] = sum(path.stat().st_size for path in files)


def _message(at_ns: int) -> Delivery:
    """A conjunction data message that was written now."""
    data = messages_of([Told(created_ns=at_ns, tca_ns=at_ns + DAY_NS)])
    meta = describe_segment(
        data, feed="messages", segment_format="cdm-kvn", sealed_time_ns=at_ns, sealed_wall_time_ns=at_ns
    )
    return Delivery("messages", f"cdm-{at_ns}", data, meta)


def _fuse(lake: YearLake) -> None:
    """The watermarks of what was received; no rows."""
    plan = lake.plan(FUSED)
    if plan.is_empty:
        return
    kinds = set(pc.unique(lake.new_rows(plan, LANDED, ["feed"]).column("feed")).to_pylist()) & set(_LATENESS.bound_ns)
    before: Mapping[str, int] = plan.previous.watermarks if plan.previous else {}
    received = dict.fromkeys(kinds, plan.as_of_ns)
    marks = advance(before, Arrivals(received, received), _LATENESS, plan.as_of_ns)
    telescope = f"{HEARD}optical-site"
    heard = {telescope: plan.as_of_ns} if "optical" in kinds else {k: v for k, v in before.items() if k == telescope}
    lake.append(plan, FUSED.content_schema.empty_table(), watermarks={**marks, **heard})


@contextmanager
def _timed(seconds: list[float]) -> Iterator[None]:
    """Append the processor time of the context, which other programs on the machine do not stretch."""
    began_s = time.process_time()
    yield
    seconds.append(time.process_time() - began_s)


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Local time of a zone with daylight saving, for this process."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
        time.tzset()


def run(directory: Path, plan: YearPlan, say: Callable[[str], object] = lambda _line: None) -> YearFindings:
    """Live through ``plan`` in the empty ``directory``."""
    say(f"{plan.days} days from {plan.start[:10]}, {plan.landings:,} landings in {directory}")
    with in_zone("Europe/Berlin"), receiving(SqliteSubscriber(directory / "subscriber.sqlite")) as receiver:
        return Year(directory, plan, receiver).live()


def report(found: YearFindings, plan: YearPlan) -> Report:
    """The findings; what a run, a plan, a check or a start costs may grow by half from the first to the last tenth."""
    problems, costs = list(found.problems), []
    for name in ("run", "plan", "check", "start", "maintenance"):
        first, last = _ends(getattr(found, f"{name}_seconds"))
        costs.append(f"{name} {first * 1000:.1f}, {last * 1000:.1f} ms")
        # What a maintenance costs follows from what is due on a night.
        if plan.days >= YearPlan.days and name != "maintenance" and last > 1.5 * first:
            problems.append(f"a {name} costs {last * 1000:.1f} ms at the end, {first * 1000:.1f} ms at the beginning")
    if found.slowest_start_s > 10:
        problems.append(f"a start took {found.slowest_start_s:.1f} s")
    starts = f"{len(found.start_seconds)} starts, the slowest {found.slowest_start_s:.2f} s"
    notes = (
        f"{found.nights} nights, {found.kills.total()} kills, {starts}",
        f"processor time, medians of the first and the last tenth: {'; '.join(costs)}",
        ", ".join(f"{name} {value:,}" for name, value in found.figures.items()),
        ", ".join(f"{name} {value:,}" for name, value in found.maintenance.items()),
        *(str(notice) for notice in found.notices),
    )
    return Report("A year", plan.seed, len(found.run_seconds), failures=tuple(problems), notes=notes)


def _ends(seconds: Sequence[float]) -> tuple[float, float]:
    """Medians of the first and of the last tenth."""
    tenth = max(len(seconds) // _TENTH, 1)
    return median(seconds[:tenth]), median(seconds[-tenth:])


def main(arguments: list[str] | None = None) -> int:
    """Live through a year; exit code 1 when anything is wrong at its end."""
    parser = argparse.ArgumentParser(prog="python -m sda_platform_tests.campaign.year", description=__doc__)
    parser.add_argument("--days", type=int, default=YearPlan.days)
    parser.add_argument("--commits", type=int, default=YearPlan.commits, help="of all tables together")
    parser.add_argument("--start", default=YearPlan.start, help="first day, ISO 8601")
    parser.add_argument("--seed", type=int, default=YearPlan.seed, help="decides which runs are killed")
    parser.add_argument("--directory", type=Path, help="where it works, such as a disk in memory (removed if green)")
    chosen = parser.parse_args(arguments)
    plan = YearPlan(chosen.days, chosen.commits, chosen.start, chosen.seed)
    if chosen.directory is not None:
        chosen.directory.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="sda-year-", dir=chosen.directory))
    began_s = time.monotonic()
    found = report(run(directory, plan, lambda line: sys.stdout.write(f"{line}\n")), plan)
    sys.stdout.write(f"{found}\nafter {(time.monotonic() - began_s) / 60:.1f} min\n")
    if found.is_green:
        shutil.rmtree(directory)
    return 0 if found.is_green else 1


if __name__ == "__main__":
    sys.exit(main())
