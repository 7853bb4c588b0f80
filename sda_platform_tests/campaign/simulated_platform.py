"""The platform on the simulated disk: its own decisions (landing, intake, planning, settling, outbox).

Stand-ins are there only for what it talks to: the partner, the engine, the subscriber and the clock.
"""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

import sda_platform.delivery.assets  # noqa: F401  # declares the body of the deliveries
from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.formats.segments import SegmentMeta
from sda_platform.history.compaction import compact
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import delta_log
from sda_platform.lake.commit import CommitReceipt, Mode
from sda_platform.lake.errors import NameUsed, SegmentConflict
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import CommitManifest, SegmentRef
from sda_platform.lake.merge_process import MergeRequest
from sda_platform.lake.merging import IsStopped
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.landing.consumed import MARK_DIGITS
from sda_platform.landing.decoding import one_by_one
from sda_platform.landing.owners import Owners
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration import landing_table
from sda_platform.orchestration.declarations import declared
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import LostCommit, recover
from sda_platform.units import SECOND_NS
from sda_platform_tests.campaign.disk import Disk, Loss, mount
from sda_platform_tests.campaign.scheduling import Process, Scheduler
from sda_platform_tests.campaign.simulated_delta import SimulatedLog
from sda_platform_tests.campaign.simulated_engine import SimulatedEngine, SimulatedSession, Transaction
from sda_platform_tests.campaign.simulated_partner import Delivery
from sda_platform_tests.campaign.simulated_reading import unsynced_versions
from sda_platform_tests.campaign.simulated_subscriber import SimulatedSubscriber
from sda_platform_tests.support.delta_tables import in_columns, rows_of
from sda_platform_tests.support.segments import START_NS

LAKE, LANDING = "sim:///lake", "sim:///landing"
FEEDS = ("radar", "isl")
LANDED = replace(RAW_RECORDS, zones=FEEDS)
ALERTED = replace(CONJUNCTION_ALERTS, consumes=(LANDED,))
TABLES = (LANDED, ALERTED, ALERT_DELIVERIES)
ORPHAN_GRACE_S = 60.0
ENGINE = "engine"


def decode(_data: bytes, meta: SegmentMeta) -> pa.Table:
    """Just enough of a decoder: one row per record."""
    count = meta.records
    texts = pa.nulls(count, pa.string())
    return pa.table({"record_number": pa.array(range(count), pa.int64()), "error_kind": texts, "error": texts})


@dataclass(frozen=True)
class Promise:
    """What a run knows once it has a receipt: the nonce that it drew is in the log at this sequence."""

    table: Table
    sequence: int
    nonce: str


class SimulatedOwners(Owners):
    """The processes of the scheduler; those of before a power loss are of another boot."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def own(self) -> str:
        """The boot, and the number of the process that runs."""
        return f"{self._world.boots}/{self._world.scheduler.running}"

    def has_ended(self, mark: str) -> bool:
        """Whether a process of this boot has ended."""
        boot, _, number = mark.partition("/")
        alive = {process.number for process in self._world.scheduler.processes if not process.is_over}
        return mark == self.own() or (int(boot) == self._world.boots and int(number) not in alive)


class SimulatedLake(Lake):
    """A lake whose engine is the simulated one, and whose assets run without checks; all else is the platform's."""

    reads_unverified = True
    requires_lineage = False

    def __init__(self, world: "World", run_id: str) -> None:
        super().__init__(LAKE, MissionClock(world.now_ns, 0, 0.0), without_session, run_id)
        self.world = world
        self.engine = world.writing
        self.merge = world.merging
        self.new_nonce = self._draw
        self._drawn = ""

    def _draw(self) -> str:
        self._drawn = self.world.new_nonce()
        return self._drawn

    @property
    def session(self) -> Any:
        """What carries out SQL statements."""
        return SimulatedSession(self.world.engine, self.world.await_engine)

    def open(self) -> "SimulatedLake":
        """As the lake's resource: here it is the lake itself."""
        return self

    def log(self, table: Table) -> SimulatedLog:
        """The table's log on the simulated disk."""
        return SimulatedLog(table, f"{self.uri}/{table.name}", self.world.disk)

    def frame(self, table: Table, rows: pa.Table, *, stamped: bool = False) -> Any:
        """Arrow rows are the engine's frames here."""
        return rows

    def _goes_by_files(self, plan: Plan, rows: pa.Table) -> bool:
        """In a bulk history the records are as many as Arrow itself writes into files."""
        return self.world.is_bulk and plan.table.name == RAW_RECORDS.name and rows.num_rows > 0

    def append(self, plan: Plan, rows: Any, **facts: Any) -> CommitReceipt:
        """`Lake.append`; the world records what the receipt promises."""
        receipt = super().append(plan, rows, **facts)
        self.world.promises.append(Promise(plan.table, plan.sequence, self._drawn))
        return receipt


