"""A folder that partners write into, used by descriptors: whatever they put there, nothing outside it is touched.

A partner can replace a directory or a file by a symbolic link at any moment. So directories and files are opened
without following links, and files are named relative to their directory and read by their descriptor. Only regular
files with one name are taken: no link, FIFO or device, and no hard link, which would be another file under the
partner's name.
"""

import errno
import os
import random
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sda_platform.foreign_text import printable
from sda_platform.formats.registry import ZONES

LANDED, REFUSED = "landed", "refused"
_PARTIAL: Final = (".tmp", ".part", ".partial", ".filepart", ".crdownload")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DESCRIPTORS: Final = Path("/proc")
_MOST_ENTRIES: Final = 1_000
"""Of each directory so many entries are looked at in a scan, so that no partner holds up what else is collected."""
_MOST_NAMES: Final = 100_000
"""Of so many names those entries are drawn, anew in each scan. To list a million takes a second."""
_LONGEST_NAME: Final = 255
"""Bytes of a file's name, in every file system in use."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class DroppedFile:
    """A regular file: its ``name`` in the directory of ``zone`` ("": the folder itself), and its whole ``path``."""

    zone: str
    name: str
    path: Path


class DropFolder:
    """The directories of ``path``, open while the context lasts; makes ``landed/`` and ``refused/`` below ``done``.

    ``done`` is the folder's name with ``-done``, beside it, unless it is given: partners cannot write there.
    ``foreign`` has the names of entries that are no files of a partner; they stay. ``is_crowded``: a directory had more
    entries than a scan looks at. Raises OSError, also where ``landed`` or ``refused`` is a link.
    """

    def __init__(self, path: Path, done: Path | None = None) -> None:
        whole = path.resolve()
        self.path, self.done = path, done or whole.with_name(f"{whole.name}-done")
        self.foreign, self.is_crowded = set[str](), False
        self._open = ExitStack()
        self._zones: Mapping[str, int] = {}
        self._places: Mapping[str, int] = {}

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            root = _opened(opened, self.path.resolve())
            self.done.mkdir(parents=True, exist_ok=True)
            done = _opened(opened, self.done.resolve())
            for name in (LANDED, REFUSED):
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=done)
            self._places = {name: _opened(opened, name, done) for name in (LANDED, REFUSED)}
            self._zones = {"": root}
            for zone in ZONES:
                try:
                    self._zones[zone] = _opened(opened, zone, root)
                except FileNotFoundError:
                    continue
                except OSError:  # a link or a file in the place of the directory
                    self.foreign.add(zone)
            self._open = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def settled(self, wall_s: float, settle_s: float) -> Iterator[DroppedFile]:
        """Yield the files that have not changed for ``settle_s`` seconds at ``wall_s``, by directory and name."""
        for zone, directory in self._zones.items():
            with os.scandir(directory) as entries:
                names = [entry.name for entry in islice(entries, _MOST_NAMES)]
            if len(names) > _MOST_ENTRIES:
                self.is_crowded = True
                names = random.Random(wall_s).sample(names, _MOST_ENTRIES)  # so that each has its turn
            for name in sorted(names):
                if name.startswith(".") or name.lower().endswith(_PARTIAL):
                    continue
                with suppress(FileNotFoundError):  # its sender has taken it back
                    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                    if not _is_partners_file(found):
                        if not stat.S_ISDIR(found.st_mode):
                            self.foreign.add(f"{zone}/{name}" if zone else name)
                    elif wall_s - max(found.st_mtime, found.st_ctime) >= settle_s:
                        yield DroppedFile(zone, name, self.path / zone / name)

    def holds(self, file: DroppedFile) -> bool:
        """Return whether the file is still there, and still one."""
        try:
            return _is_partners_file(os.stat(file.name, dir_fd=self._zones[file.zone], follow_symlinks=False))
        except (FileNotFoundError, KeyError):
            return False

    @contextmanager
    def opened(self, file: DroppedFile, place: Path) -> Iterator[Path]:
        """Give a path in ``place``, of the file's name, that leads to the file of this name now, and no other.

        Another process of this user may read it. Where the system has no /proc, it leads to the file's path. Raises
        OSError.
        """
        descriptor = os.open(file.name, _FILE, dir_fd=self._zones[file.zone])
        try:
            if not _is_partners_file(os.fstat(descriptor)):
                raise FileNotFoundError(file.name)
            link, own = place / file.name, _DESCRIPTORS / str(os.getpid()) / "fd" / str(descriptor)
            link.symlink_to(own if _DESCRIPTORS.exists() else file.path)
            yield link
        finally:
            os.close(descriptor)

    def put_away(self, file: DroppedFile, place: str, reason: str = "") -> None:
        """Move a file to ``place``; an earlier one of its name is kept, and the later one numbered. Raises OSError."""
        directory = self._places[place]
        target = _free_name(file.name, directory)
        _move(file.name, self._zones[file.zone], target, directory)
        if reason:
            # The reason names the file, whose name may be no text, or control a terminal.
            shown = printable(reason).encode(errors="backslashreplace")
            name = _free_name(_extended(target, ".reason.txt"), directory)  # a partner may have sent one of that name
            with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=directory), "wb") as text:
                text.write(shown + b"\n")


def _opened(opened: ExitStack, name: str | Path, root: int | None = None) -> int:
    directory = os.open(name, _DIRECTORY, dir_fd=root)
    opened.callback(os.close, directory)
    return directory


def _move(name: str, directory: int, target: str, place: int) -> None:
    """Rename a file; to another file system it is copied, then removed, so that an interruption loses nothing."""
    try:
        os.rename(name, target, src_dir_fd=directory, dst_dir_fd=place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(name, directory, target, place)
        os.unlink(name, dir_fd=directory)


def _copy(name: str, directory: int, target: str, place: int) -> None:
    """Copy a partner's file, under a name of its own until it is whole and synced; nothing stays of a failed one."""
    part = f".{os.getpid()}.part"
    with os.fdopen(os.open(name, _FILE, dir_fd=directory), "rb") as source:
        if not _is_partners_file(os.fstat(source.fileno())):
            raise FileNotFoundError(name)
        with suppress(FileNotFoundError):  # of a process that was killed
            os.unlink(part, dir_fd=place)
        try:
            with os.fdopen(os.open(part, _NEW, 0o644, dir_fd=place), "wb") as copy:
                shutil.copyfileobj(source, copy)
                copy.flush()
                os.fsync(copy.fileno())
            os.rename(part, target, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=place)
            raise


def _is_partners_file(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def _free_name(name: str, directory: int) -> str:
    """Return ``name``, or with a number that is free; the number of looks grows with the logarithm of that number."""
    if not _exists(name, directory):
        return name
    taken, free = 1, 2
    while _exists(_extended(name, f".{free}"), directory):
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        taken, free = (middle, free) if _exists(_extended(name, f".{middle}"), directory) else (taken, middle)
    return _extended(name, f".{free}")


def _extended(name: str, extension: str) -> str:
    """Return ``name`` with ``extension``, cut where file systems take no longer name."""
    room = _LONGEST_NAME - len(extension)
    while len(os.fsencode(name)) > room:
        name = name[:-1]
    return f"{name}{extension}"


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
