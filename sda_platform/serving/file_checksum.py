"""The checksum of a whole file, kept in a file beside it: finds what a format without page checksums does not."""

import zlib
from pathlib import Path

from sda_platform.serving.errors import DamagedIndex

_CHUNK_BYTES = 2**18


class FileChecksum:
    """CRC-32 and length of ``file``, recorded after each write and compared before the file is read.

    A crash between a write and its record makes the file count as damaged: what is derived is made again.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._record = file.with_name(f"{file.name}.crc32")

    def record(self) -> None:
        """Record the file as it is now."""
        partial = self._record.with_name(f"{self._record.name}.part")
        partial.write_text(self._now())
        partial.replace(self._record)

    def require(self) -> None:
        """Raise DamagedIndex unless the file is as recorded."""
        recorded = self._record.read_text(errors="replace") if self._record.exists() else "nothing"
        found = self._now()
        if recorded != found:
            raise DamagedIndex(
                f"{self._file}: checksum and length are {found}, {recorded} was recorded; rebuild the index"
            )

    def _now(self) -> str:
        checksum = length = 0
        with self._file.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK_BYTES):
                checksum, length = zlib.crc32(chunk, checksum), length + len(chunk)
        return f"{checksum:08x} {length}"
