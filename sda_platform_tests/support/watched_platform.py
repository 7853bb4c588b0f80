"""A platform as the watchdog sees it, on a clock that a test moves: real tables, zones, records of runs and receivers.

Facts come from the code that observes a platform. Only what a test cannot make within milliseconds is stated: free
space, the answer of the engine, and which processes are alive.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    SCREENED_FROM,
)
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import arrivals, source_watermarks
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.fusion.watermarks import advance
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.table import Table
from sda_platform.lake.verdicts import CommitFinding, Position, TableVerdict
from sda_platform.notification.late_channels import notification_problems
from sda_platform.observability.vitals import process_facts
from sda_platform.observability.vitals.delivery_facts import delivery_facts
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import Facts, Finding
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.lake_facts import lake_facts
from sda_platform.observability.vitals.notices import Notice
from sda_platform.published import COLLECTOR
from sda_platform.setting_sections import GrowthSettings, VitalsSettings
from sda_platform.settings import Settings
from sda_platform_tests.support.delivery_rounds import deliver
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import after
from sda_platform_tests.support.webhook_receiver import Receiver

RULES = VitalsSettings()
SOURCES = ("radar-1", "radar-2", "isl-1", "isl-2", "optical-maui")
WAY = (OBSERVATIONS, FUSED_TRACKS, TRACKS, CONJUNCTION_ASSESSMENTS)


class CollectorReport(ThreadingHTTPServer):
    """The control plane of a collector, which answers with ``content`` and ``status``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status, self.content = 200, dict[str, Any](sources=[], problems=[])


class _Answer(BaseHTTPRequestHandler):
    server: CollectorReport

    def do_GET(self) -> None:
        body = json.dumps(self.server.content).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@dataclass
