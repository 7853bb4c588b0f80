"""Copies of files for backups, with the SHA-256 of what was copied."""

import errno
import hashlib
import math
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

_SQLITE = b"SQLite format 3\0"
_CHUNK_BYTES = 2**20


def is_sqlite(path: Path) -> bool:
    """Return whether a file is a database of SQLite."""
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def copy_database(path: Path, copy: Path) -> None:
    """Copy a database that others may write, as of one moment."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as to:
        source.backup(to)


def copied(path: Path, copy: Path, most_bytes: int | None = None) -> str:
    """Copy a regular file, or the first ``most_bytes`` and one of it, and return the SHA-256 of what was copied.

    A link, pipe or device in the place of a file may have come from another machine, and may have no end. Raises
    FileNotFoundError for them.
    """
    found = hashlib.sha256()
    left = math.inf if most_bytes is None else most_bytes + 1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise FileNotFoundError(path) if error.errno == errno.ELOOP else error from None
    with os.fdopen(descriptor, "rb") as source, copy.open("wb") as target:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(path)
        while chunk := source.read(int(min(_CHUNK_BYTES, left))):
            left -= len(chunk)
            found.update(chunk)
            target.write(chunk)
    return found.hexdigest()


def sha256_of(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
