"""An archive that others made costs no more than its bound before its members are counted."""

import io
import re
import zipfile
from pathlib import Path

import pytest

import sda_platform
from sda_platform.bounded_zip import open_zip

# What writes an archive is not reading one of others.
_READS = re.compile(r"zipfile\.ZipFile\((?!self\.stream, \"w\"\))")


def _archive(members: int) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(members):
            archive.writestr(f"{number:03}", bytes([number]) * 5000)
    return made


def test_an_archive_within_its_bound_is_read_whole() -> None:
    with open_zip(_archive(20), 10_000) as archive:
        assert [archive.read(name) for name in archive.namelist()] == [bytes([n]) * 5000 for n in range(20)]


def test_a_directory_beyond_its_bound_is_not_read() -> None:
    with pytest.raises(zipfile.BadZipFile, match=r"its directory has 4,900 bytes, and may have 4,899"):
        open_zip(_archive(100), 4_899)


def test_every_archive_of_others_is_opened_so() -> None:
    root = Path(sda_platform.__file__).parent
    found = {path.name for path in root.rglob("*.py") if _READS.search(path.read_text(encoding="utf-8"))}
    assert found == {"bounded_zip.py"}
