"""`sda backup` and `sda restore`: one consistent state while the platform works, and no step that loses one."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.delivery.checks import disagreements
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.lake import Lake
from sda_platform.observability.vitals.process_facts import backup_facts
from sda_platform.retention_settings import RetentionSettings
from sda_platform.runtime.backup import back_up, restore
from sda_platform.runtime.defs import defs
from sda_platform.runtime.nightly_backup import backup_asset
from sda_platform.settings import Settings
from sda_platform_tests.support.crashes import crash_at, crashes
from sda_platform_tests.support.delivery_rounds import deliver
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, land, put, radar_segment
from sda_platform_tests.unit.runtime.homes import alert, consume, sda, zone_of


def parts(home: Path) -> tuple[Lake, SqliteSubscriber]:
    return lake_at(home / "lake"), SqliteSubscriber(home / "subscriber.sqlite")


def work(home: Path, name: str, *steps: tuple[int, str, float]) -> None:
    """Consume a segment, derive from it, and decide and deliver an alert."""
    lake, subscriber = parts(home)
    consume(home, name)
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    alert(lake, *steps)
    deliver(lake, subscriber)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A platform with an alert that is delivered, and a segment that waits."""
    home = tmp_path / "home"
    MissionClock(START_NS, 0, 0.0).save(home)
    work(home, "a", (0, "insert", 1e-5))
    return home


def restored(target: Path, name: str = "again") -> Path:
    """A new home from the newest backup below ``target``; its lake is sound."""
    home = target.parent / name
    code, told = sda(home, "restore", str(target))
    assert code == 0, told
    assert sda(home, "lake", "verify", "--deep")[0] == 0
    assert not list(home.rglob(".restoring"))
    return home


def made(home: Path) -> Path:
    target = home.parent / "target"
    code, told = sda(home, "backup", str(target))
    assert code == 0, told
    return target


def test_a_restored_platform_is_that_of_the_backup_and_delivers_nothing_twice(home: Path) -> None:
    target = made(home)
    before = parts(home)[1].held()
    work(home, "b", (0, "retract", 1e-5), (1, "insert", 2e-5))
    again = restored(target)
    lake, subscriber = parts(again)
    assert (lake.log(RAW_RECORDS).head().sequence, zone_of(again).pending_names()) == (1, [])
    assert subscriber.held() == before
    assert lake.plan(OBSERVATIONS).is_empty
    assert not deliver(lake, subscriber).get("outcomes")
    assert list(disagreements(lake, subscriber)) == []
    assert MissionClock.load(again).now_ns() == START_NS


@pytest.mark.parametrize("point", ["home_copied", "pinned", "lake_copied", "pending_copied", "copied"])
def test_what_the_platform_does_meanwhile_makes_no_other_state(home: Path, point: str) -> None:
    target = home.parent / "target"

    def meanwhile() -> None:
        work(home, "b", (0, "retract", 1e-5), (1, "insert", 2e-5))

    with at(f"backup.{point}", meanwhile):
        back_up(Settings(home=home), target)
    again = restored(target)
    lake, subscriber = parts(again)
    deliver(lake, subscriber)
    assert list(disagreements(lake, subscriber)) == []
    assert [entry.sequence for entry in subscriber.held()] == [1 if point == "home_copied" else 0]
    # What was consumed later waits again where the backup has its bytes, and is consumed once.
    assert zone_of(again).pending_names() == (["b"] if point in ("pinned", "lake_copied", "pending_copied") else [])


def test_a_segment_that_waits_is_missed_at_no_moment(home: Path) -> None:
    for n, point in enumerate(("home_copied", "lake_copied", "pending_copied", "copied")):
        name = "cdef"[n]
        land(zone_of(home), name, radar_segment(1, first_track=ord(name)))
        target = home.parent / f"target-{n}"
        with at(f"backup.{point}", lambda name=name: consume_waiting(home, name)):  # type: ignore[misc]
            back_up(Settings(home=home), target)
        again = restored(target, f"again-{n}")
        is_consumed = point == "home_copied"
        assert (name in zone_of(again).pending_names()) != is_consumed
        assert lake_at(again / "lake").log(RAW_RECORDS).rows(["segment_name"]).num_rows == n + 1 + is_consumed


