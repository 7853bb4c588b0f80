"""Replay of the tables whose bodies need no engine but for the commit, which delta-rs makes here instead."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.definitions import default_resources
from sda_platform.delivery.reconciliation import counts_of
from sda_platform.delivery.subscriber import EntriesMark
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import restoration
from sda_platform.lake.bypasses import bypasses
from sda_platform.lake.errors import NotReplayable, SegmentLost
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.audits.audits import reconciliation, replay_sample
from sda_platform.observability.audits.outcome import AuditScope
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.leases import LeaseResource
from sda_platform.orchestration.reconciling import ReconciledTable, reconcile
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.recovery.examination import Depth, examine
from sda_platform.replay.comparison import Comparison
from sda_platform.replay.digest import digest
from sda_platform.replay.history import EVERY_COMMIT, Span, history
from sda_platform.replay.recorded_zones import RecordedZones
from sda_platform.settings import Settings
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.delta_tables import commit, genesis_window, no_engine, with_delta_rs
from sda_platform_tests.support.sampling import number
from sda_platform_tests.support.segments import after, land, radar_segment

TABLES = (RAW_RECORDS, ALERT_DELIVERIES)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where three segments (one torn) and two batches of alerts went their way."""
    monkeypatch.setattr(Lake, "frame", lambda _self, _table, rows, **_: rows)
    monkeypatch.setattr(Lake, "engine", staticmethod(with_delta_rs))
    zone = LandingZone(str(tmp_path / "landing"), "radar")
    resources = resources_of(tmp_path)
    for n in (1, 2):
        land(zone, f"pass-{n}", radar_segment(10, seconds=n), seconds=n)
        land(zone, f"torn-{n}", b"torn", sha256="0" * 64)
        lake = _At(tmp_path, after(10 * n))
        declared(RAW_RECORDS).body(lake=lake, landing=resources["landing"], context=lake)
        ids = [("a", n - 1, "insert"), (f"only {n}", 0, "insert")]
        commit(lake.open(), CONJUNCTION_ALERTS, [{"event_id": i, "sequence": s, "op": op} for i, s, op in ids])
        declared(ALERT_DELIVERIES).body(lake=lake, subscriber=resources["subscriber"])
    return tmp_path


@dataclass(frozen=True)
class _At:
    """The live lake of ``home`` at a mission time, as a resource and as the context that no one reads."""

    home: Path
    now_ns: int
    fencing_token: int | None = None

    def open(self) -> Lake:
        lake = Lake(str(self.home / "lake"), MissionClock(self.now_ns, 0, 0.0), no_engine, "run")
        lake.requires_lineage = False
        lake.reads_unverified = True
        lake.fencing_token = self.fencing_token
        return lake

    def log_event(self, event: Any) -> None: ...


def resources_of(home: Path) -> dict[str, Any]:
    return default_resources(Settings(home=home, spark_remote="local"))


def replayed(home: Path, shadow: str, span: Span = EVERY_COMMIT) -> list[Comparison]:
    lake = _At(home, after(86_400)).open()
    return replay_lake(lake, str(home / shadow), resources_of(home), tables=TABLES, span=span)


def test_records_and_deliveries_are_made_again_from_archive_and_journal__F_replay(home: Path) -> None:
    """On another day; the subscriber hears nothing of it, and the archive stays as it is."""
    subscriber = resources_of(home)["subscriber"]
    before = (subscriber.held(), sorted(home.glob("landing/**/*")))
    found = replayed(home, "shadow")
    assert [(each.table, each.rows, each.differences) for each in found] == [
        ("raw_records", 22, ()), ("alert_deliveries", 4, ()),
    ]  # fmt: skip
    assert (subscriber.held(), sorted(home.glob("landing/**/*"))) == before