class WatchedPlatform:
    """All is well with it until a test changes something. ``t_s``: seconds since ``began_s`` (wall) in mission time.

    ``began_s`` is the real time, at which Dagster records runs.
    """

    home: Path
    instance: dg.DagsterInstance
    receiver: Receiver
    report: CollectorReport
    began_s: float = field(default_factory=time.time)
    t_s: float = 0.0
    lives: bool = False
    silent: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    standing: set[str] = field(default_factory=set)
    held_kind: str = ""
    stated: dict[str, Any] = field(default_factory=dict)
    expects_collector: bool = False
    history: VitalHistory = field(default_factory=VitalHistory)

    @property
    def lake(self) -> Lake:
        """The lake now."""
        return lake_at(self.home / "lake", now_ns=after(self.t_s), reads_unverified=False)

    @property
    def landing(self) -> Path:
        """The root of the landing zones."""
        return self.home / "landing"

    @property
    def subscriber(self) -> WebhookSubscriber:
        """The subscriber, as the platform reaches it."""
        return WebhookSubscriber(self.receiver.url, sleep=lambda _s: None)

    def at(self, t_s: float) -> list[Notice]:
        """Live until ``t_s``, evaluate the vitals there, and return the notices of it."""
        self.t_s = t_s
        if self.lives:
            self._live()
        before = len(self.history.pending)
        self.history = self.history.after(evaluate(self.facts(), RULES), self.began_s + t_s, repeat_s=1e9)
        return list(self.history.pending[before:])

    def facts(self) -> Facts:
        """The facts now."""
        wall_s, lake = self.began_s + self.t_s, self.lake
        found = lake_facts(
            lake,
            str(self.landing),
            GrowthSettings(),
            orphan_grace_s=60.0,
            wall_s=wall_s,
            rules=RULES,
            sensors=FusionResource(**Settings(home=self.home).fusion.model_dump()),
        )
        return Facts(
            **{
                **found,
                "delivery": delivery_facts(lake, self.instance, found["now_ns"], lambda: self.subscriber),
                "unnotified": [Finding(*e) for e in notification_problems(Settings(home=self.home), wall_s)],
                "collectors": process_facts.collector_facts(self.home, is_expected=self.expects_collector),
                "runs": process_facts.run_facts(self.instance, wall_s),
                "failing": process_facts.failing_jobs(self.instance, wall_s),
                **self.stated,
            }
        )

    def consume(self, reader: Table, source: Table, rows: Any = (), marks: Mapping[str, int] | None = None) -> None:
        """A commit of ``reader`` that has consumed all of ``source``."""
        head = self.lake.log(source).head()
        window = TableWindow(source.name, 0, head.sequence, -1, head.version, head.manifest_sha256)
        commit(self.lake, reader, rows, windows=[window], watermarks=marks)

    def _live(self) -> None:
        """What a run of the alerts pool does with what came: every source that is not silent reports."""
        heard = {name: self.t_s for name in (*SOURCES, *self.strangers) if name not in self.silent}
        if RAW_RECORDS.name not in self.standing:
            commit(self.lake, RAW_RECORDS, [{"source_id": name} for name in heard])
        if OBSERVATIONS.name not in self.standing:
            self.consume(OBSERVATIONS, RAW_RECORDS, _observations(heard).to_pylist())
        before = self.lake.log(FUSED_TRACKS).head().commit
        marks = dict(before.manifest.watermarks) if before else {}
        arrived = _observations(heard)
        lateness = FusionResource().lateness
        fresh = advance(marks, arrivals(arrived), lateness, after(self.t_s)) if heard else dict(marks)
        if self.held_kind:
            fresh = {**fresh, **{k: v for k, v in marks.items() if k in (self.held_kind, "pipeline")}}
        known = source_watermarks(marks, arrived, fresh, lateness.bound_ns, after(self.t_s))
        if FUSED_TRACKS.name not in self.standing:
            self.consume(FUSED_TRACKS, OBSERVATIONS, marks={**fresh, **known})
        if TRACKS.name not in self.standing:
            self.consume(TRACKS, FUSED_TRACKS)
        if CONJUNCTION_ASSESSMENTS.name not in self.standing:
            self.consume(CONJUNCTION_ASSESSMENTS, TRACKS)

    def find(self, table: Table, promise: str = "keys") -> None:
        """A check finds that a new commit of ``table`` breaks a promise."""
        commit(self.lake, table)
        newest = self.lake.log(table).commits()[0]
        verdict = self.lake.verdicts.read(self.lake.log(table))
        before = Position(newest.sequence - 1, newest.version - 1)
        finding = CommitFinding(table.name, newest.sequence, before, Position.of(newest), {promise: ["x"]}, "t")
        self.lake.verdicts.write(TableVerdict(table.name, Position.of(newest), (*verdict.findings, finding)))

    def repair(self, table: Table, kept: int = 0) -> None:
        """The findings of ``table`` are gone but the first ``kept``."""
        newest, verdict = self.lake.log(table).commits()[0], self.lake.verdicts.read(self.lake.log(table))
        self.lake.verdicts.write(TableVerdict(table.name, Position.of(newest), verdict.findings[:kept]))

    def alert(self, event_id: str, sequence: int = 0, op: str = "insert") -> None:
        """An entry of an alert whose TCA is a day ahead."""
        facts = {"event_id": event_id, "sequence": sequence, "op": op, "risk": "red", "norad_id_1": 1, "norad_id_2": 2}
        commit(self.lake, CONJUNCTION_ALERTS, [{**facts, "tca_time_ns": after(self.t_s + 86_400.0)}])

    def deliver(self) -> None:
        """A delivery to the subscriber, as a run makes it; what it reads counts as verified."""
        deliver(lake_at(self.home / "lake", now_ns=after(self.t_s)), self.subscriber)

    def screen(self, t_s: float) -> None:
        """A full screening that began at ``t_s``."""
        commit(self.lake, CONJUNCTION_CANDIDATES, [], watermarks={SCREENED_FROM: after(t_s)})

    def receive_sets(self, t_s: float) -> None:
        """Element sets that came at ``t_s``."""
        commit(self.lake, ELEMENT_SETS, [{"norad_id": 1, "received_time_ns": after(t_s)}])

    def leave(self, name: str, data: bytes = b"x", zone: str = "radar") -> Path:
        """A file in the pending directory of ``zone``, which came at the present time."""
        path = self.landing / zone / "pending" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (self.began_s + self.t_s,) * 2)
        return path

    def publish(self, address: str) -> None:
        """A collector of this home answers at ``address``."""
        (self.home / f"{COLLECTOR}.json").write_text(json.dumps({"address": address, "pid": 1}))

    def answer(self, status: int = 200, **content: Any) -> None:
        """The collector's report says ``content``."""
        self.report.status, self.report.content = status, {"sources": [], "problems": [], **content}
        self.publish(f"127.0.0.1:{self.report.server_address[1]}")


def _observations(heard: Mapping[str, float]) -> pa.Table:
    times = pa.array([after(at) for at in heard.values()], pa.int64())
    return pa.table(
        {
            "observation_id": [f"{name}-{at}" for name, at in heard.items()],
            "source_kind": [name.partition("-")[0] for name in heard],
            "source_id": list(heard),
            "sensor_time_ns": times,
            "received_time_ns": times,
        }
    )


@contextmanager
def watched_platform(home: Path) -> Iterator[WatchedPlatform]:
    """One that is well, with its receivers in threads of this process."""
    receiver, report = Receiver(SqliteSubscriber(home / "s.sqlite")), CollectorReport()
    for server in (receiver, report):
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        with dg.DagsterInstance.ephemeral() as instance:
            yield WatchedPlatform(home, instance, receiver, report)
    finally:
        for server in (receiver, report):
            server.shutdown()
            server.server_close()
