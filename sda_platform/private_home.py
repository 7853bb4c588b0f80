"""The platform's files are its own user's: the umask of its processes, and the mode of its home.

Loopback and a home are open to all users of a machine unless they are closed. Stdlib only.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ALL = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO


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
