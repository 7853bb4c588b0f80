"""The coverage matrix of faults: what rings, within how many seconds, and who must act.

`unit/observability/test_fault_matrix.py` lets each fault happen.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

import dagster as dg

from sda_platform.catalog.tables import CATALOG_EDITS
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS, RECEIVED_CDMS
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.lake.table import Table
from sda_platform.notification import channel_state
from sda_platform.notification.channel_state import ChannelState
from sda_platform.notification.message import PeopleMessage
from sda_platform.observability.vitals.facts import BackupFacts, CollectorFacts, DaemonFacts, DiskFacts, ProcessFacts
from sda_platform.observability.vitals.faults import Side
from sda_platform.observability.vitals.process_facts import processes_of
from sda_platform.orchestration.jobs import (
    ALERTS_TO_SUBSCRIBER,
    CATALOG_TO_ALERTS,
    OBSERVATIONS_TO_ALERTS,
    ORBIT_DETERMINATION,
    PLATFORM_METRICS,
    Job,
)
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.run_records import failed_run, recorded_run
from sda_platform_tests.support.segments import after, radar_segment
from sda_platform_tests.support.watched_platform import WatchedPlatform as Platform

Act = Callable[[Platform], object]
DAY_S: Final = 86_400.0


@dataclass(frozen=True)
class FaultCase:
    """A fault: what happens, which notice it must cause and how long it may last before.

    ``allowed_s``: what the platform allows; the notice comes with the next evaluation. ``before``: what was so already.
    ``lives``: sources report and tables are made meanwhile.
    """

    fault: str
    vital: str
    side: Side
    subjects: tuple[str, ...]
    strike: Act
    repair: Act
    allowed_s: float = 0.0
    before: Act = lambda _platform: None
    lives: bool = False


CDM_SUBJECT: Final = "18 SDS: A (1) and B (2), 2024-11-02T00h"


_FORGED: Final = {"segment_name": "a.edits", "record_number": 0, "error_kind": "bad_signature", "error": "not signed"}


def _report(p: Platform, pc: float) -> None:
    """A message of another organisation about an encounter a day ahead."""
    said = {"originator": "18 SDS", "object_name_1": "A", "object_name_2": "B", "norad_id_1": 1, "norad_id_2": 2}
    times = {"tca_time_ns": after(DAY_S + 60.0), "received_time_ns": after(p.t_s), "created_time_ns": after(p.t_s)}
    commit(p.lake, RECEIVED_CDMS, [{**said, **times, "stated_probability": pc, "record_number": round(p.t_s)}])


def _assessed_green(p: Platform) -> None:
    facts = {"event_id": "one", "sequence": 0, "op": "insert", "norad_id_1": 1, "norad_id_2": 2}
    said = {"tca_time_ns": after(DAY_S + 60.0), "collision_probability": 1e-7}
    commit(p.lake, CONJUNCTION_ASSESSMENTS, [{**facts, **said}])


def _nothing(_platform: Platform) -> None:
    """Nothing was before."""


def _silent(
    fault: str, *names: str, allowed_s: float = 600.0, subjects: tuple[str, ...] = (), before: str = ""
) -> FaultCase:
    return FaultCase(
        fault,
        "sources_report",
        Side.SOURCES,
        subjects or names,
        lambda p: p.silent.update(names),
        lambda p: p.silent.difference_update(names),
        allowed_s,
        (lambda p: _long_silent(p, before)) if before else _nothing,
        lives=True,
    )


def _long_silent(p: Platform, name: str) -> None:
    """A source that reported once, two days before."""
    p.t_s = -2 * DAY_S
    p.lives = True
    p.at(p.t_s)
    p.silent.add(name)


def _awaited(p: Platform) -> None:
    p.silent.add("optical-maui")


def _list_it(p: Platform) -> None:
    """A person adds it to the list of the home."""
    shipped = resources.files("sda_platform.orbits.sensing").joinpath("sensors.csv").read_text()
    (p.home / "sensors.csv").write_text(shipped + shipped.splitlines()[1].replace("radar-1,", "radar-99,") + "\n")


def _stands(fault: str, table: str) -> FaultCase:
    return FaultCase(
        fault,
        "commits_are_consumed",
        Side.PLATFORM,
        (table,),
        lambda p: p.standing.add(table),
        lambda p: p.standing.discard(table),
        40.0,
        lives=True,
    )


def _backlog(zone: str) -> FaultCase:
    def seal(p: Platform) -> None:
        p.leave("a.radar", radar_segment(1), zone)
        p.leave("a.radar.meta.json", b"{}", zone)

    def take(p: Platform) -> None:
        for path in (p.landing / zone / "pending").iterdir():
            path.unlink()

    return FaultCase(
        f"a segment stays pending in zone {zone}", "backlog_is_taken", Side.PLATFORM, (zone,), seal, take, 300.0
    )


def _orphan(fault: str, name: str, side: Side) -> FaultCase:
    return FaultCase(
        fault,
        "no_orphans_wait",
        side,
        (f"radar ({side})",),
        lambda p: p.leave(name),
        lambda p: (p.landing / "radar" / "pending" / name).unlink(),
        60.0,
    )


def _unknown_zone(p: Platform) -> None:
    p.leave("a", zone="rador")
    os.utime(p.landing / "rador", (p.began_s + p.t_s,) * 2)


def _directory(p: Platform) -> None:
    made = p.landing / "radar" / "pending" / "d"
    made.mkdir(parents=True)
    os.utime(made, (p.began_s + p.t_s,) * 2)


def _remove_zone(p: Platform) -> None:
    (p.landing / "rador" / "pending" / "a").unlink()
    (p.landing / "rador" / "pending").rmdir()
    (p.landing / "rador").rmdir()


def _letters(*kinds: str) -> Act:
    def refuse(p: Platform) -> None:
        times = [after(p.t_s + 30.0 + 60.0 * minute) for minute in range(5) for _ in range(12)]
        rows = [{"error_kind": kind, "feed": "radar", "received_time_ns": at} for kind in kinds for at in times]
        commit(p.lake, DEAD_LETTERS, rows)

    return refuse


def _growth(fault: str, kind: str) -> FaultCase:
    return FaultCase(
        fault,
        "dead_letters_do_not_grow",
        Side.SOURCES,
        (kind,),
        _letters(kind),
        lambda p: setattr(p, "t_s", p.t_s + 3600.0),
        270.0,
        lambda p: commit(
            p.lake, DEAD_LETTERS, [{"error_kind": "out_of_range", "received_time_ns": after(p.t_s - 900.0)}]
        ),
    )


def _refuse_row(p: Platform) -> None:
    facts = {"stage": TRACKS.name, "feed": TRACKS.name, "error_kind": "broken_contract", "error": "x_km breaks finite"}
    commit(p.lake, DEAD_LETTERS, [{**facts, "rejected_time_ns": after(p.t_s)}])


def _red(fault: str, table: Table, promise: str = "keys", before: Act = _nothing) -> FaultCase:
    return FaultCase(
        fault,
        "tables_are_sound",
        Side.PLATFORM,
        (f"{table.name} sequence 1",),
        lambda p: p.find(table, promise),
        lambda p: p.repair(table),
        before=before,
    )


def _red_on_the_way(p: Platform) -> None:
    p.standing.add(FUSED_TRACKS.name)
    p.find(OBSERVATIONS)


def _mended_on_the_way(p: Platform) -> None:
    p.standing.clear()
    p.repair(OBSERVATIONS)


def _hide_letters(p: Platform) -> None:
    (data,) = (p.home / "lake" / "dead_letters").glob("*.parquet")
    data.rename(data.with_suffix(".away"))


def _show_letters(p: Platform) -> None:
    (data,) = (p.home / "lake" / "dead_letters").glob("*.away")
    data.rename(data.with_suffix(".parquet"))


def _screened_and_received(p: Platform) -> None:
    p.receive_sets(0.0)
    p.screen(0.0)


def _waiting(reason: str) -> Act:
    def strike(p: Platform) -> None:
        p.alert("one")
        if reason:
            failed_run(p.instance, ALERTS_TO_SUBSCRIBER, reason)

    return strike


def _delivered(p: Platform) -> None:
    p.deliver()
    recorded_run(p.instance, ALERTS_TO_SUBSCRIBER, dg.DagsterRunStatus.SUCCESS)


def _deliveries(
    fault: str, side: Side, reason: str = "", before: Act = _nothing, strike: Act | None = None
) -> FaultCase:
    return FaultCase(
        fault, "subscriber_is_level", side, ("deliveries",), strike or _waiting(reason), _delivered, 40.0, before
    )


def _refused(p: Platform) -> None:
    p.receiver.refused.add("one")
    p.alert("one")
    p.deliver()


def _withdrawal_refused(p: Platform) -> None:
    p.receiver.refused.add("one")
    p.alert("one", op="retract")
    p.deliver()


def _taken(p: Platform) -> None:
    p.receiver.refused.clear()
    p.deliver()


def _holds_one(p: Platform) -> None:
    p.alert("one")
    p.deliver()


def _process(name: str) -> FaultCase:
    def state(pid: int | None) -> Act:
        def act(p: Platform) -> None:
            p.stated = {"processes": processes_of({"processes": {name: {"pid": pid, "restarts": 1}}})}
            if pid is None:
                _consequences(name)(p)

        return act

    return FaultCase(
        f"the process {name} does not run",
        "processes_run",
        Side.PLATFORM,
        (name,),
        state(None),
        state(1),
        before=state(1),
    )


def _state(name: str, wrong: object, right: object) -> tuple[Act, Act]:
    return (lambda p: p.stated.update({name: wrong})), (lambda p: p.stated.update({name: right}))


_ONE_CHANNEL: Final = '[channels.desk]\nurl_variable = "DESK"\n'
_MESSAGE: Final = PeopleMessage("a-key", "a title", "a text")


def _write_rules(p: Platform, text: str) -> None:
    (p.home / "notify.toml").write_text(text)


def _stated(
    fault: str, vital: str, side: Side, subjects: tuple[str, ...], name: str, wrong: object, right: object
) -> FaultCase:
    strike, repair = _state(name, wrong, right)
    return FaultCase(fault, vital, side, subjects, strike, repair, before=repair)


def _run(fault: str, job: Job, status: dg.DagsterRunStatus, allowed_s: float, before: Act = _nothing) -> FaultCase:
    runs: dict[str, str] = {}

    def begin(p: Platform) -> None:
        runs["id"] = recorded_run(p.instance, job, status)

    return FaultCase(
        fault,
        "pools_move",
        Side.PLATFORM,
        (job.pool,),
        begin,
        lambda p: p.instance.delete_run(runs["id"]),
        allowed_s,
        before,
    )


def _failing(fault: str, job: Job, reason: str, before: Act = _nothing) -> FaultCase:
    def fail(p: Platform) -> None:
        for number in range(3):
            if reason:
                failed_run(p.instance, job, f"{reason} {number}")
            else:
                recorded_run(p.instance, job, dg.DagsterRunStatus.FAILURE)

    return FaultCase(
        fault,
        "runs_succeed",
        Side.PLATFORM,
        (job.name,),
        fail,
        lambda p: recorded_run(p.instance, job, dg.DagsterRunStatus.SUCCESS),
        before=before,
    )


def _collector(fault: str, subject: str, strike: Act, before: Act = lambda p: p.answer()) -> FaultCase:
    return FaultCase(
        fault, "collectors_answer", Side.COLLECTORS, (subject,), strike, lambda p: p.answer(), before=before
    )


def _received_once(p: Platform) -> None:
    p.receive_sets(0.0)
    p.screen(3 * DAY_S)


def _configured(p: Platform) -> None:
    p.expects_collector = True
    p.answer()


def _cut_off(p: Platform) -> None:
    p.silent.update(("radar-1", "radar-2", "isl-1", "isl-2"))
    p.publish("127.0.0.1:1")


def _connected(p: Platform) -> None:
    p.silent.clear()
    p.answer()


def _at_subscriber(statement: str) -> Act:
    """Somebody changes the database of the subscriber."""

    def act(p: Platform) -> None:
        with closing(sqlite3.connect(p.receiver.store.path)) as database, database:
            database.execute(statement)

    return act


def _disagrees(fault: str, statement: str) -> FaultCase:
    return FaultCase(
        fault, "subscriber_is_level", Side.SUBSCRIBER, ("agreement",), _at_subscriber(statement),
        lambda p: p.deliver(), before=_holds_one,
    )  # fmt: skip


def _consequences(process: str) -> Act:
    """What else shows that a process is gone."""
    shown: dict[str, dict[str, Any]] = {
        "engine": {"engine_answers": False},
        "daemon": {"daemon": DaemonFacts(300.0)},
        "collector": {"collectors": CollectorFacts("no collector runs, although one is configured")},
    }
    return lambda p: p.stated.update(shown.get(process, {}))


def _well_disks(*paths: str) -> list[DiskFacts]:
    return [DiskFacts(path, 50, 100) for path in paths]


STARTED, QUEUED = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.QUEUED
PROCESSES = ("engine", "code-server", "run-workers", "daemon", "webserver", "collector", "catalogue-server")

CASES: Final = (
    _silent("a radar is silent", "radar-1"),
    _silent("a link is silent", "isl-2"),
    _silent("a telescope is silent", "optical-maui", allowed_s=36 * 3600.0),
    _silent("a radar and a link fall silent together", "radar-1", "isl-1", subjects=("isl-1", "radar-1")),
    _silent(
        "all radars and links are silent", "radar-1", "radar-2", "isl-1", "isl-2",
        allowed_s=40.0, subjects=("every source of isl, radar",),
    ),
    _silent("a radar falls silent while a telescope is silent already", "radar-2", before="optical-maui"),
    FaultCase(
        "a kind of source never reports", "sources_report", Side.SOURCES, ("optical",),
        _awaited, lambda p: p.silent.clear(), 60.0, lambda p: p.silent.add("optical-maui"), lives=True,
    ),
    FaultCase(
        "a sensor reports that the list lacks", "sensors_are_listed", Side.SOURCES, ("radar-99",),
        lambda p: p.strangers.add("radar-99"), _list_it, lives=True,
    ),
    FaultCase(
        "a kind holds the watermark back", "watermark_advances", Side.SOURCES, ("isl",),
        lambda p: setattr(p, "held_kind", "isl"), lambda p: setattr(p, "held_kind", ""), 40.0, lives=True,
    ),
    _stands("the fusion stands still, while all sources report", FUSED_TRACKS.name),
    _stands("records are not decoded, while all sources report", OBSERVATIONS.name),
    _stands("tracks stand still", TRACKS.name),
    _stands("assessments stand still", CONJUNCTION_ASSESSMENTS.name),
    FaultCase(
        "a red table stops its consumers", "tables_are_sound", Side.PLATFORM, ("observations sequence 2",),
        _red_on_the_way, _mended_on_the_way, lives=True,
    ),
    *(_backlog(zone) for zone in ("radar", "optical", "isl", "elements", "messages", "telemetry")),
    _orphan("a writer of ours was killed before its file was whole", ".a.1.tmp", Side.PLATFORM),
    _orphan("a writer of ours was killed between data and metadata", "a", Side.PLATFORM),
    _orphan("a clean-up of ours was killed between data and metadata", "a.meta.json", Side.PLATFORM),
    FaultCase(
        "somebody makes a directory that is no zone", "no_orphans_wait", Side.SOURCES, ("rador (sources)",),
        _unknown_zone, _remove_zone,
    ),
    FaultCase(
        "somebody makes a directory among the segments", "no_orphans_wait", Side.SOURCES, ("radar (sources)",),
        _directory, lambda p: (p.landing / "radar" / "pending" / "d").rmdir(), 60.0,
    ),
    _growth("a source changes its format", "bad_json"),
    _growth("a link damages frames", "bad_crc"),
    _red("a row is stored twice", RAW_RECORDS),
    _red("a row of a segment is missing", RAW_RECORDS, "balance"),
    _red("a commit is lost", OBSERVATIONS, "chain"),
    _red("a value breaks the contract", TRACKS, "contract"),
    _red("a second table is red", FUSED_TRACKS, before=lambda p: p.find(TELEMETRY_FRAMES)),
    FaultCase(
        "the platform computes a row that is no number", "rows_keep_contract", Side.PLATFORM, (TRACKS.name,),
        _refuse_row, lambda p: setattr(p, "t_s", p.t_s + 3600.0),
    ),
    FaultCase(
        "a second commit of a red table is bad", "tables_are_sound", Side.PLATFORM, ("raw_records sequence 2",),
        lambda p: p.find(RAW_RECORDS), lambda p: p.repair(RAW_RECORDS, kept=1), before=lambda p: p.find(RAW_RECORDS),
    ),
    FaultCase(
        "a file of a table is gone", "tables_are_sound", Side.PLATFORM, ("growing_letters",),
        _hide_letters, _show_letters, before=lambda p: commit(p.lake, DEAD_LETTERS, [{"received_time_ns": after(0)}]),
    ),
    FaultCase(
        "element sets no longer come", "catalogue_is_fresh", Side.SOURCES, ("element sets",),
        _nothing, lambda p: p.receive_sets(p.t_s), 3 * DAY_S, _received_once,
    ),
    FaultCase(
        "no full screening succeeds", "screening_is_fresh", Side.PLATFORM, ("full screening",),
        _nothing, lambda p: p.screen(p.t_s), DAY_S / 2, _screened_and_received,
    ),
    FaultCase(
        "another organisation states a conjunction that we do not have", "received_cdms_are_alerts", Side.PLATFORM,
        (CDM_SUBJECT,), lambda p: _report(p, 1.2e-3), lambda p: _report(p, 1e-9),
    ),
    FaultCase(
        "our alert is lower than a received message", "received_cdms_are_alerts", Side.PLATFORM, (CDM_SUBJECT,),
        lambda p: _report(p, 1.2e-3), lambda p: p.alert("one"), before=_assessed_green,
    ),
    FaultCase(
        "an edit is not signed by its site", "edits_are_genuine", Side.SOURCES, ("a.edits record 0",),
        lambda p: commit(p.lake, CATALOG_EDITS, [{**_FORGED, "received_time_ns": after(p.t_s)}]),
        lambda p: setattr(p, "t_s", p.t_s + DAY_S),
    ),
    FaultCase(
        "element sets are never screened", "screening_is_fresh", Side.PLATFORM, ("full screening",),
        lambda p: p.receive_sets(0.0), lambda p: p.screen(p.t_s), 3600.0,
    ),
    _deliveries("the subscriber is away", Side.SUBSCRIBER, "SubscriberUnavailable: it answered 503"),
    _deliveries("the subscriber refuses the password", Side.SUBSCRIBER, "SubscriberUnavailable: it answered 401"),
    _deliveries("no run delivers", Side.PLATFORM),
    _deliveries("runs that deliver are killed", Side.PLATFORM, "its worker was killed"),
    FaultCase(
        "the subscriber refuses a red alert", "subscriber_is_level", Side.SUBSCRIBER, ("alert one",), _refused, _taken
    ),
    FaultCase(
        "the subscriber refuses to withdraw an alert", "subscriber_is_level", Side.SUBSCRIBER, ("alert one",),
        _withdrawal_refused, _taken, before=_holds_one,
    ),
    _disagrees("the subscriber loses an alert", "DELETE FROM alerts"),
    _disagrees("an alert at the subscriber is altered", "UPDATE alerts SET body = '{}'"),
    _stated(
        "the engine hangs", "engine_answers", Side.PLATFORM, ("engine",), "engine_answers", False, True
    ),
    _stated(
        "Dagster's daemon hangs", "daemon_beats", Side.PLATFORM, ("daemon",),
        "daemon", DaemonFacts(80.0), DaemonFacts(9.0),
    ),
    _stated(
        "Dagster's daemon never ran", "daemon_beats", Side.PLATFORM, ("daemon",),
        "daemon", DaemonFacts(None), DaemonFacts(9.0),
    ),
    _stated(
        "Dagster's records cannot be read", "daemon_beats", Side.PLATFORM, ("records",),
        "daemon", DaemonFacts(None, "no such table"), DaemonFacts(9.0),
    ),
    *map(_process, PROCESSES),
    _stated(
        "a process ends again and again", "processes_run", Side.PLATFORM, ("daemon",),
        "processes", [ProcessFacts("daemon", True, 6, is_exhausted=True)], [ProcessFacts("daemon", True, 6)],
    ),
    _run("a run of the alerts pool hangs", OBSERVATIONS_TO_ALERTS, STARTED, 1800.0),
    _run("a run of the catalogue's pool hangs", CATALOG_TO_ALERTS, STARTED, 1800.0),
    _run("a run of the maintenance pool hangs", PLATFORM_METRICS, STARTED, 1800.0),
    FaultCase(
        "a channel to people takes no message", "people_are_notified", Side.SUBSCRIBER, ("desk",),
        lambda p: channel_state.store(p.home, "desk", ChannelState(pending=_MESSAGE, pending_since_s=p.began_s)),
        lambda p: channel_state.store(p.home, "desk", ChannelState()), 121.0, lambda p: _write_rules(p, _ONE_CHANNEL),
    ),
    FaultCase(
        "rules of notification cannot be used", "people_are_notified", Side.SUBSCRIBER, ("rules",),
        lambda p: _write_rules(p, "nonsense"), lambda p: _write_rules(p, _ONE_CHANNEL),
    ),
    _run("a run that delivers hangs", ALERTS_TO_SUBSCRIBER, STARTED, 1800.0),
    _run("a full pool starves what waits in it", ORBIT_DETERMINATION, QUEUED, 600.0),
    _failing("every screening fails", CATALOG_TO_ALERTS, "SparkException: Could not execute"),
    _failing("the engine answers no run", OBSERVATIONS_TO_ALERTS, "EngineUnavailable: no answer"),
    _failing("workers cannot be started", OBSERVATIONS_TO_ALERTS, ""),
    _stated(
        "no worker starts, and runs wait for that", "runs_succeed", Side.PLATFORM, ("launches",),
        "nothing_starts", "OSError: no process can be started", "",
    ),
    _failing("a second job fails too", ORBIT_DETERMINATION, "ValueError: defect",
             before=lambda p: [failed_run(p.instance, CATALOG_TO_ALERTS, "OSError: full") for _ in range(3)]),
    _stated(
        "the disk of the lake fills", "disk_has_space", Side.MACHINE, ("/lake",),
        "disks", [DiskFacts("/lake", 4, 100)], _well_disks("/lake"),
    ),
    _stated(
        "the disk of the landing zones fills", "disk_has_space", Side.MACHINE, ("/landing",),
        "disks", [*_well_disks("/lake"), DiskFacts("/landing", 0, 100)], _well_disks("/lake", "/landing"),
    ),
    _stated(
        "two disks fill together", "disk_has_space", Side.MACHINE, ("/home", "/lake"),
        "disks", [DiskFacts("/home", 1, 100), DiskFacts("/lake", 1, 100)], _well_disks("/home", "/lake"),
    ),
    _stated(
        "no backup was made last night", "backups_are_made", Side.PLATFORM, ("backups",),
        "backup", BackupFacts("/mnt/backups", 93_601.0, 93_600.0), BackupFacts("/mnt/backups", 60.0, 93_600.0),
    ),
    _stated(
        "the disk of the backups is not there", "backups_are_made", Side.PLATFORM, ("backups",),
        "backup", BackupFacts("/mnt/backups", None, 93_600.0), BackupFacts("/mnt/backups", 60.0, 93_600.0),
    ),
    _stated(
        "a server of the station state is lost", "replicas_follow", Side.PLATFORM, ("station state",),
        "replica_problems", ["1 of 3 servers do not answer"], [],
    ),
    _collector("the collector does not answer", "collector", lambda p: p.publish("127.0.0.1:1")),
    _collector("the collector refuses the token", "collector", lambda p: p.answer(401)),
    _collector("another program has the collector's port", "collector", lambda p: setattr(p.report, "content", {})),
    _collector(
        "no collector runs, although one is configured", "collector",
        lambda p: (p.home / "collector.json").unlink(),
        _configured,
    ),
    _collector(
        "a source of the collector fails", "source x-band",
        lambda p: p.answer(problems=["source x-band: the port is in use"]),
    ),
    _collector(
        "a sealer fails", "sealer of isl (high)",
        lambda p: p.answer(problems=["sealer of isl (high): failed 9 times in a row"]),
    ),
    FaultCase(
        "a second source of the collector fails", "collectors_answer", Side.COLLECTORS, ("source sband",),
        lambda p: p.answer(problems=["source x-band: failed", "source sband: failed"]),
        lambda p: p.answer(problems=["source x-band: failed"]),
        before=lambda p: p.answer(problems=["source x-band: failed"]),
    ),
    FaultCase(
        "the collector is away, so no source reports", "collectors_answer", Side.COLLECTORS, ("collector",),
        _cut_off,
        _connected, before=lambda p: p.answer(), lives=True,
    ),
)  # fmt: skip
"""Every fault, in the order of the vitals."""
