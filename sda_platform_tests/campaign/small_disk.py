"""A disk that can be filled and made read-only while processes work on it: a tmpfs, where mounting is allowed."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@contextmanager
def mounted(place: Path, size_kib: int) -> Iterator[None]:
    """Within the block ``place`` is a disk of its own. Raises CalledProcessError where mounting is not allowed."""
    _mount("-t", "tmpfs", "-o", f"size={size_kib}k", "sda-campaign", str(place))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


def enlarge(place: Path, size_kib: int) -> None:
    """Give the disk at ``place`` more room."""
    _mount("-o", f"remount,size={size_kib}k", str(place))


def make_read_only(place: Path) -> bool:
    """Refuse every write from now on. False: somebody has a file open to write, so the disk stays as it was."""
    try:
        _mount("-o", "remount,ro", str(place))
    except subprocess.CalledProcessError:
        return False
    return True


def make_writable(place: Path) -> None:
    """Allow writes again."""
    _mount("-o", "remount,rw", str(place))


@cache
def is_allowed() -> bool:
    """Whether this user may mount."""
    with tempfile.TemporaryDirectory() as place:
        try:
            with mounted(Path(place), 64):
                return True
        except (subprocess.CalledProcessError, FileNotFoundError):
            return False


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