class Zones:
    """As the landing zones' resource: small batches, so that short histories have several."""

    def __init__(self, root: str, now_s: float, owners: Owners | None = None) -> None:
        self._root, self._now_s, self._owners = root, now_s, owners or Owners()

    def zones(self, feeds: Sequence[str]) -> list[LandingZone]:
        """The zones of these feeds."""
        return [LandingZone(self._root, feed) for feed in feeds]

    def zones_of(self, table: Table) -> TableZones:
        """The zones of ``table``."""
        attempts = UPath(self._root) / ".decoding" / f"{table.name}.json"
        before_s = self._now_s - ORPHAN_GRACE_S
        return TableZones(self.zones(table.zones), 2, 10**6, attempts, self._owners, before_s)


class World:
    """One machine with its disk, and the outside: a partner with files, and a subscriber."""

    def __init__(self, deliveries: Sequence[Delivery], *, is_bulk: bool = False) -> None:
        self.is_bulk = is_bulk
        self.now_ns = START_NS
        self.scheduler = Scheduler()
        self.disk = Disk(step=self.scheduler.step, now_s=lambda: self.now_s)
        self.engine = SimulatedEngine(self.disk)
        self.subscriber = SimulatedSubscriber(self.scheduler.step)
        self.unsent = list(deliveries)
        self.sealed: list[Delivery] = []
        self.promises: list[Promise] = []
        # A power loss that meets two unsynced versions of a table, ours and another tool's, is outside the argument:
        # the platform may refuse to start then, though nothing was acknowledged.
        self.may_refuse = False
        self.boots = 0
        self._nonces = 0
        self._runs = 0
        mount(self.disk)
        self._set_up()
        failpoints.watch(lambda point: self.scheduler.step("point", point))

    def _set_up(self) -> None:
        """The zones' directories were made, and synced, long ago; the lake's is made by its first commit."""
        zones = [f"/landing/{feed}" for feed in FEEDS]
        folders = ["/landing", *zones, *(f"{zone}/pending" for zone in zones)]
        for folder in folders:
            self.disk.make_directory(folder)
        for folder in ("/", *folders):
            self.disk.sync(folder)

    @property
    def now_s(self) -> float:
        """Wall time, which runs as mission time does."""
        return self.now_ns / SECOND_NS

    def new_nonce(self) -> str:
        """The random value that identifies one attempt of a commit."""
        self._nonces += 1
        return f"nonce-{self._nonces}"

    def lake(self, run_id: str = "reader") -> SimulatedLake:
        """The lake as one run sees it."""
        return SimulatedLake(self, run_id)

    def state(self) -> bytes:
        """A digest of all that decides what becomes of this world, as long as no process is at work in it."""
        of_the_disk = (sorted(self.disk.names.items()), self.disk.durable, self.disk.pending)
        outside = (self.unsent, self.sealed, self.promises, self.subscriber, self.may_refuse)
        counters = (self.now_ns, self.engine.jobs, self.boots, self._nonces, self._runs)
        return hashlib.sha256(repr((of_the_disk, outside, counters)).encode()).digest()

    def outlive_clock_jumps(self) -> None:
        """Have no file be younger than the clock states, which may have been set back."""
        newest_s = max((file.mtime_s for file in self.disk.names.values() if file is not None), default=0.0)
        self.now_ns = max(self.now_ns, round(newest_s * SECOND_NS))

    def land_all(self) -> None:
        """The lander: takes over the partner's files, each tried once."""
        for file in tuple(self.unsent):
            self.land(file)

    def land(self, file: Delivery) -> None:
        """One file, sent until it is accepted; while other bytes wait under its name, it is for later.

        Where other bytes were consumed under the name, the partner gives the file another one.
        """
        try:
            LandingZone(LANDING, file.feed).seal(file.name, file.arriving, file.meta)
        except NameUsed:
            self.unsent[self.unsent.index(file)] = replace(file, name=f"{file.name}-renamed")
            return
        except SegmentConflict:
            return
        self.unsent.remove(file)
        self.sealed.append(file)

    def run_tables(self) -> None:
        """One run of the pool, from segments to the subscriber."""
        self._runs += 1
        run_tables(self.lake(f"run-{self._runs}"), Zones(LANDING, self.now_s, SimulatedOwners(self)), self.subscriber)

    def writing(
        self, log: TableLog, plan: Plan, rows: pa.Table, mode: Mode, where: str | None = None, /
    ) -> Callable[[CommitManifest], None]:
        """How the engine, which works in a process of its own, writes ``rows``."""
        assert where is None, "no table of the simulation keeps files of which a row changes"
        path = delta_log.table_directory(log.uri).path
        stored = in_columns(plan, rows)

        def write(manifest: CommitManifest) -> None:
            transaction = Transaction(plan.table.app_id, plan.sequence, manifest.to_json())
            self.await_engine(partial(self.engine.write, path, transaction, stored, mode))

        return write

    def merging(self, request: MergeRequest, _is_stopped: IsStopped) -> int:
        """How files are merged: in a process of its own, which may end before or after the run."""
        path = delta_log.table_directory(request.uri).path
        return int(self.await_engine(lambda: self.engine.compact(path))[1])

    def await_engine(self, job: Callable[[], Any]) -> Any:
        """The result of ``job``, which the engine carries out in a process of its own. Raises ConnectionLost."""
        return self.scheduler.wait(self.scheduler.start(ENGINE, job))

    def compact_unsynced(self) -> None:
        """What a maintenance leaves if it is killed after its first statements: compactions that nothing has synced."""
        for table in self._tables():
            self.engine.compact(delta_log.table_directory(self.lake().log(table).uri).path)

    def maintain(self) -> None:
        """The platform's compaction of every table, and a VACUUM, which removes more than the platform would."""
        self._runs += 1
        lake = self.lake(f"run-{self._runs}")
        for table in self._tables():
            compact(lake, table)
            lake.session.sql(f"VACUUM delta.`{lake.log(table).uri}`").collect()
            lake.head(table)

    def pass_nights(self, nights: int) -> None:
        """Another tool compacts and vacuums every table night after night; the disk has all of it in the end."""
        for _ in range(nights):
            self.now_ns += 24 * 3600 * SECOND_NS
            for table in self._tables():
                path = delta_log.table_directory(self.lake().log(table).uri).path
                self.engine.compact(path)
                self.engine.vacuum(path, is_logged=True)
        for path in tuple(self.disk.names):
            self.disk.sync(path)

    def _tables(self) -> list[Table]:
        """The tables that exist."""
        return [table for table in TABLES if self.lake().log(table).version() >= 0]

    def start(self, name: str, program: Callable[[], Any]) -> Process:
        """A new process of the platform."""
        return self.scheduler.start(name, program)

    def kill_engine(self) -> None:
        """Every job of the engine ends; each waiting client gets an error."""
        for process in self.scheduler.processes:
            if process.name == ENGINE:
                process.kill()

    def lose_power(self, loss: Loss, chance: random.Random) -> None:
        """Every process ends, and the disk keeps what it kept."""
        self.scheduler.kill_all()
        self.may_refuse |= any(len(unsynced_versions(self.disk, table.name)) > 1 for table in TABLES)
        self.disk.lose_power(loss, chance)
        self.boots += 1

    def forget_newest_commit(self) -> None:
        """A disk that lied comes back with all it had confirmed but the newest commit of the records.

        Nothing is forgotten where the start is refused by rule: where a table consumed the commit, which cannot be made
        again, and where another file waits under the name of a segment that the commit put into quarantine.
        """
        for path in tuple(self.disk.names):
            self.disk.sync(path)
        head, reader = self.lake().head(RAW_RECORDS), self.lake().head(CONJUNCTION_ALERTS)
        window = reader.commit.manifest.window(RAW_RECORDS.name) if reader.commit else None
        if head.commit is None or (window and window.upto_sequence >= head.sequence):
            return
        if any(map(self._is_replaced, head.commit.manifest.segments)):
            return
        if head.version > head.commit.version:
            return  # another tool's commit holds the same rows: the newest version is that one
        directory = delta_log.table_directory(self.lake().log(RAW_RECORDS).uri).path
        file = self.disk.file(f"{directory}/_delta_log/{head.commit.version:020d}.json")
        file.data = file.durable = b""
        forgotten = (LANDED, head.sequence)
        self.promises = [promise for promise in self.promises if (promise.table, promise.sequence) != forgotten]

    def _is_replaced(self, segment: SegmentRef) -> bool:
        """Whether a file waits under the name of this segment, which is in quarantine."""
        zone, name = f"/landing/{segment.zone}", segment.name
        quarantined = f"{zone}/quarantine/{name}.{segment.sha256[:MARK_DIGITS]}"
        return segment.defect is not None and self.disk.names.keys() >= {quarantined, f"{zone}/pending/{name}"}

    def recover(self, depth: Depth = Depth.PRESENCE) -> None:
        """What the platform does at its start, before anything may write. Raises LostCommit where it refuses."""
        zones = {RAW_RECORDS.name: Zones(LANDING, self.now_s).zones(FEEDS)}
        for finding in recover(self.lake("recovery"), TABLES, zones, depth=depth, repair=True):
            if finding.outcome == "damaged":
                raise LostCommit(f"{finding.examination.table}: {finding.problems}; {finding.refused}")


