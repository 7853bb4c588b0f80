"""The platform's files are its own user's: the umask of its processes, the mode of its home, files of secrets.

Loopback and a home are open to all users of a machine unless they are closed. Stdlib only.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ALL = stat.S_IRWXU | _OTHERS


class ExposedFile(Exception):
    """Others than its user may use a file; the text says which, and how that ends."""


@contextmanager
def private_files(umask: int) -> Iterator[None]:
    """Withhold these permissions from every file that this process and its children make within the block."""
    earlier = os.umask(umask)
    try:
        yield
    finally:
        os.umask(earlier)


def own_umask() -> int:
    """Read the umask of this process."""
    found = os.umask(_ALL)
    os.umask(found)
    return found


def make_private(home: Path) -> None:
    """Make ``home``, and take from others what the umask withholds, also from a home of an earlier version.

    A directory of another user stays as it is: an operator has made it, such as the volume of a container.
    """
    home.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & own_umask():
        with suppress(PermissionError):
            home.chmod(mode & ~own_umask())


def private_content(path: Path) -> bytes:
    """Return the content of a file that its user alone may use. Raises ExposedFile, OSError.

    What root owns a group may read as well: so Kubernetes hands a secret to the group of a pod, which is no user's.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        mode = stat.S_IMODE(found.st_mode)
        is_handed_over = found.st_uid == 0 and os.geteuid() != 0
        if mode & (_OTHERS & ~stat.S_IRGRP if is_handed_over else _OTHERS):
            raise ExposedFile(f"others may use {path} (mode {mode:04o}): chmod 600 {path}")
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that its user alone may use. Raises FileExistsError, OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR), "wb") as file:
        file.write(content)
