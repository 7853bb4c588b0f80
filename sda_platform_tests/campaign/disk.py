"""A disk that forgets what was not synced, and an fsspec file system (``sim://``) upon it.

Content becomes durable when its file is synced, a name when its directory is (POSIX promises no more; a rename is
atomic, as on every journaling file system). Until then a change is pending: a process that is killed leaves all of them
in place, a power loss keeps whatever `Loss` it is dealt.
"""

import errno
import io
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import fsspec
from fsspec.spec import AbstractFileSystem
from upath import UPath
from upath.registry import register_implementation

Loss = Literal["drop", "reorder", "tear"]
LOSSES: tuple[Loss, ...] = ("drop", "reorder", "tear")


@dataclass(eq=False)
class File:
    """Content as a reader sees it, and as it is on disk. ``is_clean``: the system writes no more of ``data``."""

    data: bytes = b""
    durable: bytes = b""
    mtime_s: float = 0.0
    is_clean: bool = False


@dataclass(frozen=True)
class Entry:
    """A pending change of names: ``came`` now leads to ``file`` (None: a directory), ``went`` to nothing."""

    came: str | None = None
    went: str | None = None
    file: File | None = None

    @property
    def paths(self) -> set[str]:
        """The names that it touches."""
        return {path for path in (self.came, self.went) if path is not None}

    def apply(self, names: dict[str, File | None]) -> None:
        """Make the change in ``names``."""
        if self.went is not None:
            names.pop(self.went, None)
        if self.came is not None:
            names[self.came] = self.file


@dataclass(frozen=True)
class Content:
    """A pending change of a file's content."""

    file: File
    data: bytes


def parent(path: str) -> str:
    """The directory that holds ``path``."""
    return path[: path.rfind("/")] or "/"


