"""The locks of a lake and of landing zones on a local disk: one platform at a time works on them.

The lock of a home excludes only platforms of that home. Delta's log store does not promise that two engines on one file
system exclude each other. Two platforms on the same landing zones would each take a part of what lands. The kernel
releases a lock with the process that holds it. An object store has no locks: there Delta's put-if-absent excludes
writers, and nothing is repaired at a start. Stdlib only.
"""

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import IO

from sda_platform.lake.object_store import is_object_store

LOCK_FILE, LANDING_LOCK_FILE = "lake.lock", "landing.lock"


class LakeInUse(RuntimeError):
    """Another platform works on this lake or these landing zones."""


def take_lake_lock(lake_uri: str, home: Path) -> IO[str] | None:
    """Hold the lake at ``lake_uri`` for the platform of ``home`` until the returned file is closed.

    None where the lake is in an object store. Raises LakeInUse, which names the holder.
    """
    return _taken(lake_uri, LOCK_FILE, home, "the lake", "another lake with SDA_LAKE")


def take_landing_lock(landing_uri: str, home: Path) -> IO[str] | None:
    """Hold the landing zones below ``landing_uri``, likewise."""
    return _taken(landing_uri, LANDING_LOCK_FILE, home, "the landing directory", "another one with SDA_LANDING")


def _taken(uri: str, name: str, home: Path, what: str, other: str) -> IO[str] | None:
    if is_object_store(uri):
        return None
    directory = Path(uri).absolute()
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / name).open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = _described(lock.read())
        lock.close()
        raise LakeInUse(f"{what} {directory} is in use by {holder}: stop that platform, or choose {other}") from None
    lock.truncate(0)
    json.dump({"home": str(home), "pid": os.getpid(), "host": socket.gethostname()}, lock)
    lock.flush()
    return lock


def _described(text: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        holder = json.loads(text)
        return f"the platform of {holder['home']} (process {holder['pid']} on {holder['host']})"
    return "another platform"
