"""Segments as values: what a directory, its metadata and its bytes tell of one. No file is touched here."""

import hashlib
from dataclasses import dataclass

from sda_platform.formats.cutting import cut_records
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.checkpoint import SegmentRef

RETURNED = "reprocess-"
"""How the names of segments begin whose records come back from dead letters."""


@dataclass(frozen=True)
class PendingSegment:
    """A segment as its metadata tells it. ``meta`` is None where it cannot be read (``defect`` says why).

    Of an orphan, which ``is_lone``, there is only one of data and metadata.
    """

    feed: str
    name: str
    meta: SegmentMeta | None
    defect: str | None = None
    is_lone: bool = False

    @property
    def sealed_time_ns(self) -> int:
        """Mission time of sealing; 0 where unknown, so that such segments come first and are dealt with."""
        return self.meta.sealed_time_ns if self.meta else 0


@dataclass(frozen=True)
class LoadedSegment:
    """A segment's bytes; ``defect`` is set where they are not what the metadata promises.

    ``sha256`` is the hash by which it is known, see `segment_sha256`.
    """

    zone: str
    name: str
    sha256: str
    data: bytes
    meta: SegmentMeta | None
    defect: str | None

    def ref(self, records: int) -> SegmentRef:
        """How a checkpoint names it."""
        return SegmentRef(self.zone, self.name, self.sha256, len(self.data), records, self.defect)


@dataclass(frozen=True)
class WaitingSegment:
    """What a directory tells of a segment that waits: its size, and the wall time at which its metadata came."""

    name: str
    bytes: int
    came_s: float


def is_known_by_bytes(name: str, defect: str | None) -> bool:
    """Whether the hash by which a segment is known is that of its bytes alone."""
    return defect is None and not name.startswith(RETURNED)


def segment_sha256(zone: str, name: str, data: bytes, defect: str | None) -> str:
    """By which hash a segment is known: of its bytes, so that a second delivery under another name is seen.

    That of a defective one covers zone and name too: two files torn to nothing are two losses, and both are told. So
    does that of one that comes back from dead letters: it may have the very bytes that were once refused.
    """
    prefix = b"" if is_known_by_bytes(name, defect) else f"{zone}/{name}\0".encode()
    return hashlib.sha256(prefix + data).hexdigest()


def segment_is(segment: SegmentRef, data: bytes) -> bool:
    """Whether ``data`` are the bytes that a commit consumed as ``segment``."""
    return segment_sha256(segment.zone, segment.name, data, segment.defect) == segment.sha256


def defect_of(segment: PendingSegment, data: bytes) -> str | None:
    """What is wrong with ``data``, if it is not what the segment's metadata promises."""
    name, meta = segment.name, segment.meta
    if meta is None or segment.defect is not None:
        return segment.defect
    if len(data) != meta.bytes:
        return f"{name}: truncated: has {len(data)} bytes, metadata says {meta.bytes}"
    if hashlib.sha256(data).hexdigest() != meta.sha256:
        return f"{name}: checksum differs from the metadata's {meta.sha256[:12]}…"
    records = len(cut_records(data, meta.format))
    if records != meta.records:
        return f"{name}: metadata says {meta.records} records, found {records}"
    return None
