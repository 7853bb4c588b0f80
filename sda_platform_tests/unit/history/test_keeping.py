"""What is kept: leases and tags keep versions readable; files go in two phases, and each phase may be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from deltalake import DeltaTable
from upath import UPath

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.history.errors import UnknownMoment, VersionExpired
from sda_platform.history.expiry import awaiting, expire_files
from sda_platform.history.explanation import explain_alert
from sda_platform.history.lifecycle import LifecyclePolicy, SmallFiles, select, wait_for_alerts
from sda_platform.history.log_cleanup import clean_log
from sda_platform.history.maintenance import maintain_all
from sda_platform.history.moments import vector_of
from sda_platform.history.pinned_view import PinnedView
from sda_platform.history.table_diff import table_diff
from sda_platform.history.tags import Tags
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.lake.version_leases import LEASE_S, VersionLease, VersionLeases
from sda_platform_tests.support.crashes import crash_at
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.pinned_reads import is_unchanged
from sda_platform_tests.unit.history.lakes import EVENT, TABLES, add, decide, elements

HOUR_MS = 3_600_000
SCHEDULES = range(8)
NOTHING_KEPT = Retention(0, 0, 0)
ALL = list(TABLES.values())
READER = """
import sys, threading
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.lake.manifest import TableSnapshot
with VersionLeases(sys.argv[1]).held([TableSnapshot("orbital_catalog", 0, 1)], "replay"):
    print("reads", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A catalogue that was replaced twice since a decision, in a directory of whose name delta-rs encodes a part."""
    lake = lake_at(tmp_path / "lake #1 é")
    add(lake, ELEMENT_SETS, elements(7, 100), elements(8, 100, record=1))
    add(lake, ORBITAL_CATALOG, elements(7, 100), elements(8, 100, record=1))
    decide(lake)
    for epoch in (200, 300):
        add(lake, ELEMENT_SETS, elements(7, epoch, str(epoch)))
        add(lake, ORBITAL_CATALOG, elements(7, epoch, str(epoch)))
    return lake


def data_files(log: TableLog) -> set[str]:
    return {path.name for path in Path(log.uri).glob("*.parquet")}


def no_leases() -> list[int]:
    return []


def pinned(version: int) -> list[TableSnapshot]:
    return [TableSnapshot(ORBITAL_CATALOG.name, version, version + 1)]


def rows_then(lake: Lake, as_of: str = EVENT) -> list[tuple[int, int]]:
    view = PinnedView(lake, TABLES, vector_of(lake, TABLES, as_of))
    found = view.rows("SELECT norad_id, epoch_time_ns FROM orbital_catalog ORDER BY norad_id")
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


# Leases.


def test_a_lease_ends_by_itself_and_a_renewed_one_does_not__MV15(tmp_path: Path) -> None:
    now = [1_000_000]
    leases = VersionLeases(str(tmp_path), lambda: now[0])
    dead, alive = leases.take(pinned(3), "killed", ttl_s=60), leases.take(pinned(5), "query", ttl_s=60)
    assert leases.versions_of(ORBITAL_CATALOG.name) == [3, 5]
    now[0] += 50_000
    leases.renew(alive, ttl_s=60)
    now[0] += 20_000
    assert [lease.lease_id for lease in leases.active()] == [alive.lease_id]
    assert (leases.sweep(), leases.versions_of(ORBITAL_CATALOG.name)) == (1, [5])
    leases.release(alive)
    leases.release(dead)
    assert leases.active() == []


def test_a_leased_version_keeps_its_files_and_its_log__DL4_I8_DL6_I9(lake: Lake) -> None:
    log, leases = lake.log(ORBITAL_CATALOG), VersionLeases(lake.uri)
    held = partial(leases.versions_of, ORBITAL_CATALOG.name)
    with leases.held(pinned(0), "assessment"):
        for now_ms in (0, 25 * HOUR_MS):
            expire_files(log, held, now_ms=now_ms, retention=NOTHING_KEPT)
        assert rows_then(lake) == [(7, 100), (8, 100)]
        assert len(data_files(log)) == 2, "the version between is gone"
        DeltaTable(log.uri).create_checkpoint()
        verdict = lake.verdicts.read(log)
        assert clean_log(log, [], verdict, now_ms=10**14, retention=RETENTION, held=held()) == 0
    for now_ms in (0, 25 * HOUR_MS):
        expire_files(log, held, now_ms=now_ms, retention=NOTHING_KEPT)
    with pytest.raises(VersionExpired):
        rows_then(lake)


def test_a_pinned_read_is_unchanged_in_each_drawn_order_of_maintenance__DL4_I8_DL6_I9(tmp_path: Path) -> None:
    """`benchmarks/history.py --schedules 1000` runs all; without its lease, such a reader loses its version."""
    assert [seed for seed in SCHEDULES if not is_unchanged(tmp_path / f"held-{seed}", seed)] == []
    with pytest.raises(VersionExpired):
        for seed in SCHEDULES:
            is_unchanged(tmp_path / f"free-{seed}", seed, is_leased=False)


def test_the_lease_of_a_killed_reader_keeps_its_files_until_it_ends__DL4_I8(lake: Lake) -> None:
    """The holder is a process of its own, and is killed with SIGKILL while it reads."""
    log, now = lake.log(ORBITAL_CATALOG), [time.time_ns() // 1_000_000]
    leases = VersionLeases(lake.uri, lambda: now[0])
    held = partial(leases.versions_of, ORBITAL_CATALOG.name)
    with subprocess.Popen([sys.executable, "-c", READER, lake.uri], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reads\n"
        reader.kill()
    assert reader.returncode == -signal.SIGKILL
    for _ in range(2):  # the second pass deletes what the first has listed
        expire_files(log, held, now_ms=now[0], retention=NOTHING_KEPT, grace_h=0)
        now[0] += round(0.4 * LEASE_S * 1000)
    assert rows_then(lake) == [(7, 100), (8, 100)]
    now[0] += round(LEASE_S * 1000)
    assert leases.sweep() == 1
    expire_files(log, held, now_ms=now[0], retention=NOTHING_KEPT, grace_h=0)
    with pytest.raises(VersionExpired):
        rows_then(lake)


def test_a_version_that_is_leased_during_the_search_for_files_keeps_its_files__DL4_I8(lake: Lake) -> None:
    log, answers = lake.log(ORBITAL_CATALOG), [[], [0], [], []]
    expire_files(log, no_leases, now_ms=0, retention=NOTHING_KEPT)
    before = data_files(log)
    late = expire_files(log, lambda: answers.pop(0), now_ms=24 * HOUR_MS, retention=NOTHING_KEPT)
    assert (late.deleted, data_files(log), len(awaiting(log))) == ([], before, 2)
    assert len(expire_files(log, lambda: answers.pop(0), now_ms=25 * HOUR_MS, retention=NOTHING_KEPT).deleted) == 2


def test_while_a_lease_cannot_be_read_no_file_is_removed__DL4_I8(lake: Lake) -> None:
    before, damaged = data_files(lake.log(ORBITAL_CATALOG)), Path(lake.uri) / "_leases" / "1.json"
    damaged.parent.mkdir()
    damaged.write_text('{"lease_id": "1", "vers')
    for hours in (0, 24):
        with pytest.raises(InvariantError, match=r"_leases/1\.json: this lease is damaged"):
            maintain_all(
                lake, (ORBITAL_CATALOG,), now_ms=hours * HOUR_MS, others=ALL, retention=NOTHING_KEPT, is_manual=True
            )
    assert data_files(lake.log(ORBITAL_CATALOG)) == before


def test_a_holder_that_cannot_renew_once_renews_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leases, renewed, attempts = VersionLeases(str(tmp_path)), Event(), iter([OSError("the disk is full")])

    def renew(_lease: VersionLease, _ttl_s: float) -> None:
        for error in attempts:
            raise error
        renewed.set()

    monkeypatch.setattr(leases, "renew", renew)
    with leases.held(pinned(0), "query", ttl_s=0.01):
        assert renewed.wait(30)


def test_a_query_of_an_old_version_holds_a_lease_while_it_runs__DL4_I8(lake: Lake) -> None:
    leases = VersionLeases(lake.uri)
    batches = PinnedView(lake, TABLES, vector_of(lake, TABLES, EVENT)).batches("FROM orbital_catalog")
    next(batches)
    assert leases.versions_of(ORBITAL_CATALOG.name) == [0]
    list(batches)
    assert leases.versions_of(ORBITAL_CATALOG.name) == []


# Expiry.


def test_files_are_listed_first_and_deleted_a_day_later__DL6_F5(lake: Lake) -> None:
    log, before = lake.log(ORBITAL_CATALOG), data_files(lake.log(ORBITAL_CATALOG))
    first = expire_files(log, no_leases, now_ms=0, retention=NOTHING_KEPT)
    assert (len(first.listed), first.deleted, data_files(log)) == (2, [], before)
    assert dict(awaiting(log)) == dict.fromkeys(first.listed, 0)
    early = expire_files(log, no_leases, now_ms=23 * HOUR_MS, retention=NOTHING_KEPT)
    assert (early.listed, early.deleted) == ([], [])
    done = expire_files(log, no_leases, now_ms=24 * HOUR_MS, retention=NOTHING_KEPT)
    assert (sorted(done.deleted), done.freed_bytes > 0, dict(awaiting(log))) == (sorted(first.listed), True, {})
    assert rows_then(lake, "now") == [(7, 300), (8, 100)]
    assert not expire_files(log, no_leases, now_ms=48 * HOUR_MS, retention=NOTHING_KEPT)
    assert data_files(lake.log(ELEMENT_SETS)) == {
        Path(u).name for u in DeltaTable(lake.log(ELEMENT_SETS).uri).file_uris()
    }


@pytest.mark.parametrize("point", ["expiry.journalled", "expiry.deleted"])
@pytest.mark.parametrize("killed_in", [0, 1])
def test_a_killed_expiry_is_repeated_and_deletes_the_same_files__DL6_F10_A6(
    lake: Lake, point: str, killed_in: int
) -> None:
    log = lake.log(ORBITAL_CATALOG)
    for number, now_ms in enumerate((0, 24 * HOUR_MS, 48 * HOUR_MS)):
        if number == killed_in:
            with crash_at(f"{point}:orbital_catalog"):
                expire_files(log, no_leases, now_ms=now_ms, retention=NOTHING_KEPT)
        expire_files(log, no_leases, now_ms=now_ms, retention=NOTHING_KEPT)
    assert data_files(log) == {Path(uri).name for uri in DeltaTable(log.uri).file_uris()}
    assert (dict(awaiting(log)), rows_then(lake, "now")) == ({}, [(7, 300), (8, 100)])


def test_of_100_files_those_go_that_no_version_has_and_that_are_old__DL6_F7_A4(tmp_path: Path) -> None:
    """A young file may belong to a commit that is being made, however long its writer has been at it."""
    lake = lake_at(tmp_path)
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    log = lake.log(OBSERVATIONS)
    for number in range(99):
        file = Path(log.uri) / f"part-{number:05d}.parquet"
        file.write_bytes(b"x")
        age_h = RETENTION.data_files_h + (1 if number % 3 else -1)
        os.utime(file, (time.time() - age_h * 3600,) * 2)
    for now_ms in (0, 24 * HOUR_MS):
        expire_files(log, no_leases, now_ms=now_ms, retention=RETENTION)
    left = {int(name[5:10]) for name in data_files(log) if len(name) == len("part-00000.parquet")}
    assert left == set(range(0, 99, 3))
    assert log.row_count() == 1


# Tags.


def test_a_tag_is_complete_when_everything_old_is_gone__DL6_I12(lake: Lake) -> None:
    tags = Tags(lake.uri)
    tags.create(lake, TABLES, vector_of(lake, TABLES, EVENT), "review-7")
    before = rows_then(lake)
    for now_ms in (0, 24 * HOUR_MS):
        expire_files(lake.log(ORBITAL_CATALOG), no_leases, now_ms=now_ms, retention=NOTHING_KEPT)
    for table in (ORBITAL_CATALOG, ELEMENT_SETS):
        delta = DeltaTable(lake.log(table).uri)
        delta.create_checkpoint()
        for version in range(delta.version()):
            (Path(lake.log(table).uri) / "_delta_log" / f"{version:020d}.json").unlink()
    assert rows_then(lake, "tag:review-7") == before
    view = PinnedView(lake, TABLES, vector_of(lake, TABLES, "tag:review-7"))
    assert view.rows("SELECT count(*) FROM element_sets").column(0).to_pylist() == [2]
    tags.verify("review-7")
    state, now = (vector_of(lake, TABLES, text) for text in ("tag:review-7", "now"))
    assert [(d.change, d.key) for d in table_diff(lake, ORBITAL_CATALOG, state, now)] == [("changed", {"norad_id": 7})]
    facts = {fact.what: fact for fact in explain_alert(lake, TABLES, EVENT[:8], "tag:review-7").facts}
    assert facts["element set of 7"].then is not None
    assert facts["element set of 7"].then["epoch_time_ns"] == 100


@pytest.fixture
def tagged(lake: Lake) -> Iterator[Tags]:
    tags = Tags(lake.uri)
    tags.create(lake, TABLES, vector_of(lake, TABLES, EVENT), "kept", until_ms=1_000, now_ms=0)
    yield tags


def test_a_damaged_copy_is_found__DL6_F6(tagged: Tags, lake: Lake) -> None:
    (copy,) = (Path(lake.uri) / "_tags" / "kept" / ORBITAL_CATALOG.name).glob("*.parquet")
    copy.write_bytes(copy.read_bytes()[:-1] + b"?")
    with pytest.raises(InvariantError, match=r"tag kept: .* is missing or damaged"):
        tagged.verify("kept")
    copy.unlink()
    with pytest.raises(InvariantError, match="tag kept"):
        tagged.verify("kept")


def test_a_tag_ends_when_it_said_and_its_name_is_not_used_twice(tagged: Tags, lake: Lake) -> None:
    vector = vector_of(lake, TABLES, EVENT)
    assert tagged.create(lake, TABLES, vector, "kept").created_ms == 0, "the same again changes nothing"
    with pytest.raises(UnknownMoment, match="tag kept exists"):
        tagged.create(lake, TABLES, vector_of(lake, TABLES), "kept")
    with pytest.raises(UnknownMoment, match="no name of a tag"):
        tagged.create(lake, TABLES, vector, "../kept")
    assert (tagged.sweep(now_ms=999), tagged.names()) == (0, ["kept"])
    assert (tagged.sweep(now_ms=1_000), tagged.names()) == (1, [])
    with pytest.raises(UnknownMoment, match="no tag is named 'kept'"):
        vector_of(lake, TABLES, "tag:kept")


def test_a_killed_tag_is_made_by_repeating_it_or_swept__DL6_F10(lake: Lake) -> None:
    tags, vector = Tags(lake.uri), vector_of(lake, TABLES, EVENT)
    with crash_at("tag.copied:kept"):
        tags.create(lake, TABLES, vector, "kept")
    assert (tags.names(), tags.sweep(now_ms=0)) == ([], 0)
    tags.create(lake, TABLES, vector, "kept")
    assert rows_then(lake, "tag:kept") == [(7, 100), (8, 100)]
    with crash_at("tag.unnamed:kept"):
        tags.remove("kept")
    assert (tags.names(), tags.sweep(now_ms=10**14), list(UPath(lake.uri, "_tags").iterdir())) == ([], 1, [])


def test_the_sweep_leaves_the_copies_of_a_tagging_that_goes_on_after_a_day(lake: Lake) -> None:
    tags, copies = Tags(lake.uri), Path(lake.uri) / "_tags" / "kept"
    copies.mkdir(parents=True)
    with VersionLeases(lake.uri).held(pinned(0), "tag kept"):
        assert tags.sweep(now_ms=10**14) == 0
    assert (tags.sweep(now_ms=10**14), copies.exists()) == (1, False)


def test_a_damaged_tag_is_named_and_the_others_are_verified(tagged: Tags, lake: Lake) -> None:
    tagged.create(lake, TABLES, vector_of(lake, TABLES, EVENT), "other")
    assert tagged.verify_all() == 2
    for name in ("kept", "other"):
        (Path(lake.uri) / "_tags" / f"{name}.json").write_text("{")
    with pytest.raises(InvariantError, match=r"kept\.json is damaged.*; .*other\.json is damaged"):
        tagged.verify_all()


# The lifecycle's policy.

POLICY = LifecyclePolicy(budget_bytes=100)
HOURS_MS = {hour: hour * HOUR_MS for hour in range(24)}


def test_tables_with_more_than_50_small_files_are_compacted_within_the_budget__DL6_F2_F3() -> None:
    found = [SmallFiles(RAW_RECORDS, 51, 90), SmallFiles(OBSERVATIONS, 50, 1), SmallFiles(ELEMENT_SETS, 60, 20)]
    assert [each.table for each in select(found, POLICY)] == [ELEMENT_SETS]
    assert [each.table for each in select([SmallFiles(RAW_RECORDS, 51, 1_000)], POLICY)] == [RAW_RECORDS]
    assert select(found[1:2], POLICY) == []


def test_compaction_pauses_by_day_and_files_are_removed_at_night__DL6_F4() -> None:
    assert [h for h, ms in HOURS_MS.items() if not POLICY.may_compact(ms)] == list(range(9, 17))
    assert [h for h, ms in HOURS_MS.items() if POLICY.may_expire(ms)] == list(range(6))


def test_maintenance_waits_for_alerts_and_not_for_ever__DL6_I18() -> None:
    clock, waiting = [0.0], [True, True, False]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    assert wait_for_alerts(lambda: waiting.pop(0), POLICY, sleep=sleep, monotonic=lambda: clock[0])
    assert clock[0] == 2.0
    assert not wait_for_alerts(lambda: True, POLICY, sleep=sleep, monotonic=lambda: clock[0])
    assert clock[0] == 2.0 + POLICY.alert_wait_s


def test_a_run_outside_the_hours_does_nothing_and_a_manual_one_does__DL6_F9(lake: Lake) -> None:
    tables = (ORBITAL_CATALOG,)
    idle = maintain_all(lake, tables, now_ms=HOURS_MS[12], retention=NOTHING_KEPT)
    assert set(idle.values()) == {0}
    for hours in (12, 36):
        done = maintain_all(lake, tables, now_ms=hours * HOUR_MS, others=ALL, retention=NOTHING_KEPT, is_manual=True)
    assert (done["deleted_files"], done["compacted_tables"]) == (2, 0)
