"""`sda lake restore`: an older lake is put in place of today's, with the landing zones and the subscriber of today."""

import os
import shutil
from pathlib import Path

import pytest

from sda_platform.clock import MissionClock
from sda_platform.delivery.checks import disagreements
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.runtime.platform_home import take_locks
from sda_platform.runtime.restoring import restore
from sda_platform.settings import Settings
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.delivery_rounds import deliver
from sda_platform_tests.support.delta_tables import commit, commit_file, lake_at
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.unit.runtime.homes import alert, consume, sda, zone_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A lake, a backup of it, and what was consumed, decided and delivered since."""
    return platform_with_backup(tmp_path / "home")


def platform_with_backup(home: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(home)
    lake, subscriber = lake_at(home / "lake"), SqliteSubscriber(home / "subscriber.sqlite")
    consume(home, "a")
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    alert(lake, (0, "insert", 1e-5))
    deliver(lake, subscriber)
    shutil.copytree(home / "lake", home / "backup")
    consume(home, "b")
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    alert(lake, (0, "retract", 1e-5), (1, "insert", 2e-5))
    deliver(lake, subscriber)
    return home


def test_an_older_lake_is_put_in_place_and_fits_what_is_there_today(home: Path) -> None:
    code, told = sda(home, "lake", "restore", str(home / "backup"))
    assert code == 0, told
    assert "put 1 segments back" in told
    assert "commits that it lost: raw_records 1, observations 1, conjunction_alerts 1, alert_deliveries 1" in told
    assert zone_of(home).pending_names() == ["b"], "what was consumed since is consumed again"
    assert sda(home, "lake", "verify", "--deep")[0] == 0
    lake = lake_at(home / "lake")
    assert lake.plan(OBSERVATIONS).is_empty
    assert (home / "lake.before-restore.0" / "raw_records").exists()


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_a_backup_with_a_link_or_a_pipe_is_refused(home: Path, kind: str) -> None:
    """The link of a backup from somebody else would bring any file of this machine into the lake."""
    place = home / "backup/radar/part-0.parquet"
    place.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(home / "clock.json" if kind == "link" else home)
    code, told = sda(home, "lake", "restore", str(home / "backup"))
    assert (code, "is a link or a device" in told) == (1, True), told
    assert not (home / "lake.before-restore.0").exists()


def test_after_a_restore_the_subscriber_gets_the_new_decision_in_a_new_epoch_A1(home: Path) -> None:
    sda(home, "lake", "restore", str(home / "backup"))
    lake, subscriber = lake_at(home / "lake"), SqliteSubscriber(home / "subscriber.sqlite")
    alert(lake, (0, "retract", 1e-5), (1, "insert", 3e-5))
    assert "stale" not in str(deliver(lake, subscriber)["outcomes"])
    (held,) = subscriber.held()
    assert (held.epoch, held.sequence, '"collision_probability":3e-05' in held.body) == (1, 1, True)
    assert list(disagreements(lake, subscriber)) == []


def test_a_restore_that_is_killed_anywhere_is_repeated(tmp_path: Path) -> None:
    for n, attempt in enumerate(crashes()):
        home = platform_with_backup(tmp_path / str(n))
        settings = Settings(home=home)
        with attempt:
            list(restore(settings, home / "backup"))
        list(restore(settings, home / "backup"))
        assert zone_of(home).pending_names() == ["b"]
        assert lake_at(home / "lake").log(RAW_RECORDS).head().sequence == 1
        assert sda(home, "lake", "verify", "--deep")[0] == 0
        if n == 3:  # every step of the restore itself; those of the repair have tests of their own
            break


def test_a_backup_whose_tables_do_not_fit_together_changes_nothing_A3(home: Path) -> None:
    backup = lake_at(home / "backup")
    for path in commit_file(backup, RAW_RECORDS, 0).parent.glob("*0.*"):
        path.unlink()
    code, told = sda(home, "lake", "restore", str(home / "backup"))
    assert (code, "the backup is damaged, and the lake was left as it is" in told) == (1, True)
    assert "raw_records is missing, but observations consumed it" in told
    assert lake_at(home / "lake").log(RAW_RECORDS).head().sequence == 2
    assert not list(home.glob("lake.*"))


@pytest.mark.parametrize(
    ("place", "reason"), [("landing", "is no backup of a lake"), ("lake", "is in the lake itself")]
)
def test_what_is_no_backup_is_refused(home: Path, place: str, reason: str) -> None:
    code, told = sda(home, "lake", "restore", str(home / place))
    assert (code, reason in told) == (1, True), told


def test_no_lake_is_restored_beneath_a_running_platform(home: Path) -> None:
    with take_locks(home, str(home / "lake"), str(home / "landing")):
        code, told = sda(home, "lake", "restore", str(home / "backup"))
    assert (code, "a platform already runs" in told) == (1, True)
