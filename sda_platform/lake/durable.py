"""Files that survive a power loss: written whole, synced, then named.

A renamed file that was never synced can come back empty, and a directory that was never synced can forget the name.
So data is synced before it gets its name, and the directory after. An object store has no such calls: there a put is
durable once it returns. A file system may bring its own (the simulated one of the tests does).
"""

import os
from collections.abc import Iterable
from itertools import takewhile

from upath import UPath

from sda_platform import faults


def write(path: UPath, data: bytes) -> None:
    """Write ``data`` to ``path`` so that it is there whole or not at all, and there for good on return."""
    make_directory(path.parent)
    # Two processes that write the same file each have a partial one.
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with partial.open("wb") as file:
        file.write(data)
    faults.reach("durable.written")
    sync([partial])
    faults.reach("durable.synced")
    partial.rename(path)
    faults.reach("durable.renamed")
    sync([path.parent])


def make_directory(path: UPath) -> None:
    """Have the directory ``path``, there for good on return."""
    missing = list(takewhile(lambda p: not p.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    sync(folder.parent for folder in missing)


def is_synced_by_hand(path: UPath) -> bool:
    """Whether files there need `sync`: on a local file system they do, in an object store a put is durable."""
    return path.protocol in ("", "file") or hasattr(path.fs, "fsync")


def sync(paths: Iterable[UPath]) -> None:
    """Return once these files and directories are on disk."""
    for path in paths:
        if path.protocol in ("", "file"):
            descriptor = os.open(str(path), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        elif hasattr(path.fs, "fsync"):
            path.fs.fsync(path.path)
