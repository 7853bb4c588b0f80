"""What lies in a directory that partners write to: segments' files, and everything else that they may put there.

Only regular files that this process may read can become segments. Directories, links, pipes and files without read
permission are listed apart, so that they are reported and nothing stumbles over them. Names are text: a name that is
not UTF-8 is written with ``\\xNN`` for each byte that is none, and `stored_name` turns that back.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass
from typing import Any

from upath import UPath

# A path that no file can have; a directory or a link in the place of a file.
_NO_SUCH_FILE = frozenset(
    {errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
)
_ESCAPED_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")


@dataclass(frozen=True)
class Listing:
    """Names in a directory: ``files`` that can be read, those that ``unreadable`` are, and what is no regular file."""

    files: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def list_directory(directory: UPath) -> Listing:
    """What ``directory`` holds now, in no promised order; nothing where it does not exist."""
    try:
        return _local(directory) if is_local(directory) else _remote(directory)
    except FileNotFoundError:
        return Listing()


def is_local(path: UPath) -> bool:
    """Whether the operating system's own calls reach this path."""
    return path.protocol in ("", "file")


def shown_name(stored: str) -> str:
    """A file's name as valid text."""
    return os.fsencode(stored).decode("utf-8", "backslashreplace")


def stored_name(shown: str) -> str:
    """The inverse of `shown_name` for a name that had to be escaped."""
    return _ESCAPED_BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), shown)


def path_of(directory: UPath, name: str) -> UPath:
    """The path of the file that is shown as ``name``, whether its name had to be escaped or not."""
    path, stored = directory / name, stored_name(name)
    return path if stored == name or status(path) is not None else directory / stored


def holds_file(directory: UPath, name: str) -> bool:
    """Whether ``directory`` has a file of this name. A local one is found without a path object, which costs more.

    Any other answer of the file system is an OSError: a file that cannot be looked up may exist.
    """
    if not is_local(directory):
        return bool((directory / name).exists())
    try:
        os.stat(f"{directory}/{name}")  # noqa: PTH116 - the call without a path object
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def status(path: UPath) -> Any:
    """The stat result of a regular file; None where there is no such file."""
    try:
        found = path.lstat() if is_local(path) else path.stat()
    except OSError as error:
        if _is_absent(path, error):
            return None
        raise
    return found if stat.S_ISREG(found.st_mode) else None


def bytes_at(path: UPath) -> bytes | None:
    """The content of a regular file; None where there is no such file."""
    if is_local(path) and status(path) is None:
        return None
    try:
        return bytes(path.read_bytes())
    except OSError as error:
        if _is_absent(path, error):
            return None
        raise


def _is_absent(path: UPath, error: OSError) -> bool:
    """Whether ``error`` means that there is no such file. A client of an object store uses these numbers otherwise."""
    return isinstance(error, FileNotFoundError) or (is_local(path) and error.errno in _NO_SUCH_FILE)


def changed_s(found: Any) -> float:
    """The wall time of a file's last change, from its `status`.

    Tools that copy files keep their modification time (``rsync -t``, ``cp -p``, archives); the time at which the file
    got its name or its content here is never earlier than its time of change.
    """
    return float(max(found.st_mtime, getattr(found, "st_ctime", 0.0) or 0.0))


def _local(directory: UPath) -> Listing:
    files, unreadable, others = [], [], []
    with os.scandir(str(directory)) as entries:
        for entry in entries:
            name = shown_name(entry.name)
            if not entry.is_file(follow_symlinks=False):
                others.append(name)
            elif os.access(entry.path, os.R_OK, effective_ids=True):
                files.append(name)
            else:
                unreadable.append(name)
    return Listing(tuple(files), tuple(unreadable), tuple(others))


def _remote(directory: UPath) -> Listing:
    directory.fs.invalidate_cache(directory.path)  # some clients of object stores keep their first listing
    files: list[str] = []
    others: list[str] = []
    for info in directory.fs.ls(directory.path, detail=True):
        name = str(info["name"]).rstrip("/").rpartition("/")[2]
        (files if info["type"] == "file" else others).append(name)
    return Listing(tuple(files), (), tuple(others))
