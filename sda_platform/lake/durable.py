"""Files that survive a power loss: written whole, synced, then named.

A renamed file that was never synced can come back empty, and a directory that was never synced can lose the name.
So data is synced before it gets its name, and the directory after. An object store has no such calls: there a put is
durable once it returns. A file system may bring its own (the simulated one of the tests does).
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from upath import UPath

from sda_platform import failpoints

# What file systems answer that have no hard links; there `create` is not exclusive.
WITHOUT_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
# What an object store answers to a conditional put of an object that exists, or that another client is putting.
_PRECONDITION_FAILED, _CONCURRENT_PUT = "PreconditionFailed", "ConditionalRequestConflict"
_PARTIAL_SUFFIX = ".tmp"
_FOREIGN_PARTIAL_S = 600.0


def write(path: UPath, data: bytes) -> None:
    """Write ``data`` to ``path`` so that it is there whole or not at all, and there for good on return."""
    if not is_synced_by_hand(path):
        path.fs.pipe_file(path.path, data)
        return
    with _partial(path, data) as partial:
        partial.rename(path)
    failpoints.hit("durable.renamed")
    sync([path.parent])


def create(path: UPath, data: bytes) -> bool:
    """As `write`, where there is no file at ``path`` yet; False, and nothing is changed, where there is one.

    Of several threads or processes that create one path at once, one gets True: a local link and an object store's
    conditional put are exclusive.
    """
    if not is_synced_by_hand(path):
        return put_if_absent(path, data)
    if path.exists():
        return False
    with _partial(path, data) as partial:
        is_new = _give_new_name(partial, path)
        if partial.exists():
            partial.unlink()
    failpoints.hit("durable.renamed")
    sync([path.parent])
    return is_new


def _give_new_name(partial: UPath, path: UPath) -> bool:
    """Name the file ``partial`` also, or only, ``path``; False where that name is taken."""
    if path.protocol in ("", "file"):
        try:
            os.link(str(partial), str(path))
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in WITHOUT_LINKS:
                raise
        else:
            return True
    if path.exists():
        return False
    partial.rename(path)
    return True


def put_if_absent(path: UPath, data: bytes) -> bool:
    """Put an object where there is none at ``path`` (``If-None-Match: *``); False where there is one.

    A put whose answer was lost is repeated by the client, and is then refused by itself: the caller compares the bytes.
    """
    while True:
        try:
            path.fs.pipe_file(path.path, data, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            code = _store_code(error)
            if code == _PRECONDITION_FAILED:
                return False
            if code != _CONCURRENT_PUT:
                raise
        else:
            return True


def _store_code(error: OSError) -> str:
    """Return the code with which an object store refused a request; s3fs raises it as the cause."""
    answer = getattr(error.__cause__, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


@contextmanager
def _partial(path: UPath, data: bytes) -> Iterator[UPath]:
    """The synced partial file that becomes ``path``, a file of its own for every attempt.

    A shared one could be truncated after it was given its name. One that a full disk refuses is removed: retries would
    leave one each.
    """
    make_directory(path.parent)
    partial = _new_partial(path)
    try:
        partial.write_bytes(data)
        failpoints.hit("durable.written")
        sync([partial])
        failpoints.hit("durable.synced")
        yield partial
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise
    finally:
        _open_partials.pop(str(partial), None)


def _new_partial(path: UPath) -> UPath:
    """An empty file that no other attempt has, of this process or of one in another container with the same id."""
    attempt, number = object(), 0
    while True:
        partial = path.with_name(f".{path.name}.{os.getpid()}.{number}{_PARTIAL_SUFFIX}")
        if _open_partials.setdefault(str(partial), attempt) is attempt:
            try:
                partial.open("xb").close()
            except OSError as error:
                del _open_partials[str(partial)]
                if not isinstance(error, FileExistsError):
                    raise
            else:
                return partial
        number += 1


def sweep_partials(partials: Iterable[UPath], now_s: float) -> None:
    """Remove those of these partial files whose writer was killed: of this process, or unchanged for ten minutes.

    ``now_s`` is the wall time. Files whose name is not that of a partial file are left alone.
    """
    for partial in partials:
        writer = partial.name.rsplit(".", 3)[1:]
        is_partial = partial.name.startswith(".") and f".{writer[-1]}" == _PARTIAL_SUFFIX
        if not is_partial or str(partial) in _open_partials:
            continue
        with suppress(FileNotFoundError):
            if writer[0] == str(os.getpid()) or now_s - partial.stat().st_mtime >= _FOREIGN_PARTIAL_S:
                partial.unlink()


_open_partials: dict[str, object] = {}


def make_directory(path: UPath) -> None:
    """Have the directory ``path``, there for good on return. An object store has none: names of objects suffice."""
    if not is_synced_by_hand(path):
        return
    missing = list(takewhile(lambda p: not p.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    sync(folder.parent for folder in missing)


def directories_above(path: UPath) -> Iterator[UPath]:
    """Yield the directories above ``path`` that may have been made for it, the nearest first.

    A mount point ends them; one that we may not list was made by others.
    """
    for folder in path.parents:
        if not _is_local(folder) or os.access(str(folder), os.R_OK):
            yield folder
        if _is_local(folder) and os.path.ismount(str(folder)):
            return


def is_synced_by_hand(path: UPath) -> bool:
    """Return whether files there need `sync`: on a local file system they do, in an object store a put is durable."""
    return _is_local(path) or hasattr(path.fs, "fsync")


def sync(paths: Iterable[UPath]) -> None:
    """Return once these files and directories are on disk. Raises OSError, with the path."""
    for path in paths:
        if _is_local(path):
            descriptor = os.open(str(path), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error
            finally:
                os.close(descriptor)
        elif hasattr(path.fs, "fsync"):
            path.fs.fsync(path.path)


def sync_below(place: Path) -> None:
    """Return once a local directory is on disk, with all that is below it. Raises OSError, with the path."""
    for directory, _, files in os.walk(place):
        sync(UPath(directory, name) for name in (*files, ""))


def forget_cached(path: UPath) -> None:
    """Have the next read of a local file come from the disk, as far as the system allows; elsewhere do nothing."""
    if _is_local(path) and hasattr(os, "posix_fadvise"):
        descriptor = os.open(str(path), os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _is_local(path: UPath) -> bool:
    return path.protocol in ("", "file")