def test_a_replay_holds_what_it_reads__DL4_I8(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leases, held = VersionLeases(str(home / "lake")), list[dict[str, Sequence[int]]]()
    taken = RecordedZones.take

    def take(self: RecordedZones, *given: Any, **named: Any) -> Any:
        held.extend(dict(lease.versions) for lease in leases.active())
        return taken(self, *given, **named)

    monkeypatch.setattr(RecordedZones, "take", take)
    assert not any(each.differences for each in replayed(home, "shadow"))
    assert held == [{"raw_records": [0]}] * 2
    assert leases.active() == []


def test_two_replays_of_one_history_have_one_digest__F_replay(home: Path) -> None:
    digests = [[each.digest for each in replayed(home, shadow)] for shadow in ("one", "two")]
    assert digests[0] == digests[1] and len(set(digests[0])) == 2


def test_a_range_begins_with_what_was_delivered_before_it(home: Path) -> None:
    found = replayed(home, "shadow", Span(from_sequence=2))
    assert [(each.first_sequence, each.rows, each.differences) for each in found] == [(2, 11, ()), (2, 2, ())]


def test_a_lost_record_and_an_altered_delivery_are_named_by_sequence_key_and_column(home: Path) -> None:
    lake = _At(home, 0).open()
    DeltaTable(lake.log(RAW_RECORDS).uri).delete("record_number = 5 and commit_sequence = 2")
    deliveries = DeltaTable(lake.log(ALERT_DELIVERIES).uri)
    deliveries.update(updates={"outcome": "'stale'"}, predicate="alert_id = 'only 1'")
    (records,), (sent,) = (each.differences for each in replayed(home, "shadow"))
    assert (
        records.startswith("sequence 2: 1 rows are missing, such as segment_sha256=") and "record_number=5" in records
    )
    assert sent.startswith("sequence 1: 1 rows differ in outcome, such as subscriber='sqlite:subscriber.sqlite'")
    assert sent.endswith("stored 'stale', replayed 'applied'")


def test_a_segment_that_the_archive_lost_or_altered_is_named__64(home: Path) -> None:
    archived = max((home / "landing/radar/archive").iterdir(), key=lambda path: path.stat().st_size)
    archived.write_bytes(archived.read_bytes()[:-1] + b"x")
    with pytest.raises(SegmentLost, match="which a commit consumed, has other bytes"):
        replayed(home, "shadow")


def test_what_a_platform_with_other_inputs_wrote_is_refused_by_name_and_what_follows_is_replayed(home: Path) -> None:
    """As after an upgrade that has a table consume another one too."""
    shutil.rmtree(home / "lake" / ALERT_DELIVERIES.name)
    commit(
        _At(home, after(25)).open(),
        ALERT_DELIVERIES,
        [],
        windows=[genesis_window(RAW_RECORDS)],
        counts=counts_of(EntriesMark()),
    )
    declared(ALERT_DELIVERIES).body(lake=_At(home, after(30)), subscriber=resources_of(home)["subscriber"])
    reason = (
        "alert_deliveries: sequence 1 cannot be made again: another version of the platform made it without "
        "conjunction_alerts, and also from raw_records; replay from 2"
    )
    (alerts, deliveries) = replayed(home, "shadow")
    assert (alerts.is_identical, deliveries.is_identical, deliveries.not_replayed) == (True, False, reason)
    with pytest.raises(NotReplayable) as refused:
        replay_lake(_At(home, 0).open(), str(home / "alone"), resources_of(home), tables=[ALERT_DELIVERIES])
    assert str(refused.value) == reason
    (_, deliveries) = replayed(home, "later", Span(from_sequence=2))
    assert (deliveries.first_sequence, deliveries.rows) == (2, 4)


def test_what_was_written_under_a_lease_is_made_again_with_its_token(home: Path) -> None:
    leased = _At(home, after(40), fencing_token=7)
    commit(leased.open(), CONJUNCTION_ALERTS, [{"event_id": "b", "sequence": 0, "op": "insert"}])
    declared(ALERT_DELIVERIES).body(lake=leased, subscriber=resources_of(home)["subscriber"])
    newest = leased.open().log(ALERT_DELIVERIES).head().commit
    assert newest is not None and newest.manifest.fencing_token == 7
    assert [each.differences for each in replayed(home, "shadow")] == [(), ()]


@pytest.mark.parametrize("table", [PASS_SCHEDULE, ORBITAL_CATALOG], ids=lambda table: table.name)
def test_a_replay_of_what_is_written_under_a_lease_takes_none(home: Path, table: Table) -> None:
    lake = _At(home, after(40)).open()
    commit(lake, table, [])
    resources = {"leases": LeaseResource(endpoints=["http://127.0.0.1:9"])}
    made, stand_ins = history(lake.log(table), EVERY_COMMIT), declared(table).stand_ins
    assert made is not None and stand_ins is not None
    with stand_ins(resources, lake, made, home)["leases"].guarded(lake, table.name) as store:
        assert store.fencing_token is None


def test_a_shadow_needs_a_place_of_its_own(home: Path) -> None:
    with pytest.raises(NotReplayable, match="exists already"):
        replayed(home, "lake")


def levelled(home: Path, shadow: str, *, apply: bool) -> list[ReconciledTable]:
    lake = _At(home, after(86_400)).open()
    return reconcile(lake, str(home / shadow), resources_of(home), tables=TABLES, apply=apply)


def test_reconcile_restores_rows_that_were_lost_doubled_altered_or_stray_spec_80(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_delta(rows: pa.Table, uri: str, where: str) -> None:
        write_deltalake(uri, rows, mode="overwrite", predicate=where)

    monkeypatch.setattr(restoration, "overwrite_with_spark", with_delta)
    logs = [_At(home, 0).open().log(table) for table in TABLES]
    sound = [(log.version(), digest(log.table, log.rows()), log.head().sequence) for log in logs]
    assert all(each.is_level for each in levelled(home, "sound", apply=True))
    assert [log.version() for log in logs] == [version for version, _, _ in sound], "nothing was written"
    records, deliveries = (DeltaTable(log.uri) for log in logs)
    rows = logs[0].rows_of((0, 1))
    records.delete("record_number = 5 and commit_sequence = 2")
    write_deltalake(logs[0].uri, rows.slice(3, 1), mode="append")
    stray = rows.slice(4, 1).set_column(0, "commit_sequence", pa.array([99], pa.int64()))
    write_deltalake(logs[0].uri, stray, mode="append")
    deliveries.update(updates={"outcome": "'stale'"}, predicate="alert_id = 'only 1'")
    dry = levelled(home, "dry", apply=False)
    assert [(each.differing, each.has_strays, each.is_level) for each in dry] == [
        ((1, 2), True, False),
        ((1,), False, False),
    ]
    applied = levelled(home, "applied", apply=True)
    assert [(each.is_restored, each.is_level, each.refused) for each in applied] == [(True, True, None)] * 2
    assert [(digest(log.table, log.rows()), log.head().sequence) for log in logs] == [each[1:] for each in sound]
    assert not any(each.differences for each in levelled(home, "again", apply=False))


@pytest.fixture
def without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost data files are restored by delta-rs."""
    named = CommitProperties(custom_metadata={"userMetadata": f"{restoration.RESTORED}of lost data files"})

    def append(rows: pa.Table, uri: str) -> None:
        write_deltalake(uri, rows, mode="append", commit_properties=named)

    monkeypatch.setattr(restoration, "append_with_spark", append)


def _lose(home: Path, sequence: int, how: str) -> Path:
    """Damage the data file of this commit of `raw_records`."""
    log = _At(home, 0).open().log(RAW_RECORDS)
    bounds = log.file_bounds().to_pylist()
    (name,) = (str(each["path"]) for each in bounds if each["min.commit_sequence"] == sequence)
    path = Path(log.uri) / name
    data = path.read_bytes()
    path.unlink()
    if how == "torn":
        path.write_bytes(data[: len(data) // 2])
    if how == "altered":
        path.write_bytes(data[:200] + bytes(60) + data[260:])
    return path


@pytest.mark.parametrize("how", ["missing", "torn", "altered"])
@pytest.mark.usefixtures("without_engine")
def test_reconcile_makes_the_rows_of_one_lost_data_file_again(home: Path, how: str) -> None:
    log = _At(home, 0).open().log(RAW_RECORDS)
    sound = digest(RAW_RECORDS, log.rows())
    path = _lose(home, 2, how)
    others = {each for each in log.live_files()["path"].to_pylist() if each != path.name}
    (dry, _) = levelled(home, "dry", apply=False)
    assert (dry.differing, dry.is_level, dry.refused) == ((2,), False, None)
    assert path.name in dry.differences[0] and "11 rows of commits 2 to 2 are lost" in dry.differences[-1]
    (applied, deliveries) = levelled(home, "applied", apply=True)
    assert (applied.is_restored, applied.first_sequence, applied.last_sequence) == (True, 2, 2), "only its commit"
    assert deliveries.differences == ()
    assert digest(RAW_RECORDS, log.rows()) == sound
    assert others < set(log.live_files()["path"].to_pylist()), "the other files are as they were"
    assert examine(log, Depth.COLUMNS).is_sound
    assert not any("no commit of the platform" in each for each in bypasses(log, 0))
    assert not any(each.differences for each in levelled(home, "again", apply=False))


@pytest.mark.usefixtures("without_engine")
def test_a_restoration_of_a_file_that_a_crash_interrupts_at_any_step_is_finished_by_the_next(home: Path) -> None:
    original = home.with_name("original")
    shutil.copytree(home, original)
    sound = digest(RAW_RECORDS, _At(home, 0).open().log(RAW_RECORDS).rows())
    attempts = 0
    for attempt in crashes(every=number(1, 3)):
        attempts += 1
        shutil.rmtree(home)
        shutil.copytree(original, home)
        _lose(home, 1, "torn")
        with attempt:
            levelled(home, "first", apply=True)
        levelled(home, "second", apply=True)
        log = _At(home, 0).open().log(RAW_RECORDS)
        assert digest(RAW_RECORDS, log.rows()) == sound
        assert examine(log, Depth.COLUMNS).is_sound
    assert attempts > number(9, 3)


@pytest.mark.usefixtures("without_engine")
def test_a_lost_file_whose_segments_are_not_archived_is_not_restored(home: Path) -> None:
    path = _lose(home, 2, "missing")
    shutil.rmtree(home / "landing/radar/archive")
    with pytest.raises(SegmentLost):
        levelled(home, "shadow", apply=True)
    assert not path.exists()
    assert path.name in _At(home, 0).open().log(RAW_RECORDS).live_files()["path"].to_pylist(), "it is damaged still"


def test_reconcile_refuses_what_no_stored_row_explains(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoration, "overwrite_with_spark", lambda *_: pytest.fail("it must not write"))
    forged = Comparison("raw_records", 1, 2, 0, "", ("sequence 1: counts: recorded {}, replayed {'valid': 10}",))
    monkeypatch.setattr("sda_platform.orchestration.reconciling.compare", lambda *_: forged)
    found = levelled(home, "shadow", apply=True)
    assert {each.refused for each in found} == {
        "the manifests differ, not the rows: was a setting, the code or an input changed?"
    }
    assert not any(each.is_level for each in found)


def test_the_audits_that_replay_pass_on_what_is_sound_and_offer_the_repair(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sda_platform.observability.audits.audits.TABLES", TABLES)
    scope = AuditScope(Settings(home=home), _At(home, after(60)).open(), resources_of(home), after(60))
    sampled, compared = replay_sample(scope), reconciliation(scope)
    assert (sampled.problems, sampled.facts) == ((), {"commits_replayed": 2})
    assert (compared.problems, compared.facts) == ((), {"commits_compared": 4})
    deliveries = DeltaTable(scope.lake.log(ALERT_DELIVERIES).uri)
    deliveries.update(updates={"outcome": "'stale'"}, predicate="alert_id = 'only 1'")
    (problem,) = reconciliation(scope).problems
    assert problem.startswith("alert_deliveries: sequence 1: 1 rows differ in outcome")
    assert problem.endswith("; `sda lake reconcile alert_deliveries --apply` restores them")
    assert not list(home.glob("lake.audit-*")), "what was made again is removed"
