"""Unit tests keep their files in memory, where there is room: thousands of syncs then wait for no disk.

That something is synced is asserted by counting the calls (the fixture ``synced``), or on the simulated disk.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 2**30


@pytest.fixture(scope="session", autouse=True)
def place_of_files() -> Iterator[Path | None]:
    """The directory in memory in which temporary files are made; None where there is none."""
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _NEEDED_BYTES:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="sda-unit-", dir=_MEMORY) as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", place)
        yield Path(place)


@pytest.fixture
def tmp_path(tmp_path: Path, place_of_files: Path | None) -> Iterator[Path]:
    """As pytest's own, in memory."""
    if place_of_files is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)
