"""Checksums of a file as Hadoop's local file system keeps them, in a hidden file beside it.

Spark refuses a file that differs from them, and so does the deep examination (`recovery.file_content`). They cover the
whole file. Stdlib only: the process that merges files imports this.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

# The file: this mark, the bytes per checksum (4 bytes), then the CRC-32 of each stretch of so many bytes; big-endian.
MARK: Final = b"crc\0"
_NUMBER_BYTES: Final = 4
_STRETCH: Final = 4_096
_READ_AT_ONCE: Final = 4 * 2**20


def name_of(file_name: str) -> str:
    """Return the name of the file that has the checksums of ``file_name``, in the same directory."""
    return f".{file_name}.crc"


def keep(file: Path) -> None:
    """Write the checksums of ``file`` as it is now, unless there are some; whole or not at all, and not synced."""
    target = file.with_name(name_of(file.name))
    if target.exists():
        return
    partial = target.with_name(f"{target.name}.tmp")
    with file.open("rb") as data, partial.open("wb") as sums:
        sums.write(MARK + _STRETCH.to_bytes(_NUMBER_BYTES, "big"))
        sums.writelines(_checksums(data, _STRETCH))
    partial.rename(target)


def differ(data: BinaryIO, kept: bytes) -> bool:
    """Return whether the content of ``data`` differs from ``kept``, the content of a file of checksums."""
    stretch = int.from_bytes(kept[len(MARK) :][:_NUMBER_BYTES], "big")
    expected, position = memoryview(kept)[len(MARK) + _NUMBER_BYTES :], 0
    for found in _checksums(data, stretch):
        if found != expected[position : position + len(found)]:
            return True
        position += len(found)
    return False


def _checksums(data: BinaryIO, stretch: int) -> Iterator[bytes]:
    """Yield the checksums of all stretches, those of a few MiB at a time."""
    while block := data.read(max(_READ_AT_ONCE // stretch, 1) * stretch):
        parts = (block[start : start + stretch] for start in range(0, len(block), stretch))
        yield b"".join(zlib.crc32(part).to_bytes(_NUMBER_BYTES, "big") for part in parts)
