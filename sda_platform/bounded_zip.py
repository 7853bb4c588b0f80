"""ZIP archives that others made: a directory of members larger than its bound is refused before it is read.

Python's reader takes the directory whole. A gigabyte of it is twenty million members, and ten gigabytes of memory.
"""

import zipfile
from typing import IO, Any


def open_zip(file: IO[bytes], most_directory_bytes: int) -> zipfile.ZipFile:
    """Open the archive in ``file``, a chunk of which is at most as large. Raises BadZipFile, OSError."""
    return zipfile.ZipFile(_Bounded(file, most_directory_bytes))


class _Bounded:
    """A file of which no more is read at once than ``most_bytes``."""

    def __init__(self, file: IO[bytes], most_bytes: int) -> None:
        self._file, self._most_bytes = file, most_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes; without one the rest, which is the end of an archive, of 64 KiB. Raises BadZipFile."""
        if size > self._most_bytes:
            raise zipfile.BadZipFile(f"its directory has {size:,} bytes, and may have {self._most_bytes:,}")
        return self._file.read(size)
