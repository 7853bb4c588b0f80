"""Several sealers at once: whatever the order of their steps, one segment is intact and every answer is true."""

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from greenlet import getcurrent, greenlet
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.lake import durable
from sda_platform.lake.errors import SegmentConflict
from sda_platform.landing.lander import Lander
from sda_platform.landing.zone import LandingZone

CLOCK = MissionClock(1_730_419_200_000_000_000, 0, 0.0)


@contextmanager
def interleaved(choices: Iterator[int]) -> Iterator[Callable[[list[Callable[[], None]]], None]]:
    """Run programs that change places at every failpoint; ``choices`` says who continues."""
    hub = getcurrent()
    failpoints.watch(lambda _point: hub.switch())

    def run(programs: list[Callable[[], None]]) -> None:
        left = [greenlet(program, parent=hub) for program in programs]
        while left:
            left[next(choices, 0) % len(left)].switch()
            left = [each for each in left if not each.dead]

    try:
        yield run
    finally:
        failpoints.watch(None)


@settings(max_examples=150, deadline=None)
@given(
    contents=st.lists(st.sampled_from([b"one\n", b"two\n"]), min_size=2, max_size=5),
    choices=st.lists(st.integers(0, 4), max_size=60),
)
def test_any_interleaving_of_sealers_leaves_one_intact_segment_and_true_answers__E_acknowledged(
    contents: list[bytes], choices: list[int]
) -> None:
    answers: list[tuple[bytes, bool | None]] = []
    with tempfile.TemporaryDirectory() as root:
        zone = LandingZone(root, "ephemerides")

        def sealer(data: bytes) -> Callable[[], None]:
            def seal() -> None:
                try:
                    answers.append((data, zone.seal_at(1, "a.oem", data, "oem-kvn")))
                except SegmentConflict:
                    answers.append((data, None))
                    return
                (segment,) = zone.pending()
                assert zone.read(segment).data == data  # a receipt means that it is there

            return seal

        with interleaved(iter(choices)) as run:
            run([sealer(data) for data in contents])
        (segment,) = zone.pending()
        loaded = zone.read(segment)
        assert loaded.defect is None
        assert Counter(answers)[loaded.data, True] == 1
        assert all((answer is None) == (data != loaded.data) for data, answer in answers)
        assert len(zone.pending_files()) == 2


def test_threads_that_seal_the_same_bytes_share_no_file(tmp_path: Path) -> None:
    zone, tally = LandingZone(str(tmp_path), "ephemerides"), Counter[object]()
    for number in range(25):
        data, barrier = (b"x%d\n" % number) * 50_000, threading.Barrier(3)

        def seal(data: bytes = data, barrier: threading.Barrier = barrier, number: int = number) -> None:
            barrier.wait()
            try:
                tally[zone.seal_at(1, f"{number}.oem", data, "oem-kvn")] += 1
            except Exception as error:
                tally[repr(error)] += 1

        threads = [threading.Thread(target=seal) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert tally == {True: 25, False: 50}
    assert all(zone.read(segment).defect is None for segment in zone.pending())


def test_a_file_that_is_landed_twice_at_once_is_counted_once(tmp_path: Path) -> None:
    file = tmp_path / "night.jsonl"
    file.write_bytes(b'{"obs_id": 1}\n' * 4)
    landed = []
    lander = Lander(str(tmp_path / "landing"), CLOCK, segment_max_bytes=30)
    with interleaved(iter([0, 1, 1, 0, 0, 0, 1, 1, 0, 1] * 20)) as run:
        run([lambda: landed.append(lander.land(file, feed="optical"))] * 2)
    assert [each.records for each in landed] == [4, 4]
    assert sum(each.sealed_records for each in landed) == 4
    assert not list((tmp_path / "landing" / ".lander").glob(".*.tmp"))


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(paths: Iterable[UPath]) -> None:
        if any(path.name.endswith(".tmp") for path in paths):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "sync", refuse)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            durable.create(UPath(tmp_path / "a"), b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_partial_file_is_never_written_through_the_name_that_a_killed_process_gave_it(tmp_path: Path) -> None:
    """Where process ids are few, the partial file of a killed process may be linked to a segment."""
    durable.create(UPath(tmp_path / "a"), b"first")
    (tmp_path / f".a.{os.getpid()}.0.tmp").hardlink_to(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "consumed")
    durable.create(UPath(tmp_path / "a"), b"other")
    assert (tmp_path / "consumed").read_bytes() == b"first"


def test_partial_files_of_killed_writers_are_swept_and_those_at_work_are_not(tmp_path: Path) -> None:
    own = os.getpid()
    left, foreign, other = (tmp_path / name for name in (f".a.{own}.999999.tmp", ".a.1.0.tmp", "b.tmp"))
    for path in (left, foreign, other):
        path.write_bytes(b"half")
    durable.sweep_partials([UPath(path) for path in tmp_path.iterdir()], foreign.stat().st_mtime + 599)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.1.0.tmp", "b.tmp"]
    with durable._partial(UPath(tmp_path / "c"), b"") as at_work:
        durable.sweep_partials([at_work, UPath(foreign)], foreign.stat().st_mtime + 600)
        assert at_work.exists()
        assert not foreign.exists()
        at_work.unlink()
