"""Files that survive a power loss: written whole, synced, then named.

A renamed file that was never synced can come back empty, and a directory that was never synced can forget the name.
So data is synced before it gets its name, and the directory after. An object store has no such calls: there a put is
durable once it returns. A file system may bring its own (the simulated one of the tests does).
"""

import os
from collections.abc import Iterable

from upath import UPath

from sda_platform import faults


def write(path: UPath, data: bytes) -> None:
    """Write ``data`` to ``path`` so that it is there whole or not at all, and there for good on return."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.tmp")
    with partial.open("wb") as file:
        file.write(data)
    faults.reach("durable.written")
    sync([partial])
    faults.reach("durable.synced")
    partial.rename(path)
    faults.reach("durable.renamed")
    sync([path.parent])


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
