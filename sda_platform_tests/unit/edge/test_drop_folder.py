"""What a partner puts into the drop folder besides files: nothing outside the folder is read, moved or made by it."""

import errno
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sda_platform.edge.sources import drop_folder
from sda_platform.edge.sources.drop_folder import LANDED, REFUSED, DropFolder, DroppedFile
from sda_platform.foreign_text import is_plain

FAR_S = 1e12


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    (tmp_path / "drop").mkdir()
    return tmp_path / "drop"


@pytest.fixture
def done(drop: Path) -> Path:
    """Where files go: beside the folder, where its partners cannot write."""
    return drop.with_name("drop-done")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Files of the platform; they are as they were after each test."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("platform.json", "service.env"):
        (home / name).write_text("the platform's")
    yield home
    assert sorted(path.name for path in home.iterdir()) == ["platform.json", "service.env"]
    assert {path.read_text() for path in home.iterdir()} == {"the platform's"}


def names(folder: DropFolder) -> list[str]:
    return [f"{file.zone}/{file.name}" for file in folder.settled(FAR_S, 0.0)]


@pytest.mark.parametrize("zone", ["edits", "elements", "radar"])
def test_a_zone_that_is_a_link_is_left_alone__S3(drop: Path, home: Path, zone: str) -> None:
    (drop / zone).symlink_to(home)
    (drop / "own.csv").write_text("x")
    with DropFolder(drop) as folder:
        assert names(folder) == ["/own.csv"]
        assert folder.foreign == {zone}


@pytest.mark.parametrize("place", [LANDED, REFUSED])
def test_a_place_that_is_a_link_is_refused_and_nothing_is_put_there__S3(
    drop: Path, done: Path, home: Path, place: str
) -> None:
    done.mkdir()
    (done / place).symlink_to(home)
    (drop / "evil.pth").write_text("import os")
    with pytest.raises(OSError, match=place), DropFolder(drop):
        pytest.fail("it was opened")
    assert (drop / "evil.pth").exists()


@pytest.mark.parametrize("place", [LANDED, REFUSED, "elements"])
def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere_else__S3(
    drop: Path, done: Path, home: Path, place: str
) -> None:
    (drop / "elements").mkdir()
    (drop / "elements" / "sets.csv").write_text("x")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        parent = drop if place == "elements" else done
        (parent / place).rename(parent / "moved")
        (parent / place).symlink_to(home)
        folder.put_away(file, REFUSED, "reason")
        moved = done / "moved" if place == REFUSED else done / REFUSED
        assert sorted(path.name for path in moved.iterdir()) == ["sets.csv", "sets.csv.reason.txt"]


def test_what_is_read_is_the_file_whatever_its_directory_and_name_become__S3(
    drop: Path, home: Path, tmp_path: Path
) -> None:
    (drop / "elements").mkdir()
    (drop / "elements" / "service.env").write_text("the partner's")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        with folder.opened(file, tmp_path) as readable:
            (drop / "elements").rename(drop / "moved")
            (drop / "elements").symlink_to(home)
            assert (drop / "elements" / "service.env").read_text() == "the platform's"
            assert (readable.name, readable.read_text()) == ("service.env", "the partner's")
        readable.unlink()
        with folder.opened(file, tmp_path) as readable:
            assert readable.read_text() == "the partner's", "of the directory that was opened"


@pytest.mark.parametrize("becomes", ["link", "hard link", "pipe", "nothing"])
def test_what_is_no_file_any_more_is_not_opened__S3(drop: Path, home: Path, tmp_path: Path, becomes: str) -> None:
    path = drop / "sets.csv"
    path.write_text("x")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        path.unlink()
        if becomes == "link":
            path.symlink_to(home / "service.env")
        elif becomes == "hard link":
            os.link(home / "service.env", path)
        elif becomes == "pipe":
            os.mkfifo(path)
        with pytest.raises(OSError), folder.opened(file, tmp_path):
            pytest.fail("it was opened")
    path.unlink(missing_ok=True)
    assert not (tmp_path / "sets.csv").is_symlink()


