"""Files that survive a power loss: written whole, synced, then named.

A renamed file that was never synced can come back empty, and a directory that was never synced can lose the name.
So data is synced before it gets its name, and the directory after. An object store has no such calls: there a put is
durable once it returns. A file system may bring its own (the simulated one of the tests does).
"""

import errno
import os
from collections.abc import Iterable, Iterator
from itertools import takewhile

from upath import UPath

from sda_platform import failpoints

# What file systems answer that have no hard links; there `create` is not exclusive.
WITHOUT_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
# What an object store answers to a conditional put of an object that exists, or that another client is putting.
_PRECONDITION_FAILED, _CONCURRENT_PUT = "PreconditionFailed", "ConditionalRequestConflict"


def write(path: UPath, data: bytes) -> None:
    """Write ``data`` to ``path`` so that it is there whole or not at all, and there for good on return."""
    if not is_synced_by_hand(path):
        path.fs.pipe_file(path.path, data)
        return
    partial = _partial(path, data)
    partial.rename(path)
    failpoints.hit("durable.renamed")
    sync([path.parent])


def create(path: UPath, data: bytes) -> bool:
    """As `write`, where there is no file at ``path`` yet; False, and nothing is changed, where there is one.

    Of several processes that create one path at once, one gets True: a local link and an object store's conditional
    put are exclusive.
    """
    if not is_synced_by_hand(path):
        return put_if_absent(path, data)
    if path.exists():
        return False
    partial = _partial(path, data)
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
    """The code with which an object store refused a request; s3fs raises it as the cause."""
    answer = getattr(error.__cause__, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


def _partial(path: UPath, data: bytes) -> UPath:
    """The synced partial file that becomes ``path``; two processes that write the same file each have one."""
    make_directory(path.parent)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with partial.open("wb") as file:
        file.write(data)
    failpoints.hit("durable.written")
    sync([partial])
    failpoints.hit("durable.synced")
    return partial


def make_directory(path: UPath) -> None:
    """Have the directory ``path``, there for good on return. An object store has none: names of objects suffice."""
    if not is_synced_by_hand(path):
        return
    missing = list(takewhile(lambda p: not p.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    sync(folder.parent for folder in missing)


def directories_above(path: UPath) -> Iterator[UPath]:
    """The directories above ``path`` that may have been made for it, the nearest first.

    A mount point ends them; one that we may not list was made by others.
    """
    for folder in path.parents:
        if not _is_local(folder) or os.access(str(folder), os.R_OK):
            yield folder
        if _is_local(folder) and os.path.ismount(str(folder)):
            return


def is_synced_by_hand(path: UPath) -> bool:
    """Whether files there need `sync`: on a local file system they do, in an object store a put is durable."""
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
