"""The content of a partner's file as a stream of chunks: as it is, unpacked, or rows of a table as text.

Every way of reading raises UnreadableContent where the file breaks off or is damaged: all archive formats carry
checksums and a mark of their end. What the disk refuses stays an OSError: the file may be good. A few megabytes are
held, whatever the file's size.
"""

import bz2
import gzip
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from sda_platform.bounded_zip import open_zip
from sda_platform.formats.format import Format
from sda_platform.formats.framing.json_array import JSON_ARRAY
from sda_platform.formats.registry import FORMATS, format_named
from sda_platform.formats.tabulated_paths import name_line
from sda_platform.formats.text import as_text, stream_as_text
from sda_platform.landing.partner_bounds import BoundExceeded, PartnerBounds

PARQUET = ".parquet"
_ARCHIVES: Mapping[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_MAGIC: Mapping[bytes, str] = {
    b"PK\x03\x04": ".zip",
    b"PK\x05\x06": ".zip",
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
_CHUNK_BYTES = 2**20
ZIP = ".zip"
_MOST_MEMBERS = 10_000
_MOST_DIRECTORY_BYTES = 4 * 2**20
# What one read of an archive can expand to is bounded by how much of it is read.
_ZST_READ_BYTES = 4096
_ZST_MAX_WINDOW_BYTES = 2**27
_ROWS = 5_000


class UnreadableContent(Exception):
    """The file ends too early or is damaged; the text has the details."""


def archive_ending(beginning: bytes) -> str:
    """Return how the name of an archive ends that begins so; empty where it is none."""
    return next((ending for magic, ending in _MAGIC.items() if beginning.startswith(magic)), "")


def without_compression(path: Path) -> Path:
    """Return the name of what is inside a compressed file, or of the file as it is; of a zip file its first member's.

    Raises UnreadableContent for a zip file without a member.
    """
    if path.suffix.lower() != ZIP:
        return Path(path.stem if path.suffix.lower() in (".zst", *_ARCHIVES) else path.name)
    with _readable(path) as file:
        first = Path(_members(open_zip(file, _MOST_DIRECTORY_BYTES))[0].filename)
    # Two files with members of one name are two files.
    return Path(f"{path.stem}{first.suffix}")


def read_chunks(
    path: Path,
    segment_format: str,
    report: Callable[[int], None],
    bounds: PartnerBounds | None = None,
    *,
    first_line: bytes = b"",
) -> Iterator[bytes]:
    """Yield the content of ``path``, at most some megabytes at a time; ``report`` is called with the position in the
    file.

    With a ``first_line`` (`first_lines`), it comes as text. Where that is the file's name, each file of a zip file has
    its own.

    Rows of a Parquet file come as the text that ``segment_format`` has for them. Raises UnreadableContent, also where
    the file expands to more than ``bounds`` allow.
    """
    suffix, expanded_bytes = path.suffix.lower(), 0
    is_expanding = bounds is not None and suffix in (PARQUET, ZIP, ".zst", *_ARCHIVES)
    with _readable(path) as file:
        file_bytes = os.fstat(file.fileno()).st_size
        known = format_named(segment_format)
        if suffix == PARQUET:
            chunks = _rows_as_text(file, segment_format)
        elif suffix == ZIP and known is not None and known.is_named:
            chunks = _unzipped(open_zip(file, _MOST_DIRECTORY_BYTES), _with_its_name)
        else:
            chunks = _unpacked(file, suffix)
            if first_line:
                chunks = chain([first_line], stream_as_text(chunks))
        for chunk in chunks:
            report(file.tell())
            expanded_bytes += len(chunk)
            if is_expanding and bounds is not None:
                bounds.check_expansion(file_bytes, expanded_bytes)
            yield chunk


def beginning_of(path: Path) -> bytes:
    """Return the first megabyte or so of the content, as text; empty of a Parquet file. Raises UnreadableContent."""
    if path.suffix.lower() == PARQUET:
        return b""
    with _readable(path) as file:
        return as_text(next(_unpacked(file, path.suffix.lower()), b""))


def recognised_format(beginning: bytes, candidates: Sequence[Format]) -> Format | None:
    """Return the first of ``candidates`` that a file begins like, if one does; an empty one is the first's."""
    if not beginning.strip():
        return candidates[0]
    return next((known for known in candidates if known.begins and known.begins.search(beginning)), None)


def parquet_format(path: Path) -> Format:
    """Return the format of a Parquet file's rows, by their columns. Raises UnreadableContent."""
    with _readable(path) as file:
        columns = pq.read_schema(file).names
    of_rows = [known for known in FORMATS if known.row_column]
    found = next((known for known in of_rows if known.row_column in columns), None)
    if found is None:
        raise UnreadableContent(f"its rows have none of the columns {', '.join(str(k.row_column) for k in of_rows)}")
    return found


@contextmanager
def _readable(path: Path) -> Iterator[IO[bytes]]:
    """The file, open; whatever is wrong with its content is raised as UnreadableContent. Raises OSError of the disk."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        if error.errno is not None:  # the system's; readers of archives raise others without a number
            raise
        raise UnreadableContent(str(error)) from None
    except (
        BoundExceeded,
        EOFError,
        zipfile.BadZipFile,
        NotImplementedError,
        zlib.error,
        lzma.LZMAError,
        zstandard.ZstdError,
        pa.ArrowException,
    ) as error:
        raise UnreadableContent(str(error)) from None


def _unpacked(file: IO[bytes], suffix: str) -> Iterator[bytes]:
    if suffix in _ARCHIVES:
        return _plain(_ARCHIVES[suffix](file))
    if suffix == ZIP:
        return _unzipped(open_zip(file, _MOST_DIRECTORY_BYTES))
    return _zst(file) if suffix == ".zst" else _plain(file)


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _unzipped(
    archive: zipfile.ZipFile, prepared: Callable[[str, Iterator[bytes]], Iterator[bytes]] | None = None
) -> Iterator[bytes]:
    """Yield the members one after the other, each with a line feed at its end; their checksums are verified.

    ``prepared`` makes what lands of a member's name and content.
    """
    for member in _members(archive):
        last = b"\n"
        with archive.open(member) as file:
            chunks = _plain(file)
            for chunk in prepared(Path(member.filename).name, chunks) if prepared else chunks:
                last = chunk[-1:] or last
                yield chunk
        if last != b"\n":
            yield b"\n"


def _with_its_name(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    return chain([name_line(name)], stream_as_text(chunks))


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files in it, by name: histories are numbered. Raises BadZipFile for what is not read."""
    # Archives made on macOS describe each file in another one.
    found = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
    if not found or len(found) > _MOST_MEMBERS:
        raise zipfile.BadZipFile(f"it has {len(found)} files, must have 1 to {_MOST_MEMBERS:,}")
    if any(each.flag_bits & 1 for each in found):
        raise zipfile.BadZipFile("it is encrypted")
    endings = sorted({Path(each.filename).suffix.lower() for each in found})
    if len(endings) > 1:
        raise zipfile.BadZipFile(f"its files have several endings: {', '.join(endings)}; land them one by one")
    return sorted(found, key=lambda each: each.filename)


def _zst(file: IO[bytes]) -> Iterator[bytes]:
    """Frame by frame: the library's own stream reader takes a torn frame for a whole one."""
    archive = zstandard.ZstdDecompressor(max_window_size=_ZST_MAX_WINDOW_BYTES)
    frame = None
    while data := file.read(_ZST_READ_BYTES):
        while data:
            frame = frame or archive.decompressobj()
            yield frame.decompress(data)
            data = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the archive ended before the end of its last frame")


def _rows_as_text(file: IO[bytes], segment_format: str) -> Iterator[bytes]:
    known = format_named(segment_format)
    if known is None or known.row_column is None:
        raise pa.ArrowInvalid(f"rows cannot be written as {segment_format}")
    is_array = known.framing is JSON_ARRAY
    before = b"[" if is_array else b""
    for batch in pq.ParquetFile(file).iter_batches(_ROWS):
        rows = [_row_as_json(row) for row in batch.to_pylist()]
        if rows:
            yield before + (b",\n" if is_array else b"\n").join(rows) + (b"" if is_array else b"\n")
            before = b",\n" if is_array else b""
    if is_array:
        yield b"]\n" if before != b"[" else b"[]\n"


def _row_as_json(row: Mapping[str, Any]) -> bytes:
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps(present, separators=(",", ":"), default=_value_as_json).encode()


def _value_as_json(value: object) -> object:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return value.hex() if isinstance(value, bytes) else str(value)