def test_a_scan_looks_at_so_many_entries_and_no_more_and_each_has_its_turn(drop: Path) -> None:
    for number in range(1_500):
        (drop / f"{number}").symlink_to("nowhere")
    (drop / "sets.csv").write_text("x")
    scans = []
    for second in range(20):
        with DropFolder(drop) as folder:
            scans.append([file.name for file in folder.settled(FAR_S + second, 0.0)])
            assert 999 <= len(folder.foreign) <= 1_000, "all but the file, if it is among them"
            assert folder.is_crowded
    assert ["sets.csv"] in scans, "what stays there hides no file for ever"


def test_only_regular_files_of_one_name_are_taken__S3(drop: Path, home: Path) -> None:
    (drop / "link.csv").symlink_to(home / "service.env")
    (drop / "broken.csv").symlink_to(drop / "nowhere")
    (drop / "loop.csv").symlink_to(drop / "loop.csv")
    os.link(home / "service.env", drop / "hard.csv")
    os.mkfifo(drop / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(drop / "socket.csv"))
    (drop / "directory.csv").mkdir()
    (drop / ".hidden.csv").write_text("x")
    (drop / "copying.csv.part").write_text("x")
    (drop / "line\nbreak\x1b.csv").write_text("x")
    with DropFolder(drop) as folder:
        assert names(folder) == ["/line\nbreak\x1b.csv"]
        assert folder.foreign == {"link.csv", "broken.csv", "loop.csv", "hard.csv", "pipe.csv", "socket.csv"}
    (drop / "hard.csv").unlink()


@pytest.mark.parametrize("becomes", ["link", "hard link", "nothing"])
def test_a_file_that_becomes_something_else_is_no_file_any_more__S3(drop: Path, home: Path, becomes: str) -> None:
    path = drop / "sets.csv"
    path.write_text("x")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        assert folder.holds(file)
        path.unlink()
        if becomes == "link":
            path.symlink_to(home / "service.env")
        elif becomes == "hard link":
            os.link(home / "service.env", path)
        assert not folder.holds(file)
    path.unlink(missing_ok=True)


def test_the_reason_is_a_new_file_and_follows_no_link__S3(drop: Path, done: Path, home: Path) -> None:
    (done / REFUSED).mkdir(parents=True)
    (done / REFUSED / "sets.csv.reason.txt").symlink_to(home / "platform.json")
    (drop / "sets.csv").write_text("x")
    with DropFolder(drop) as folder:
        folder.put_away(DroppedFile("", "sets.csv", drop / "sets.csv"), REFUSED, "why")
    assert (done / REFUSED / "sets.csv.reason.txt.2").read_text() == "why\n"


def test_a_refused_file_that_is_named_as_a_reason_takes_no_reasons_place(drop: Path, done: Path) -> None:
    for name in ("sets.csv.reason.txt", "sets.csv"):
        (drop / name).write_text(f"{name} of the partner")
        with DropFolder(drop) as folder:
            folder.put_away(DroppedFile("", name, drop / name), REFUSED, f"why {name}")
    texts = {each.name: each.read_text().strip() for each in (done / REFUSED).iterdir()}
    assert texts == {
        "sets.csv.reason.txt": "sets.csv.reason.txt of the partner",
        "sets.csv.reason.txt.reason.txt": "why sets.csv.reason.txt",
        "sets.csv": "sets.csv of the partner",
        "sets.csv.reason.txt.2": "why sets.csv",
    }


def test_files_of_one_name_are_kept_and_numbered(drop: Path, done: Path) -> None:
    for _ in range(3):
        (drop / "sets.csv").write_text("x")
        with DropFolder(drop) as folder:
            (file,) = folder.settled(FAR_S, 0.0)
            folder.put_away(file, LANDED)
    assert sorted(path.name for path in (done / LANDED).iterdir()) == ["sets.csv", "sets.csv.2", "sets.csv.3"]


