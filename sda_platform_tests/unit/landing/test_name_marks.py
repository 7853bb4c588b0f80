"""The marks of consumed names: links to one empty file, where the file system has links."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.segments import land, put, radar_segment

DATA = {name: radar_segment(3, first_track=100 * number) for number, name in enumerate("abcd")}


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path), "radar")


def consume(zone: LandingZone, *names: str) -> None:
    """Land and acknowledge a segment of each name."""
    for name in names:
        land(zone, name, DATA[name])
    zone.acknowledge([zone.read(segment).ref(3) for segment in zone.pending()])


def marks(zone: LandingZone) -> dict[str, int]:
    """The number of the file that each mark is a name of; all are empty."""
    found = {path.name: path.stat() for path in Path(str(zone.root), "names").iterdir()}
    assert not any(status.st_size for status in found.values())
    return {name: status.st_ino for name, status in found.items()}


def any_file(_source: str) -> bool:
    return True


def without_links(monkeypatch: pytest.MonkeyPatch, code: int, is_refused: Callable[[str], bool] = any_file) -> None:
    """Have the file system answer ``code`` to links that make a mark, of the sources that are refused."""
    link = os.link

    def refusing(source: str, target: str) -> None:
        is_mark = Path(target).parent.name == "names" or Path(target).name == ".mark"
        if is_mark and is_refused(source):
            raise OSError(code, os.strerror(code), source)
        link(source, target)

    monkeypatch.setattr(os, "link", refusing)


def test_the_marks_of_all_batches_are_one_file(tmp_path: Path) -> None:
    consume(LandingZone(str(tmp_path), "radar"), "a", "b")
    later = LandingZone(str(tmp_path), "radar")
    consume(later, "c")
    assert marks(later).keys() == {"a", "b", "c"}
    assert len(set(marks(later).values())) == 1


def test_a_mark_can_be_removed_and_the_others_stay(zone: LandingZone) -> None:
    consume(zone, "a", "b")
    zone.consumed_segments.name_mark("a").unlink()
    consume(zone, "c")
    assert marks(zone).keys() == {"b", "c"}


def test_the_mark_of_a_second_delivery_is_a_file_of_its_own__spec_94(zone: LandingZone) -> None:
    """It has content. A name that is marked already keeps its mark: writing to it would write to all."""
    consume(zone, "a", "b")
    zone.consumed_segments.mark_name("a", "of another segment")
    zone.consumed_segments.mark_name("again", "of the first segment")
    again = zone.consumed_segments.name_mark("again")
    assert again.read_text() == "of the first segment"
    again.unlink()
    assert len(set(marks(zone).values())) == 1


def test_a_file_with_as_many_links_as_there_can_be_is_followed_by_another(
    zone: LandingZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    consume(zone, "a")
    full = marks(zone)["a"]
    without_links(monkeypatch, errno.EMLINK, lambda source: Path(source).stat().st_ino == full)
    consume(zone, "b", "c")
    found = marks(zone)
    assert found["a"] == full
    assert found["b"] == found["c"] != full


def test_a_name_has_other_bytes_whatever_their_hash_but_those_delivered_again(zone: LandingZone) -> None:
    consume(zone, "b")
    zone.consumed_segments.mark_name("a", "8" * 64)
    other = [zone.consumed_segments.has_other_bytes("a", digit * 64) for digit in "089f"]
    assert other == [True, False, True, True]
    assert not zone.consumed_segments.has_other_bytes("unknown", "8" * 64)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV])
def test_names_are_marked_also_where_there_are_no_links(
    zone: LandingZone, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    without_links(monkeypatch, code)
    consume(zone, "a", "b")
    assert len(set(marks(zone).values())) == 2


def test_marks_of_earlier_versions_count__spec_94(zone: LandingZone) -> None:
    """Each was a file of its own."""
    consume(zone, "a")
    Path(str(zone.root), ".mark").unlink()
    zone.consumed_segments.name_mark("b").touch()
    put(zone, "b", DATA["b"])
    assert zone.consumed_segments.has_other_bytes("b", "its hash")
    consume(zone, "c")
    assert len(set(marks(zone).values())) == 3


def test_a_failure_of_the_disk_is_no_missing_link(zone: LandingZone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clean-up ends there, and the next one finishes it."""
    land(zone, "a", DATA["a"])
    (consumed,) = (zone.read(segment).ref(3) for segment in zone.pending())
    with monkeypatch.context() as failing:
        without_links(failing, errno.EIO)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            zone.acknowledge([consumed])
    assert marks(zone) == {}
    zone.acknowledge([consumed])
    assert marks(zone).keys() == {"a"}
    assert zone.pending_files() == []