def consume_waiting(home: Path, name: str) -> None:
    lake, zone = lake_at(home / "lake"), zone_of(home)
    segment = zone.read(next(iter(zone.pending()))).ref(1)
    row = {"feed": "radar", "segment_sha256": segment.sha256, "segment_name": name, "record_number": 0}
    commit(lake, RAW_RECORDS, [row], segments=[segment])
    zone.acknowledge([segment])


@contextmanager
def at(point: str, act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` once, when the code in the block reaches ``point``."""

    def reached(name: str) -> None:
        if name == point:
            failpoints.watch(None)
            act()

    failpoints.watch(reached)
    yield
    failpoints.watch(None)


def test_a_second_backup_holds_what_is_new_alone_and_needs_no_other(home: Path) -> None:
    target = made(home)
    (first,) = (each for each in target.iterdir() if each.is_dir())
    work(home, "b", (0, "retract", 1e-5), (1, "insert", 2e-5))
    made(home)
    second = max(each for each in target.iterdir() if each.is_dir())
    same = [each for each in second.rglob("*") if each.is_file() and each.stat().st_nlink == 2]
    assert {"_delta_log", "archive"} <= {each.parent.name for each in same}
    shutil.rmtree(first)
    again = restored(target)
    assert [entry.sequence for entry in parts(again)[1].held()] == [1]


def test_a_backup_that_is_killed_anywhere_leaves_the_earlier_one_and_the_next_is_whole(home: Path) -> None:
    target, settings = made(home), Settings(home=home)
    earlier = [each.name for each in target.iterdir() if each.is_dir()]
    work(home, "b", (0, "retract", 1e-5), (1, "insert", 2e-5))
    for n, attempt in enumerate(crashes()):
        before = [each for each in target.iterdir() if (each / "backup.json").exists() and each.name != ".unfinished"]
        with attempt:
            back_up(settings, target)
        assert {each.name for each in before} >= set(earlier)
        if n == 0:
            assert lake_at(restored(target) / "lake").log(RAW_RECORDS).head().sequence == 1
    assert lake_at(restored(target, "last") / "lake").log(RAW_RECORDS).head().sequence == 2


@pytest.mark.parametrize(
    ("point", "nth"),
    [("restore_all.staged", 1), ("restore_all.moved", 1), ("restore_all.moved", 5), ("durable.written", 1)],
)
def test_a_restore_that_is_killed_is_repeated(home: Path, point: str, nth: int) -> None:
    target, again = made(home), home.parent / "again"
    again.mkdir()
    with crash_at(point, nth):
        list(restore(Settings(home=again), target))
    assert lake_at(restored(target) / "lake").log(RAW_RECORDS).head().sequence == 1


def test_an_interrupted_restore_is_not_finished_with_another_backup(home: Path) -> None:
    target, again = made(home), home.parent / "again"
    again.mkdir()
    with crash_at("restore_all.moved"):
        list(restore(Settings(home=again), target))
    made(home)
    with pytest.raises(InvalidRequest, match="was interrupted: repeat that one first"):
        list(restore(Settings(home=again), target))


def test_a_backup_with_a_changed_byte_or_a_missing_file_is_refused_by_name(home: Path) -> None:
    target = made(home)
    (backup,) = (each for each in target.iterdir() if each.is_dir())
    file = next((backup / "lake/raw_records").glob("*.parquet"))
    whole = file.read_bytes()
    for damage in (lambda: file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1])), file.unlink):
        damage()
        code, told = sda(home.parent / "again", "restore", str(target))
        assert (code, file.name in told, "restore an earlier backup" in told) == (1, True, True)
        assert not (home.parent / "again/lake/raw_records").exists()
    file.write_bytes(whole)
    restored(target)


@pytest.mark.parametrize(
    "name",
    [
        "home/../../escaped",
        "lake/../../escaped",
        "elsewhere/escaped",
        "/escaped",
        "home//escaped",
        "home/./escaped",
    ],
)
def test_a_backup_that_names_another_place_is_refused(home: Path, name: str) -> None:
    target = made(home)
    (file,) = target.glob("*/backup.json")
    contents = json.loads(file.read_text())
    contents["files"][name] = contents["files"]["home/clock.json"]
    file.write_text(json.dumps(contents))
    with pytest.raises(InvalidRequest, match="no place of what a platform keeps"):
        list(restore(Settings(home=home.parent / "again"), target))
    assert not list(home.parent.rglob("escaped"))


@pytest.mark.parametrize(
    "name",
    [
        "home/engine/left",
        "lake/_leases/left",
        "landing/.restoring/left",
        "home/platform.json",
        "home/collector.json",
        "home/catalogue.json",
        "home/dagster/dagster.yaml",
        "home/dagster/workspace.yaml",
    ],
)
def test_addresses_classes_and_files_of_processes_are_neither_backed_up_nor_restored(home: Path, name: str) -> None:
    """Of a backup from somebody else, the collector's address was sent its token."""
    place, _, rest = name.partition("/")
    file = (home if place == "home" else home / place) / rest
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    target = made(home)
    (contents,) = target.glob("*/backup.json")
    found = json.loads(contents.read_text())
    assert name not in found["files"]
    copy = contents.parent / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(contents.parent / "home/clock.json", copy)
    found["files"][name] = found["files"]["home/clock.json"]
    contents.write_text(json.dumps(found))
    again = home.parent / "again"
    list(restore(Settings(home=again), target))
    assert (again / "clock.json").exists()
    assert not ((again if place == "home" else again / place) / rest).exists()


def test_what_is_no_file_or_has_no_end_is_not_restored(home: Path) -> None:
    target = made(home)
    (file,) = target.glob("*/home/clock.json")
    content, same = file.read_bytes(), home.parent / "same"
    same.write_bytes(content)
    kinds: list[Callable[[], object]] = [
        lambda: file.symlink_to(same),
        lambda: file.symlink_to("/dev/zero"),
        lambda: os.mkfifo(file),
        lambda: file.write_bytes(content + bytes(10_000_000)),
    ]
    for become in kinds:
        file.unlink()
        become()
        with pytest.raises(InvalidRequest, match=r"clock\.json is (missing|not as it was backed up)"):
            list(restore(Settings(home=home.parent / "again"), target))
    assert (home.parent / "again/.restoring/clock.json").stat().st_size == len(content) + 1


def test_a_backup_whose_contents_are_damaged_is_refused(home: Path) -> None:
    target = made(home)
    (file,) = target.glob("*/backup.json")
    contents = json.loads(file.read_text())
    sound = contents["files"]["home/clock.json"]
    entries = (None, [1], [-1, "a", 0], [1, None, 0], [1, "a", 10**30], [1, "a", "b"], {"a": 1})
    broken: list[Any] = [{**contents["files"], "home/clock.json": entry} for entry in entries]
    for files in [*broken, {"home/a\0b": sound}, {"home/\ud800": sound}, [], None]:
        file.write_text(json.dumps({**contents, "files": files}))
        with pytest.raises(InvalidRequest, match=r"backup\.json is damaged"):
            list(restore(Settings(home=home.parent / "again"), target))


def test_a_home_that_is_used_is_left_as_it_is(home: Path) -> None:
    code, told = sda(home, "restore", str(made(home)))
    assert (code, "is there already: a backup is restored into an empty home" in told) == (1, True)
    assert lake_at(home / "lake").log(RAW_RECORDS).head().sequence == 1


@pytest.mark.parametrize(
    ("inside", "reason"), [("lake/b", "is in what is backed up"), ("b", "is in what is backed up")]
)
def test_a_target_in_what_is_backed_up_is_refused(home: Path, inside: str, reason: str) -> None:
    code, told = sda(home, "backup", str(home / inside))
    assert (code, reason in told) == (1, True)


def test_segments_are_taken_as_they_are_whatever_their_name_or_content(home: Path) -> None:
    with closing(sqlite3.connect(home.parent / "database")) as database:
        database.execute("CREATE TABLE t (x)")
    content = (home.parent / "database").read_bytes()
    names = ("engine", "logs", "x.lock", "y-wal", "database", "_leases", "pending")
    for name in names:
        put(zone_of(home), name, content)
    again = restored(made(home))
    pending: dict[str, Any] = {each.name: each.read_bytes() for each in (again / "landing/radar/pending").iterdir()}
    assert pending == dict.fromkeys(names, content)


def test_a_lake_elsewhere_is_restored_to_its_own_place(home: Path) -> None:
    (home / "lake").rename(home.parent / "lake")
    settings = Settings(home=home, lake=str(home.parent / "lake"))
    back_up(settings, home.parent / "target")
    again = Settings(home=home.parent / "again", lake=str(home.parent / "lake-again"))
    again.home.mkdir()
    list(restore(again, home.parent / "target"))
    assert lake_at(home.parent / "lake-again").log(RAW_RECORDS).head().sequence == 1
    assert not (again.home / "lake").exists()


def test_old_backups_are_removed_and_what_was_named_by_a_person_stays(home: Path) -> None:
    target, settings = home.parent / "target", Settings(home=home)
    (back_up(settings, target).path).rename(target / "before-the-upgrade")
    paths = [back_up(settings, target, kept=2).path for _ in range(4)]
    assert {each.name for each in target.iterdir() if each.is_dir()} == {
        "before-the-upgrade",
        *(each.name for each in paths[-2:]),
    }
    assert sda(home.parent / "again", "restore", str(target / "before-the-upgrade"))[0] == 0


def test_a_removal_that_is_killed_leaves_no_half_of_a_backup(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, settings = home.parent / "target", Settings(home=home)
    for _ in range(2):
        back_up(settings, target)

    def killed(path: Path, **_options: Any) -> None:
        if path.exists():
            next(each for each in path.rglob("*") if each.is_file()).unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("sda_platform.recovery.backups.shutil.rmtree", killed)
        back_up(settings, target, kept=1)
    restored(target)
    back_up(settings, target, kept=1)
    assert len([each for each in target.iterdir() if each.is_dir()]) == 1


def test_a_damaged_earlier_backup_keeps_no_new_one_from_being_made(home: Path) -> None:
    target = made(home)
    (file,) = target.glob("*/backup.json")
    file.write_text("{")
    assert back_up(Settings(home=home), target).new_bytes > 0
    restored(target)


def test_a_backup_as_a_whole_shares_no_file_with_an_earlier_one(home: Path) -> None:
    target = made(home)
    assert sda(home, "backup", str(target), "--whole", "--keep", "1")[0] == 0
    assert all(each.stat().st_nlink == 1 for each in target.rglob("*") if each.is_file())


def test_each_night_the_platform_makes_a_backup_where_it_is_set(home: Path) -> None:
    assert not defs(Settings(home=home)).assets
    settings = Settings(home=home, retention=RetentionSettings(backup=str(home.parent / "target")))
    found = defs(settings)
    assert [each.name for each in found.schedules or ()] == ["nightly_backup"]
    asset, target = backup_asset(settings), home.parent / "target"
    with dg.DagsterInstance.ephemeral() as instance:
        target.mkdir()
        refused = dg.materialize([asset], instance=instance, raise_on_error=False)
        assert not refused.success and list(target.iterdir()) == [], "its disk may not be mounted"
        back_up(settings, target)
        result = dg.materialize([asset], instance=instance)
    (event,) = result.get_asset_materialization_events()
    again = restored(home.parent / "target")
    assert str(event.materialization.metadata["report"].value).count(" files, ") == 1
    assert parts(again)[1].held() == parts(home)[1].held()
    facts = backup_facts(settings.retention, time.time() + 60.0)
    assert facts and facts.age_s and 59.0 < facts.age_s < 600.0
