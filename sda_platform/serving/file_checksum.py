"""The checksums of a file's parts, kept beside it: find what a format without page checksums does not."""

import zlib
from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

from sda_platform.serving.errors import DamagedIndex

_PART_BYTES = 2**18


class FileChecksum:
    """CRC-32 of every part of ``file``, recorded after each write and compared before the file is read.

    A crash between a write and its record makes the file count as damaged: what is derived is made again.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._record = file.with_name(f"{file.name}.crc32")
        self._parts: list[int] = []
        self._looked_at = 0

    def record(self) -> None:
        """Record the file as it is now."""
        self._parts = list(self._from(0))
        partial = self._record.with_name(f"{self._record.name}.part")
        partial.write_text(self._text(self._parts))
        partial.replace(self._record)

    def require(self) -> None:
        """Raise DamagedIndex unless the whole file is as recorded."""
        recorded = self._record.read_text(errors="replace") if self._record.exists() else None
        self._parts = list(self._from(0))
        if self._text(self._parts) != recorded:
            what = "nothing was recorded of it" if recorded is None else "it is not as it was written"
            raise DamagedIndex(f"{self._file}: {what}; rebuild the index")

    def require_more(self, parts: int) -> None:
        """Compare the next ``parts`` with what was recorded, from the beginning again after the last.

        Raises DamagedIndex, which names the bytes.
        """
        first = self._looked_at if self._looked_at < len(self._parts) else 0
        recorded = self._parts[first : first + parts]
        for number, (wanted, found) in enumerate(zip_longest(recorded, islice(self._from(first), parts)), first):
            if found != wanted:
                begin, end = number * _PART_BYTES, (number + 1) * _PART_BYTES
                raise DamagedIndex(f"{self._file}: bytes {begin} to {end} are not as they were written; rebuild it")
        self._looked_at = first + parts

    def _from(self, number: int) -> Iterator[int]:
        with self._file.open("rb", buffering=0) as file:
            file.seek(number * _PART_BYTES)
            while part := file.read(_PART_BYTES):
                yield zlib.crc32(part)

    def _text(self, parts: list[int]) -> str:
        return " ".join([str(self._file.stat().st_size), *(f"{each:08x}" for each in parts)])
