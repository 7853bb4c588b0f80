"""Segments as values: from directory entries, metadata and bytes. This module touches no file."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from sda_platform.formats.cutting import count_records
from sda_platform.formats.registry import ZONES
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.manifest import SegmentRef

RETURNED = "reprocess-"
"""How the names of segments begin whose records come back from dead letters."""
DUPLICATE: Final = "second delivery of bytes that were taken before"
REPORTED: Final = "second delivery of what is in quarantine"
NAME_CONFLICT: Final = "other bytes were consumed under this name"
UNDECODABLE: Final = "the decoder ends with"
_OTHER_FORMAT: Final = "?"
_HANDICAP_S: Final = {"emergency": -3600, "low": 60, "deferred": 300}


@dataclass(frozen=True)
class PendingSegment:
    """A segment according to its metadata. ``meta`` is None if it cannot be read; ``defect`` has the reason.

    An orphan (``is_lone``) has either data or metadata, not both.
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

    @property
    def source(self) -> str:
        """The source that brought all its records; of several or unknown ones, the zone."""
        return _source_of(self.feed, self.meta)

    @property
    def due_time_ns(self) -> int:
        """The order of intake: the time of sealing, later for lower priorities.

        High priority therefore comes first, and none waits for ever: low priority counts as high after a minute, and a
        deferred segment after five.
        """
        handicap_s = _HANDICAP_S.get(self.meta.priority or "", 0) if self.meta else 0
        return self.sealed_time_ns + handicap_s * 1_000_000_000


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

    @property
    def is_duplicate(self) -> bool:
        """Whether it is discarded: it was taken or reported before."""
        return self.defect in (DUPLICATE, REPORTED)

    @property
    def source(self) -> str:
        """See `PendingSegment.source`."""
        return _source_of(self.zone, self.meta)

    def refused(self, defect: str) -> "LoadedSegment":
        """Return the same segment, which is not taken as what it promises to be, because of ``defect``."""
        return replace(self, defect=defect, sha256=segment_sha256(self.zone, self.name, self.data, defect))

    def ref(self, records: int) -> SegmentRef:
        """Return how a manifest names it."""
        size = 0 if self.is_duplicate else len(self.data)  # its bytes are the first delivery's
        return SegmentRef(self.zone, self.name, self.sha256, size, records, self.defect)


@dataclass(frozen=True)
class WaitingSegment:
    """A pending segment according to its directory: its size, and the wall time at which its metadata was written."""

    name: str
    bytes: int
    came_s: float


def is_known_by_bytes(name: str, defect: str | None) -> bool:
    """Return whether the hash by which a segment is known is that of its bytes alone."""
    return defect is None and not name.startswith(RETURNED)


def segment_sha256(zone: str, name: str, data: bytes, defect: str | None) -> str:
    """Return the hash by which a segment is known: of its bytes, so that a second delivery under another name is
    recognised.

    That of a defective one covers zone and name too: two files torn to nothing are two losses, and each is reported. So
    does that of one that comes back from dead letters: it may have the very bytes that were once refused. A second
    delivery, and one at which the decoder fails, have hashes of their own: the same file may have come, or may come, as
    something else.
    """
    if is_known_by_bytes(name, defect):
        return hashlib.sha256(data).hexdigest()
    if defect is not None and UNDECODABLE in defect:
        return undecodable_sha256(zone, name, hashlib.sha256(data).hexdigest())
    apart = defect if defect in (DUPLICATE, REPORTED) else ""
    return hashlib.sha256(f"{zone}/{name}\0{apart}".encode() + data).hexdigest()


def undecodable_sha256(zone: str, name: str, bytes_sha256: str) -> str:
    """Return the hash by which a segment is known at which the decoder fails, from that of its bytes."""
    return hashlib.sha256(f"{zone}/{name}\0{UNDECODABLE}\0{bytes_sha256}".encode()).hexdigest()


def _source_of(zone: str, meta: SegmentMeta | None) -> str:
    sources = {origin.source for origin in (meta.origins if meta else None) or ()}
    return sources.pop() if len(sources) == 1 else f"{zone}/"


def refused_sha256(zone: str, segment_format: str, bytes_sha256: str) -> str:
    """Return the hash by which a segment is known of which every record was refused, from that of its bytes.

    It covers zone and format. The same bytes in another zone, or under another format, are therefore no second
    delivery: a file that was landed in the wrong zone is taken when it is landed in the right one.
    """
    known = segment_format if segment_format in ZONES.get(zone, ()) else _OTHER_FORMAT
    return hashlib.sha256(f"{zone}\0{known}\0{bytes_sha256}".encode()).hexdigest()


def segment_is(segment: SegmentRef, data: bytes) -> bool:
    """Return whether ``data`` are the bytes that a commit consumed as ``segment``."""
    return any(segment.sha256 == sha256 for sha256 in _hashes(segment, data))


def _hashes(segment: SegmentRef, data: bytes) -> Iterator[str]:
    """Yield the hashes by which these bytes may be known as ``segment``, the usual one first."""
    yield segment_sha256(segment.zone, segment.name, data, segment.defect)
    if is_known_by_bytes(segment.name, segment.defect):
        yield from refused_hashes(segment.zone, hashlib.sha256(data).hexdigest())


def refused_hashes(zone: str, bytes_sha256: str) -> Iterator[str]:
    """Yield the hashes by which these bytes are known in ``zone`` where every record was refused, format by format."""
    for segment_format in (*ZONES.get(zone, ()), _OTHER_FORMAT):
        yield refused_sha256(zone, segment_format, bytes_sha256)


def defect_kind(defect: str) -> str:
    """Return the kind of dead letter that a whole segment with this ``defect`` becomes, see
    `dispositions.RECORD_KINDS`.
    """
    if defect.endswith(NAME_CONFLICT):
        return "name_conflict"
    return "undecodable_segment" if UNDECODABLE in defect else "bad_segment"


def defect_of(segment: PendingSegment, data: bytes) -> str | None:
    """Return what is wrong with ``data``, if it is not what the segment's metadata promises."""
    name, meta = segment.name, segment.meta
    if meta is None or segment.defect is not None:
        return segment.defect
    if len(data) != meta.bytes:
        return f"{name}: truncated: has {len(data)} bytes, metadata says {meta.bytes}"
    if hashlib.sha256(data).hexdigest() != meta.sha256:
        return f"{name}: checksum differs from the metadata's {meta.sha256[:12]}…"
    records = count_records(data, meta.format)
    if records != meta.records:
        return f"{name}: metadata says {meta.records} records, found {records}"
    return None
