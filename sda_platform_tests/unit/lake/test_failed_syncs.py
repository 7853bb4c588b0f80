"""A sync that fails once is not repeated and trusted: the table stops until all of it was read from the disk."""

import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sda_platform import failpoints
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.unsynced import SyncFailed
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import RepairFinding, recover
from sda_platform_tests.campaign.disk import File, Loss
from sda_platform_tests.campaign.scheduling import Process
from sda_platform_tests.campaign.simulated_oracle import contradictions, lost_promises
from sda_platform_tests.campaign.simulated_partner import delivery
from sda_platform_tests.campaign.simulated_platform import World
from sda_platform_tests.support.delta_tables import commit, lake_at, newest_data_file
from sda_platform_tests.support.sampling import sampled


class FailingSync:
    """Makes the ``fatal``-th sync of a file below the lake fail, once."""

    def __init__(self, world: World, fatal: int) -> None:
        self._world, self._step, self._fatal = world, world.disk.step, fatal
        self.failed = ""
        self._seen = 0
        world.disk.step = self._fail

    def _fail(self, kind: str, path: str) -> None:
        self._step(kind, path)
        if kind == "sync" and path.startswith("/lake/") and isinstance(self._world.disk.names.get(path), File):
            self._seen += 1
            if self._seen == self._fatal:
                self.failed = path
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)


@contextmanager
def world_at_work(fatal: int) -> Iterator[tuple[World, FailingSync]]:
    """A world in which a file landed and was processed; its ``fatal``-th sync of a table's file failed."""
    world = World([delivery(1, "radar", "b", 2)])
    sync = FailingSync(world, fatal)
    try:
        for _ in range(3):
            run(world, "lander", world.land_all)
            run(world, "pool", world.run_tables)
        yield world, sync
    finally:
        failpoints.watch(None)


def run(world: World, name: str, program: object) -> Process:
    process = world.start(name, program)  # type: ignore[arg-type]
    world.scheduler.run(lambda ready: ready[-1])
    return process


@pytest.mark.parametrize("loss", sampled(["drop", "reorder", "tear"], "tear"))
def test_a_power_loss_after_a_failed_sync_loses_nothing_that_was_confirmed_D7(loss: Loss) -> None:
    problems, failed = [], []
    for fatal in range(1, 100):
        with world_at_work(fatal) as (world, sync):
            if not sync.failed:
                break
            failed.append(sync.failed)
            world.lose_power(loss, random.Random(fatal))
            start = run(world, "recovery", world.recover)
            if start.failure and "sda lake verify --deep --repair" in str(start.failure):  # the mark reached the disk
                start = run(world, "deep recovery", lambda: world.recover(Depth.COLUMNS))
            problems += [f"{sync.failed}: {start.failure}"] if start.failure else lost_promises(world)
            for _ in range(4):
                run(world, "lander", world.land_all)
                run(world, "pool", world.run_tables)
            problems += contradictions(world)
    assert problems == []
    assert len(failed) > 15, "data files and commits of three tables were hit"


def test_a_table_stops_after_a_failed_sync_until_it_was_read_from_the_disk_D7() -> None:
    with world_at_work(fatal=1) as (world, sync):
        assert sync.failed.startswith("/lake/raw_records/")
        again = run(world, "again", world.run_tables)
        assert isinstance(again.failure, SyncFailed), "the next sync would succeed"
        start = run(world, "restart", world.recover)
        assert "sda lake verify --deep --repair" in str(start.failure), "from memory it would look sound"
        for path in tuple(world.disk.names):  # what unmounting writes
            world.disk.sync(path)
        world.lose_power("drop", random.Random(1))  # and what mounting again reads
        assert run(world, "deep", lambda: world.recover(Depth.COLUMNS)).failure is None
        assert run(world, "pool", world.run_tables).failure is None
        assert contradictions(world) == []


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lake_at(tmp_path / "lake")
    commit(found, RAW_RECORDS, [{}])
    return found


def fail_sync_of(monkeypatch: pytest.MonkeyPatch, file: Path, reason: int) -> None:
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == file:
            raise OSError(reason, os.strerror(reason))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)


def verified(lake: Lake, depth: Depth, *, repair: bool) -> RepairFinding:
    return recover(lake, [RAW_RECORDS], {}, depth=depth, repair=repair, wait=lambda _seconds: None)[0]


def test_a_failed_sync_of_a_committed_file_is_an_invariant_violation_D7(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = newest_data_file(lake, RAW_RECORDS)
    fail_sync_of(monkeypatch, file, errno.EIO)
    with pytest.raises(SyncFailed, match=rf"raw_records: a sync failed: {file} \(Input/output error\)") as failed:
        lake.head(RAW_RECORDS)
    assert disposition_of(failed.value) is Disposition.INVARIANT
    monkeypatch.undo()
    with pytest.raises(SyncFailed, match="mount the disk anew, then run `sda lake verify --deep --repair`"):
        lake.head(RAW_RECORDS)
    shallow, deep = (verified(lake, depth, repair=depth is Depth.PRESENCE) for depth in (Depth.PRESENCE, Depth.COLUMNS))
    assert (shallow.outcome, deep.outcome) == ("damaged", "damaged")
    assert "sda lake verify --deep --repair" in str(shallow.refused)
    repaired = verified(lake, Depth.COLUMNS, repair=True)
    assert (repaired.outcome, lake.head(RAW_RECORDS).sequence) == ("repaired", 1)


def test_a_sync_that_is_refused_for_another_reason_leaves_no_mark_D7(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_sync_of(monkeypatch, newest_data_file(lake, RAW_RECORDS), errno.EROFS)
    with pytest.raises(OSError, match="Read-only file system"):
        lake.head(RAW_RECORDS)
    monkeypatch.undo()
    assert lake.head(RAW_RECORDS).sequence == 1