@dataclass
class Disk:
    """Names and contents, now and as they are on disk, and the changes between the two.

    ``step`` is called before every operation with its kind and path: there a test switches, kills or fails.
    """

    step: Callable[[str, str], None] = lambda _kind, _path: None
    now_s: Callable[[], float] = lambda: 0.0
    names: dict[str, File | None] = field(default_factory=lambda: {"/": None})
    durable: dict[str, File | None] = field(default_factory=lambda: {"/": None})
    pending: list[Entry | Content] = field(default_factory=list)
    is_full: bool = False

    def make_directory(self, path: str) -> None:
        """Raises FileExistsError."""
        self.step("mkdir", path)
        if path in self.names:
            raise FileExistsError(path)
        self._need_space(path)
        self._change(Entry(came=path))

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite, in two halves as large writes are: a process can die between them.

        Raises OSError (ENOSPC) on a full disk.
        """
        self.step("create", path)
        self._need_space(path)
        if parent(path) not in self.names:
            raise FileNotFoundError(path)
        file = self.names.get(path)
        if file is None:
            file = File(mtime_s=self.now_s())
            self._change(Entry(came=path, file=file))
        for part in (data[: len(data) // 2], data):
            self.step("write", path)
            self._need_space(path)
            file.data, file.mtime_s, file.is_clean = part, self.now_s(), False
            self.pending.append(Content(file, part))

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError."""
        self.step("read", path)
        return self.file(path).data

    def rename(self, source: str, target: str, *, replace: bool = True) -> None:
        """Atomic. Raises FileExistsError where ``replace`` is False and the target exists."""
        self.step("rename", target)
        file = self.file(source)
        if not replace and target in self.names:
            raise FileExistsError(target)
        if parent(target) not in self.names:
            raise FileNotFoundError(target)
        self._change(Entry(came=target, went=source, file=file))

    def unlink(self, path: str) -> None:
        """Raises FileNotFoundError."""
        self.step("unlink", path)
        self.file(path)
        self._change(Entry(went=path))

    def sync(self, path: str) -> None:
        """Make durable the content of a file, or the names in a directory.

        Where that fails (a step raises OSError) the pages of a file count as clean, as on Linux: they are not written
        any more, and the next sync succeeds.
        """
        try:
            self.step("sync", path)
        except OSError:
            failed = self.names.get(path)
            if failed is not None:
                failed.is_clean = True
                self._settle_content(failed)
            raise
        if path not in self.names:
            raise FileNotFoundError(path)
        file = self.names[path]
        if file is not None:
            if not file.is_clean:
                file.durable = file.data
            self._settle_content(file)
            return
        settled: list[Entry] = []
        wanted: set[str] = set()
        for change in reversed(self.pending):
            if isinstance(change, Entry) and (wanted & change.paths or path in map(parent, change.paths)):
                settled.append(change)
                wanted |= change.paths
        for entry in reversed(settled):
            entry.apply(self.durable)
            self.pending.remove(entry)

    def lose_power(self, loss: Loss, chance: random.Random) -> None:
        """Keep what is durable, and of the pending changes what ``loss`` and ``chance`` say.

        ``drop``: none; ``reorder``: any subset; ``tear``: all, but the last content written only as a prefix.
        """
        kept = [c for c in self.pending if loss == "tear" or (loss == "reorder" and chance.random() < 0.5)]
        torn = next((c for c in reversed(kept) if isinstance(c, Content)), None) if loss == "tear" else None
        for change in kept:
            if isinstance(change, Entry):
                change.apply(self.durable)
            elif change is torn:
                change.file.durable = change.data[: chance.choice((0, len(change.data) // 2))]
            else:
                change.file.durable = change.data
        self.durable = {path: file for path, file in self.durable.items() if self._is_reachable(path)}
        self.names, self.pending = dict(self.durable), []
        for file in self.names.values():
            if file is not None:
                file.data, file.is_clean = file.durable, False

    def below(self, directory: str) -> Iterator[str]:
        """The files somewhere below ``directory``, without a step: for oracles."""
        return (path for path, file in self.names.items() if file is not None and path.startswith(directory + "/"))

    def is_durable(self, path: str) -> bool:
        """Whether a power loss leaves the file as it is; a file that is gone cannot be lost."""
        file = self.names.get(path)
        return file is None or (self.durable.get(path) is file and file.durable == file.data)

    def file(self, path: str) -> File:
        """The file of this name. Raises FileNotFoundError."""
        file = self.names.get(path)
        if file is None:
            raise FileNotFoundError(path)
        return file

    def _settle_content(self, file: File) -> None:
        self.pending = [c for c in self.pending if not (isinstance(c, Content) and c.file is file)]

    def _need_space(self, path: str) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _change(self, entry: Entry) -> None:
        entry.apply(self.names)
        self.pending.append(entry)

    def _is_reachable(self, path: str) -> bool:
        return path == "/" or (self.durable.get(parent(path), path) is None and self._is_reachable(parent(path)))


class _Writer(io.BytesIO):
    """Hands what was written to the disk when it is closed."""

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__()
        self._disk, self._path = disk, path

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._disk.write(self._path, data)


class SimulatedFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """What fsspec and UPath see of the disk that is mounted."""

    protocol = "sim"
    root_marker = "/"
    disk: ClassVar[Disk] = Disk()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("sim://").strip("/")

    def fsync(self, path: str) -> None:
        """What `lake.durable.sync` asks of a file system."""
        self.disk.sync(self._strip_protocol(path))

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is a file or directory of this name."""
        self.disk.step("look", path)
        return self._strip_protocol(path) in self.disk.names

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Size, kind and time of the last write."""
        path = self._strip_protocol(path)
        self.disk.step("look", path)
        return self._info(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What a directory holds, in no promised order."""
        path = self._strip_protocol(path)
        self.disk.step("list", path)
        held = [p for p in self.disk.names if p != "/" and parent(p) == path]
        return [self._info(p) for p in held] if detail else held

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Raises FileExistsError."""
        path = self._strip_protocol(path)
        if create_parents and parent(path) not in self.disk.names:
            self.mkdir(parent(path))
        self.disk.make_directory(path)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Rename, replacing what is there."""
        self.disk.rename(self._strip_protocol(path1), self._strip_protocol(path2))

    def rename_new(self, path1: str, path2: str) -> bool:
        """What `landing.listing.move_new` asks of a file system."""
        try:
            self.disk.rename(self._strip_protocol(path1), self._strip_protocol(path2), replace=False)
        except (FileExistsError, FileNotFoundError):
            return False
        return True

    def rm(self, path: str, **_: Any) -> None:
        """Remove one file."""
        self.disk.unlink(self._strip_protocol(path))

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Create an empty file."""
        if truncate or not self.exists(path):
            self.disk.write(self._strip_protocol(path), b"")

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """A file opened for reading or for writing anew."""
        path = self._strip_protocol(path)
        if "x" in mode and path in self.disk.names:
            raise FileExistsError(path)
        return _Writer(self.disk, path) if mode[0] in "wx" else io.BytesIO(self.disk.read(path))

    def _info(self, path: str) -> dict[str, Any]:
        if path not in self.disk.names:
            raise FileNotFoundError(path)
        file = self.disk.names[path]
        if file is None:
            return {"name": path, "type": "directory", "size": 0}
        return {"name": path, "type": "file", "size": len(file.data), "mtime": file.mtime_s}


class SimulatedPath(UPath):
    """A path on the mounted disk. Paths are made by the thousand and taking them apart is slow, so they are kept."""

    @cached_property
    def path(self) -> str:
        """The path as the disk knows it."""
        return str(super().path)

    def __truediv__(self, key: Any) -> "SimulatedPath":
        return _path(f"{self.path}/{key}")

    def with_name(self, name: str) -> "SimulatedPath":
        """The path with another last part."""
        return _path(f"{parent(self.path)}/{name}")

    @property
    def parent(self) -> "SimulatedPath":
        """The directory that holds it."""
        return _path(parent(self.path))

    def exists(self, **_: Any) -> bool:
        """Whether there is a file or directory of this name."""
        return bool(self.fs.exists(self.path))

    def iterdir(self) -> Iterator["SimulatedPath"]:
        """What the directory holds. Raises FileNotFoundError."""
        if not self.exists():
            raise FileNotFoundError(self.path)
        return map(_path, self.fs.ls(self.path, detail=False))


@cache
def _path(path: str) -> SimulatedPath:
    return SimulatedPath(f"sim://{path}")


def mount(disk: Disk) -> None:
    """Make ``disk`` the one that ``sim://`` means in this process."""
    SimulatedFileSystem.disk = disk


fsspec.register_implementation("sim", SimulatedFileSystem, clobber=True)
register_implementation("sim", SimulatedPath, clobber=True)
