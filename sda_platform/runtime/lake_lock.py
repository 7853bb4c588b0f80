"""The lock of a lake: one platform at a time works on the tables of a lake on a local disk.

The lock of a home excludes only platforms of that home. Delta's log store does not promise that two engines on one file
system exclude each other. The kernel releases the lock with the process that holds it. An object store has no locks:
there Delta's put-if-absent excludes writers, and nothing is repaired at a start. Stdlib only.
"""

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import IO

from sda_platform.lake.object_store import is_object_store

LOCK_FILE = "lake.lock"


class LakeInUse(RuntimeError):
    """Another platform works on this lake."""


def take_lake_lock(lake_uri: str, home: Path) -> IO[str] | None:
    """Hold the lake at ``lake_uri`` for the platform of ``home`` until the returned file is closed.

    None where the lake is in an object store. Raises LakeInUse, which names the holder.
    """
    if is_object_store(lake_uri):
        return None
    directory = Path(lake_uri).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / LOCK_FILE).open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = _described(lock.read())
        lock.close()
        raise LakeInUse(
            f"the lake {directory} is in use by {holder}: stop that platform, or choose another lake with SDA_LAKE"
        ) from None
    lock.truncate(0)
    json.dump({"home": str(home), "pid": os.getpid(), "host": socket.gethostname()}, lock)
    lock.flush()
    return lock


def _described(text: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        holder = json.loads(text)
        return f"the platform of {holder['home']} (process {holder['pid']} on {holder['host']})"
    return "another platform"
