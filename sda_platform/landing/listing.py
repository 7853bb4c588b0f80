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
from functools import partial
from typing import Any

from upath import UPath

from sda_platform.lake.object_store import is_object_store
from sda_platform.lake.storage import entries_of
from sda_platform.landing.exclusive_rename import rename_new

# A path that no file can have; a directory or a link in the place of a file.
_NO_SUCH_FILE = frozenset(
    {errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
)
_ESCAPED_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")
# Opening must neither follow a link nor wait for the other end of a pipe.
_AT_ONCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True)
class Listing:
    """Names in a directory: ``files`` that can be read, those that ``unreadable`` are, and what is no regular file."""

    files: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def list_directory(directory: UPath) -> Listing:
    """Return what ``directory`` holds now, in no promised order; nothing where it does not exist."""
    try:
        return _local(directory) if is_local(directory) else _remote(directory)
    except FileNotFoundError:
        return Listing()


def is_local(path: UPath) -> bool:
    """Return whether the operating system's own calls reach this path."""
    return isinstance(path, os.PathLike)


def shown_name(stored: str) -> str:
    """A file's name as valid text."""
    return os.fsencode(stored).decode("utf-8", "backslashreplace")


def stored_name(shown: str) -> str:
    """Return the inverse of `shown_name` for a name that had to be escaped."""
    return _ESCAPED_BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), shown)


def path_of(directory: UPath, name: str) -> UPath:
    """Return the path of the file that is shown as ``name``, whether its name had to be escaped or not."""
    path, stored = directory / name, stored_name(name)
    return path if stored == name or status(path) is not None else directory / stored


def status(path: UPath) -> Any:
    """Return the stat result of a regular file; None where there is no such file."""
    try:
        found = path.lstat() if is_local(path) else path.stat()
    except OSError as error:
        if _is_absent(path, error):
            return None
        raise
    return found if stat.S_ISREG(found.st_mode) else None


def bytes_at(path: UPath) -> bytes | None:
    """Return the content of a regular file; None where there is no such file."""
    if is_local(path):
        return _local_bytes(path.path)
    try:
        return bytes(path.read_bytes())
    except FileNotFoundError:
        return None


def move_file(source: UPath, target: UPath) -> bool:
    """Rename a regular file; False if there is none at ``source``."""
    if is_local(source):
        return _moved(source.path, target.path)
    try:
        source.rename(target)
    except FileNotFoundError:
        return False
    return True


# What follows finds local files by text: a path object for each of many files costs more than the calls of the system.


def bytes_in(directory: UPath, name: str) -> bytes | None:
    """`bytes_at` of the file that ``directory`` shows as ``name``."""
    return _local_bytes(_text_of(directory, name)) if is_local(directory) else bytes_at(path_of(directory, name))


def holds_file(directory: UPath, name: str) -> bool:
    """Return whether ``directory`` has a file of exactly this name.

    Any other answer of the file system is an OSError: a file that cannot be looked up may exist.
    """
    if not is_local(directory):
        return bool((directory / name).exists())
    try:
        os.stat(f"{directory}/{name}")  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def move_between(source: tuple[UPath, str], target: tuple[UPath, str]) -> bool:
    """`move_file` from what a directory shows as a name to exactly a name in another."""
    if not is_local(source[0]):
        return move_file(path_of(*source), target[0] / target[1])
    return _moved(_text_of(*source), f"{target[0]}/{target[1]}")


def move_new(source: tuple[UPath, str], target: tuple[UPath, str]) -> bool:
    """`move_between`; False, and nothing is changed, where the target exists.

    One step where the file system has such a call. An object store has none: there the target is looked up before.
    """
    if is_local(source[0]):
        text = _text_of(*source)
        return _is_regular(text) and rename_new(text, f"{target[0]}/{target[1]}")
    own_call = getattr(source[0].fs, "rename_new", None)
    if own_call is not None:
        return bool(own_call(path_of(*source).path, (target[0] / target[1]).path))
    return not holds_file(*target) and move_between(source, target)


def _text_of(directory: UPath, name: str) -> str:
    """`path_of` as text."""
    return str(path_of(directory, name)) if "\\" in name else f"{directory}/{name}"


def _local_bytes(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, _AT_ONCE)
    except OSError as error:
        if error.errno in _NO_SUCH_FILE or (error.errno == errno.EACCES and not _is_regular(path)):
            return None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        return b"".join(iter(partial(os.read, descriptor, found.st_size + 1), b""))
    finally:
        os.close(descriptor)


def _moved(source: str, target: str) -> bool:
    if not _is_regular(source):
        return False
    try:
        os.rename(source, target)  # noqa: PTH104
    except FileNotFoundError:
        return False
    return True


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return False
        raise


def _is_absent(path: UPath, error: OSError) -> bool:
    """Return whether ``error`` means that there is no such file. A client of an object store uses these numbers
    otherwise.
    """
    return isinstance(error, FileNotFoundError) or (is_local(path) and error.errno in _NO_SUCH_FILE)


def changed_s(found: Any) -> float:
    """Return the wall time of a file's last change, from its `status`.

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
    if is_object_store(str(directory)):
        names, directories = entries_of(directory)
        return Listing(tuple(names), (), tuple(directories))
    directory.fs.invalidate_cache(directory.path)  # some clients of object stores keep their first listing
    files: list[str] = []
    others: list[str] = []
    for info in directory.fs.ls(directory.path, detail=True):
        name = str(info["name"]).rstrip("/").rpartition("/")[2]
        (files if info["type"] == "file" else others).append(name)
    return Listing(tuple(files), (), tuple(others))
