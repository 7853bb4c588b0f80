"""T1: power loss on a real file system, at every failpoint of a history from a partner's file to the subscriber.

One real process lands a file and runs the pool on an ext4 image. At every failpoint it passes, the image is copied,
with an account of what had been confirmed by then. Each copy is mounted, recovered as at a start, and drained. Nothing
that was confirmed may be missing, and every record and alert must be there once. The controls leave out the syncs of
the platform, or those of the subscriber's database: they must fail.
"""

import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from sda_platform import failpoints
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, Outcome
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import durable
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.planning import Plan
from sda_platform.recovery.repair import recover
from sda_platform_tests.campaign import ext4
from sda_platform_tests.campaign.process_home import RECORDS, DeltaRsLake, Home, contradictions, started
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_platform import ORPHAN_GRACE_S, TABLES, Zones, run_tables
from sda_platform_tests.support.segments import radar_segment

Without = Literal["nothing", "syncs of the platform", "syncs of the subscriber"]
NAME = "T1 power loss on ext4"
_TIMEOUT_S = 600.0
_REPLAY = "python -m sda_platform_tests.campaign --tier t1 --point 'power loss'"


@dataclass(frozen=True)
class Confirmed:
    """What others had been promised at one moment.

    ``is_landed``: the partner may delete its file. ``receipts``: table, sequence and nonce of commits. ``alerts``: id,
    sequence and operation of the entries that the subscriber said it has.
    """

    point: str
    is_landed: bool
    receipts: list[list[Any]]
    alerts: list[list[Any]]


@dataclass
class _Account:
    """Keeps what is confirmed, and copies ``image`` with it whenever a failpoint is passed."""

    image: Path
    cuts: Path
    is_landed: bool = False
    receipts: list[list[Any]] = field(default_factory=list)
    alerts: list[list[Any]] = field(default_factory=list)
    taken: int = 0

    def cut(self, point: str) -> None:
        """The power is lost now."""
        self.taken += 1
        ext4.copy(self.image, self.cuts / f"{self.taken:04d}.img")
        confirmed = Confirmed(point, self.is_landed, self.receipts, self.alerts)
        (self.cuts / f"{self.taken:04d}.json").write_text(json.dumps(asdict(confirmed)))


class _Lake(DeltaRsLake):
    """A lake whose receipts go into the account."""

    account: _Account

    def append(self, plan: Plan, rows: Any, **facts: Any) -> CommitReceipt:
        """`Lake.append`."""
        receipt = super().append(plan, rows, **facts)
        self.account.receipts.append([plan.table.name, plan.sequence, receipt.commit.manifest.nonce])
        return receipt


class _Subscriber(SqliteSubscriber):
    """A subscriber whose answers go into the account."""

    def __init__(self, path: Path, account: _Account) -> None:
        super().__init__(path)
        self._account = account

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """`SqlSubscriber.apply`."""
        outcomes = super().apply(batch_id, entries)
        self._account.alerts += [list(entry.revision) for entry in entries]
        return outcomes


def run(*, stride: int = 1, seed: int = 1) -> Report:
    """Every ``stride``-th cut, and the two controls with as many.

    Without loop devices none is tried, and a note gives the reason.
    """
    if reason := ext4.refusal():
        return Report(NAME, seed, 0, notes=(f"no power loss on a real disk was tried: {reason}",))
    failures, seconds, points, tried = [], [], set(), 0
    for without in ("nothing", "syncs of the platform", "syncs of the subscriber"):
        outcomes = list(_outcomes(without, stride))
        tried += len(outcomes)
        lost = [(point, problem) for point, problems, _ in outcomes for problem in problems]
        if without == "nothing":
            failures += [f"power lost at {point}: {problem} [replay: {_REPLAY}]" for point, problem in lost]
            seconds += [took_s for *_, took_s in outcomes]
            points |= {point for point, *_ in outcomes}
        elif not lost:
            failures.append(f"the control without {without} survived {len(outcomes)} power losses")
    return Report(NAME, seed, tried, frozenset(points), frozenset(), tuple(failures), tuple(seconds))


def _outcomes(without: Without, stride: int) -> Iterator[tuple[str, list[str], float]]:
    """Of each cut the point, what is wrong after the restart, and the seconds until then."""
    with tempfile.TemporaryDirectory(prefix="sda-power-") as directory:
        root = Path(directory)
        cuts = _cuts_of_a_history(root, without)
        # The last one shows whether what was confirmed in the end is there.
        for image in (*cuts[:-1:stride], cuts[-1]):
            confirmed = Confirmed(**json.loads(image.with_suffix(".json").read_text()))
            began = time.perf_counter()
            yield confirmed.point, _after_power_loss(root / "restarted" / image.stem, image, confirmed), _since(began)


