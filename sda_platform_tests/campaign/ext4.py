"""A disk whose state can be copied at any moment: ext4 in an image file, mounted through a loop device.

Reading the image sees what the file system has written to its device, and nothing of what is only in memory: a copy of
it is what a power loss at that moment leaves.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_MIB = 2**20
# The journal writes by itself only after so many seconds: what is on the device before then was synced.
_OPTIONS = "loop,commit=300"


def make(image: Path, size_mib: int = 32) -> None:
    """An empty file system in ``image``. Raises CalledProcessError."""
    with image.open("wb") as file:
        file.truncate(size_mib * _MIB)
    _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[None]:
    """Within the block ``place`` shows what is in ``image``. Raises CalledProcessError."""
    place.mkdir(parents=True, exist_ok=True)
    _run("mount", "-o", _OPTIONS, str(image), str(place))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


def copy(image: Path, target: Path) -> None:
    """The device as it is now, without its holes."""
    _run("cp", "--sparse=always", str(image), str(target))


@cache
def refusal() -> str:
    """Why no such disk can be had here; empty where it can."""
    with tempfile.TemporaryDirectory(prefix="sda-ext4-") as directory:
        image = Path(directory) / "probe"
        try:
            make(image)
            with mounted(image, Path(directory) / "place"):
                return ""
        except FileNotFoundError as error:
            return f"{error.filename} is not installed"
        except subprocess.CalledProcessError as error:
            return f"loop devices cannot be mounted: {error.stderr.decode().strip()}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
