"""F-disk: a disk that is full, or read-only, at any write ends in an error, and what follows continues from there."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from upath.implementations.local import PosixUPath

from sda_platform.clock import MissionClock
from sda_platform.formats.cutting import split_records
from sda_platform.lake.log_commits import Head
from sda_platform.landing import intake
from sda_platform.landing.lander import Lander
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.segments import START_NS, committed, described, land, radar_segment

DATA, OTHER = radar_segment(3), radar_segment(3, first_track=100)
_CHANGING = ("rename", "unlink", "touch", "mkdir")


class FailingDisk:
    """Counts what changes the disk, and refuses the ``fatal``-th of them; a refused write leaves half a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fatal, self.changes, self.errno = 0, 0, errno.ENOSPC
        for name in _CHANGING:
            monkeypatch.setattr(PosixUPath, name, self._counted(getattr(PosixUPath, name)))
        monkeypatch.setattr(os, "fsync", self._counted(os.fsync))
        self._open = PosixUPath.open
        monkeypatch.setattr(PosixUPath, "open", lambda *args, **kwargs: self._opened(*args, **kwargs))

    def refuse(self, fatal: int, reason: int) -> None:
        self.fatal, self.changes, self.errno = fatal, 0, reason

    def _change(self) -> None:
        self.changes += 1
        if self.changes == self.fatal:
            raise OSError(self.errno, os.strerror(self.errno))

    def _counted(self, function: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._change()
            return function(*args, **kwargs)

        return counted

    def _opened(self, path: PosixUPath, mode: str = "r", **kwargs: Any) -> Any:
        if "w" in mode and self.changes + 1 == self.fatal:
            Path(path).write_bytes(b"half")
        if "w" in mode:
            self._change()
        return self._open(path, mode, **kwargs)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    return FailingDisk(monkeypatch)


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_zone_survives_the_refusal_of_any_write(tmp_path: Path, disk: FailingDisk, reason: int) -> None:
    """Seal, consume, clean up: at every k-th change until none is refused; then once more, undisturbed."""
    refused = 0
    for k in range(1, 100):
        zone = LandingZone(str(tmp_path / str(k)), "radar")
        table = [Head()]
        disk.refuse(k, reason)
        try:
            pass_through(zone, table)
        except OSError as error:
            assert error.errno == reason
            refused += 1
        is_through = disk.changes < k
        disk.refuse(0, reason)
        pass_through(zone, table)
        assert zone.pending_names() == []
        assert sorted(s.name for head in table if head.commit for s in head.commit.manifest.segments) == ["a", "b"]
        assert set(zone.consumed_segments.names()) == {described(data).sha256 for data in (DATA, OTHER)}
        if is_through:
            break
    assert refused > 15


def pass_through(zone: LandingZone, table: list[Head]) -> None:
    """Two segments into the zone, the table (its heads, newest last) and the archive; what is done stays done."""
    for name, data in (("a", DATA), ("b", OTHER)):
        land(zone, name, data)
    taken = intake.take([zone], table[-1], max_segments=10, max_bytes=10**6)
    assert [segment.defect for segment in taken] == [None] * len(taken)
    if taken:
        table.append(committed(*taken))
        intake.finish_last_commit([zone], table[-1])


def test_a_lander_goes_on_after_the_refusal_of_any_write(tmp_path: Path, disk: FailingDisk) -> None:
    content = radar_segment(40)
    for k in range(1, 200):
        folder = tmp_path / str(k)
        folder.mkdir()
        (folder / "pass.radar").write_bytes(content)
        lander = Lander(str(folder / "landing"), MissionClock(START_NS, 0, 0.0), segment_max_bytes=1200)
        disk.refuse(k, errno.ENOSPC)
        try:
            lander.land(folder / "pass.radar")
        except OSError as error:
            assert error.errno == errno.ENOSPC
        is_through = disk.changes < k
        disk.refuse(0, errno.ENOSPC)
        lander.land(folder / "pass.radar")
        zone = LandingZone(str(folder / "landing"), "radar")
        found = sorted(map(zone.read, zone.pending()), key=lambda s: int(s.name.removesuffix(".radar").split("-")[-1]))
        payloads = [r.payload for segment in found for r in split_records(segment.data, "radar-frames")]
        assert payloads == [record.payload for record in split_records(content, "radar-frames")]
        if is_through:
            break
    assert k > 40