def _cuts_of_a_history(root: Path, without: Without) -> list[Path]:
    """Copies of the image, oldest first. Raises RuntimeError where the history did not come to its end."""
    home, image = Home(root), root / "disk.img"
    (root / "cuts").mkdir()
    ext4.make(image)
    with ext4.mounted(image, home.disk):
        home.file.write_bytes(radar_segment(RECORDS))
        os.sync()
        _must_end(started(partial(_history, root, image, without)), home)
    return sorted((root / "cuts").glob("*.img"))


def _history(root: Path, image: Path, without: Without) -> None:
    """From the partner's file to the subscriber, as `process_home.work` goes."""
    home, account = Home(root), _Account(image, root / "cuts")
    _Lake.account = account
    with _left_out(without), patch("sda_platform_tests.campaign.process_home.DeltaRsLake", _Lake):
        failpoints.watch(account.cut)
        home.land()
        account.is_landed = True
        account.cut("landed")
        while any(zone.pending_names() for zone in home.zones()):
            run_tables(home.lake(), Zones(home.landing, time.time()), _Subscriber(home.subscriber.path, account))
        account.cut("drained")


@contextmanager
def _left_out(without: Without) -> Iterator[None]:
    """Plant a bug: some syncs are left out."""
    connect = SqliteSubscriber._connect

    def careless(subscriber: SqliteSubscriber) -> sqlite3.Connection:
        database = connect(subscriber)
        database.execute("PRAGMA synchronous = OFF")
        return database

    if without == "syncs of the platform":
        with patch.object(durable, "sync", lambda _paths: None):
            yield
    elif without == "syncs of the subscriber":
        with patch.object(SqliteSubscriber, "_connect", careless):
            yield
    else:
        yield


def _after_power_loss(root: Path, image: Path, confirmed: Confirmed) -> list[str]:
    """What is wrong once the platform was started, and drained, on what is in ``image``."""
    home = Home(root)
    root.mkdir(parents=True)
    with ext4.mounted(image, home.disk):
        received = [list(row[:3]) for row in home.subscriber.receipts()]
        problems = [f"the subscriber lost {alert}" for alert in confirmed.alerts if alert not in received]
        try:
            _must_end(started(partial(_restart, root, confirmed.is_landed)), home)
        except RuntimeError as error:
            return [*problems, f"O8: {error}"]
        problems += _broken_receipts(home, confirmed.receipts)
        home.file.write_bytes(radar_segment(RECORDS))  # from it the oracle derives what must be there
        return problems + contradictions(home)


def _restart(root: Path, is_landed: bool) -> None:
    """Verify and repair, then work until nothing waits; once more when partial files are old."""
    home = Home(root)
    findings = recover(home.lake(), TABLES, {RAW_RECORDS.name: home.zones()}, repair=True)
    damaged = [f"{f.examination.table}: {f.problems} {f.refused}" for f in findings if f.outcome == "damaged"]
    if damaged:
        home.told.write_text("; ".join(damaged))
        raise SystemExit(1)
    if is_landed:
        home.file.unlink(missing_ok=True)
    else:
        home.land()
    for later_s in (0.0, 2 * ORPHAN_GRACE_S):
        home.run_tables(later_s)
        while any(zone.pending_names() for zone in home.zones()):
            home.run_tables(later_s)


def _broken_receipts(home: Home, receipts: Sequence[Sequence[Any]]) -> list[str]:
    logs: Mapping[str, Any] = {table.name: home.lake().log(table) for table in TABLES}
    found = [(name, sequence, nonce, logs[name].find(sequence)) for name, sequence, nonce in receipts]
    return [
        f"O7: the receipt for {name} {sequence} is not in the log"
        for name, sequence, nonce, commit in found
        if commit is None or commit.manifest.nonce != nonce
    ]


def _must_end(process: BaseProcess, home: Home) -> None:
    process.join(_TIMEOUT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    if process.exitcode:
        told = home.told.read_text() if home.told.exists() else ""
        raise RuntimeError(f"the process ended with {process.exitcode} {told}")


def _since(began: float) -> float:
    return time.perf_counter() - began