def test_a_name_is_numbered_in_few_looks(drop: Path, done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partner may send a file of one name each second, for years."""
    looks, look = list[str](), drop_folder._exists
    (drop / "sets.csv").write_text("x")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        for number in range(1, 301):
            (done / LANDED / ("sets.csv" if number == 1 else f"sets.csv.{number}")).touch()

        def counted(name: str, directory: int) -> bool:
            looks.append(name)
            return look(name, directory)

        monkeypatch.setattr(drop_folder, "_exists", counted)
        folder.put_away(file, LANDED)
    assert (done / LANDED / "sets.csv.301").read_text() == "x"
    assert len(looks) < 20


def test_a_file_is_settled_once_it_has_not_changed_for_a_while(drop: Path) -> None:
    path = drop / "sets.csv"
    path.write_text("x")
    os.utime(path, (1_000.0, 1_000.0))
    changed_s = path.stat()[stat.ST_CTIME]
    with DropFolder(drop) as folder:
        assert not list(folder.settled(changed_s + 1.0, 2.5))
        assert len(list(folder.settled(changed_s + 4.0, 2.5))) == 1


@pytest.mark.parametrize("name", [b"a\xff.csv", b"\x1b[31mred.csv", "\u202e.csv".encode()])
def test_the_reason_of_a_file_of_any_name_is_written__S3(drop: Path, done: Path, name: bytes) -> None:
    (drop / os.fsdecode(name)).write_bytes(b"bad")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        folder.put_away(file, REFUSED, f"{file.path}: it is bad")
        assert list(folder.settled(FAR_S, 0.0)) == []
    (reason,) = (done / REFUSED).glob("*.reason.txt")
    text = reason.read_bytes().decode()
    assert text.endswith(": it is bad\n") and text.count("\n") == 1 and is_plain(text.rstrip())


@pytest.mark.parametrize("name", [f"{'n' * 251}.csv", f"{'é' * 125}.csv", "n" * 246])
@pytest.mark.parametrize("times", [1, 2, 11])
def test_files_of_the_longest_names_are_kept_each_with_its_reason(
    drop: Path, done: Path, name: str, times: int
) -> None:
    for number in range(times):
        (drop / name).write_text(f"{number}")
        with DropFolder(drop) as folder:
            (file,) = folder.settled(FAR_S, 0.0)
            folder.put_away(file, REFUSED, f"why {number}")
    texts = sorted(path.read_text() for path in (done / REFUSED).iterdir())
    assert texts == sorted([f"{number}" for number in range(times)] + [f"why {number}\n" for number in range(times)])


@pytest.fixture
def across(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the folder is a mount: no rename leads out of it."""
    rename = os.rename

    def renamed(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if src_dir_fd != dst_dir_fd:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", renamed)


@pytest.mark.parametrize("becomes", ["file", "link", "hard link", "pipe"])
def test_a_file_goes_to_another_file_system_as_a_copy_and_nothing_else_does__S3(
    drop: Path, done: Path, home: Path, across: None, becomes: str
) -> None:
    path = drop / "sets.csv"
    path.write_text("x")
    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        if becomes == "file":
            folder.put_away(file, LANDED)
            assert ((done / LANDED / "sets.csv").read_text(), path.exists()) == ("x", False)
            return
        path.unlink()
        if becomes == "link":
            path.symlink_to(home / "service.env")
        elif becomes == "hard link":
            os.link(home / "service.env", path)
        else:
            os.mkfifo(path)
        with pytest.raises(OSError):
            folder.put_away(file, LANDED)
    path.unlink()
    assert list((done / LANDED).iterdir()) == []


def test_of_a_copy_that_failed_nothing_stays_and_the_file_is_still_there(
    drop: Path, done: Path, across: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop / "sets.csv"
    path.write_text("whole")
    copy = shutil.copyfileobj

    def full(source: Any, target: Any) -> None:
        target.write(source.read(2))
        raise OSError(errno.ENOSPC, "No space left on device")

    with DropFolder(drop) as folder:
        (file,) = folder.settled(FAR_S, 0.0)
        monkeypatch.setattr(shutil, "copyfileobj", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                folder.put_away(file, LANDED)
        assert (list((done / LANDED).iterdir()), path.read_text()) == ([], "whole")
        monkeypatch.setattr(shutil, "copyfileobj", copy)
        folder.put_away(file, LANDED)
    assert {each.name: each.read_text() for each in (done / LANDED).iterdir()} == {"sets.csv": "whole"}