def run_tables(lake: Lake, zones: Zones, subscriber: Subscriber) -> None:
    """One run: segments to records to alerts to ``subscriber``. ``lake`` opens as its resource does."""
    decoder = one_by_one(decode)
    landing_table.land(cast("Any", lake), cast("Any", zones), LANDED, decoder, report=lambda _event: None)
    alert(lake)
    declared(ALERT_DELIVERIES).body(lake, subscriber)


def alert(lake: Lake) -> None:
    """Plan, transform, commit: every sound record is an alert, which shows how many came with it.

    That number depends on the window, as watermarks make real tables do: only a replay of the same windows repeats it.
    """
    plan = lake.plan(ALERTED)
    if plan.is_empty:
        return
    lake.append(plan, alerts_of(lake.new_rows(plan, RAW_RECORDS)))


def alerts_of(records: pa.Table) -> pa.Table:
    """The alerts of a window of records."""
    sound = records.filter(pc.is_null(records.column("error_kind")))
    pairs = zip(sound.column("segment_sha256").to_pylist(), sound.column("record_number").to_pylist(), strict=True)
    ids = sorted(f"{sha256[:12]}-{number}" for sha256, number in pairs)
    rows = rows_of(
        CONJUNCTION_ALERTS,
        [{"event_id": name, "sequence": 0, "op": "insert", "norad_id_1": len(ids)} for name in ids],
    )
    return rows.drop_columns([COMMIT_SEQUENCE])
