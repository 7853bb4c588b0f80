"""Partner files: find a file's feed and format, and check that it is complete and does not change while it is landed.

Feed and format follow from the name, or from the content if the name is ambiguous, unless the caller sets them. Records
are not checked here: a bad record is landed and becomes a dead letter. A file of unknown kind, a torn archive or a file
that is still being written is refused before any of it is landed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sda_platform.formats.cutting import looks_ended
from sda_platform.formats.format import Format
from sda_platform.formats.registry import FORMATS, MAPPED_CSV, ZONES, format_named
from sda_platform.landing.contents import (
    PARQUET,
    ZIP,
    UnreadableContent,
    beginning_of,
    parquet_format,
    read_chunks,
    recognised_format,
    without_compression,
)
from sda_platform.landing.first_lines import NO_MAPPINGS, MappingError, Mappings, first_line, mapped
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.segments import RETURNED

Found = TypeVar("Found")
_TAIL_BYTES = 4096
# Endings that files of any content have.
_GENERAL = frozenset({".csv", ".json"})
# A segment's name is the file's, a hash and a number, and some file systems allow 255 bytes.
_MAX_STEM = 48


class PartnerFileError(ValueError):
    """A file that cannot be landed; the text has the file, the reason and the remedy."""


class FileChanging(PartnerFileError):
    """The file is not as it was a moment ago: its writer has not finished."""


@dataclass(frozen=True)
class PartnerFile:
    """A file as its name and the caller describe it. ``stem`` is what its segments' names begin with.

    ``first_line``: what it lands with before its own content, see `first_lines`.
    """

    path: Path
    feed: str
    format: str
    stem: str
    first_line: bytes = b""


@dataclass(frozen=True)
class Content:
    """A file that was read to its end once: hash and length of what is in it (uncompressed), and its stamp then."""

    sha256: str
    bytes: int
    stamp: tuple[int, int, int]


def identify(
    path: Path, *, feed: str | None = None, segment_format: str | None = None, mappings: Mappings = NO_MAPPINGS
) -> PartnerFile:
    """Return what the file at ``path`` is. Raises PartnerFileError, and OSError where the disk refuses."""
    inner = _of_content(path, without_compression) if path.suffix.lower() == ZIP else without_compression(path)
    chosen = format_named(segment_format) if segment_format else _recognised(path, inner, mappings)
    if chosen is None:
        names = ", ".join(known.name for known in FORMATS)
        raise PartnerFileError(f"{path}: there is no format {segment_format!r}; the formats are {names}")
    if feed is not None and feed not in ZONES:
        raise PartnerFileError(f"{path}: unknown feed {feed!r}; the feeds are {', '.join(sorted(ZONES))}")
    if feed is not None and feed != chosen.zone:
        allowed = ", ".join(ZONES[feed])
        raise PartnerFileError(f"{path}: feed {feed} does not carry format {chosen.name!r}, but {allowed}")
    stem = inner.stem.lstrip(".")[:_MAX_STEM] or "file"
    if stem.startswith(RETURNED):  # what returns from dead letters is known by another hash
        stem = f"file-{stem}"
    if not (chosen.is_named or chosen.name == MAPPED_CSV):
        return PartnerFile(path, chosen.zone, chosen.name, stem)
    beginning = _of_content(path, beginning_of)
    try:
        return PartnerFile(path, chosen.zone, chosen.name, stem, first_line(chosen, inner.name, beginning, mappings))
    except MappingError as error:
        raise PartnerFileError(f"{path}: {error}") from None


def _recognised(path: Path, inner: Path, mappings: Mappings) -> Format:
    """Return the format of a file by its ending, and by its content where several formats have that ending."""
    suffix = inner.suffix.lower()
    if suffix == PARQUET:
        return _of_content(path, parquet_format)
    candidates = [known for known in FORMATS if suffix in known.suffixes]
    if len(candidates) == 1 and suffix not in _GENERAL:
        return candidates[0]
    if not candidates:
        endings = ", ".join(sorted({PARQUET, *(ending for known in FORMATS for ending in known.suffixes)}))
        raise PartnerFileError(f"{path}: its name does not determine its format (known endings: {endings})")
    beginning = _of_content(path, beginning_of)
    found, reason = recognised_format(beginning, candidates), ""
    if found is None:
        try:
            found = mapped(candidates, inner.name, beginning, mappings)
        except MappingError as error:
            reason = f"; {error}"
    if found is None:
        names = ", ".join(known.name for known in candidates if known.name != MAPPED_CSV)
        if mappings.folder and not reason and any(known.name == MAPPED_CSV for known in candidates):
            reason = (
                f"; columns of its own need a mapping in {mappings.folder} "
                "(docs/how-to/add-a-sensor.md#a-csv-with-columns-of-its-own)"
            )
        raise PartnerFileError(
            f"{path}: it does not begin like any of {names}; if it is one of these, give --format{reason}"
        )
    return found


def examine(
    file: PartnerFile, *, is_complete: bool, report: Callable[[int], None], bounds: PartnerBounds | None = None
) -> Content:
    """Read the whole file once; ``report`` is called with the position in it.

    Raises PartnerFileError when it cannot be read to its end, is empty, or changes during the read. It is also
    raised for one that ends within a record, as while it is being written. ``is_complete``: the caller guarantees
    that it is complete. ``bounds``: what it may expand to. What the disk refuses is an OSError.
    """
    stamp = stamp_of(file.path)
    digest, length, tail = hashlib.sha256(), 0, b""
    try:
        for chunk in read_chunks(file.path, file.format, report, bounds, first_line=file.first_line):
            digest.update(chunk)
            length += len(chunk)
            tail = (tail + chunk[-_TAIL_BYTES:])[-_TAIL_BYTES:]
    except UnreadableContent as error:
        raise PartnerFileError(
            f"{file.path}: cannot be read past byte {length:,} of its content: {error}; nothing of it was landed"
        ) from None
    content = Content(digest.hexdigest(), length, stamp)
    refuse_if_changed(file, content)
    if not length:
        raise PartnerFileError(f"{file.path}: is empty")
    if not (is_complete or looks_ended(tail, file.format)):
        raise PartnerFileError(
            f"{file.path}: breaks off in its last record; if it is not still being written, give --complete"
        )
    return content


def refuse_if_changed(file: PartnerFile, content: Content) -> None:
    """Raises FileChanging when the file is not the one that was examined any more."""
    if stamp_of(file.path) != content.stamp:
        raise FileChanging(f"{file.path}: changed while it was read; land it again once its writer has finished")


def stamp_of(path: Path) -> tuple[int, int, int]:
    """Return the identity of one state of a file: inode, size and time of change. Raises OSError, PartnerFileError."""
    found = path.stat()
    if path.is_dir():
        raise PartnerFileError(f"{path}: is a directory; name the files in it")
    return found.st_ino, found.st_size, found.st_mtime_ns


def _of_content(path: Path, format_of: Callable[[Path], Found]) -> Found:
    stamp_of(path)
    try:
        return format_of(path)
    except UnreadableContent as error:
        raise PartnerFileError(f"{path}: cannot be read: {error}") from None
