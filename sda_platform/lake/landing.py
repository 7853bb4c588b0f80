"""Landing zones: where sealed segments wait, and where they go once a table holds them.

A zone is ``<root>/<feed>/`` with ``pending/``, ``archive/`` and ``quarantine/``. A segment is data plus
``<name>.meta.json``; the metadata is written last, so a segment without it is not there yet (an orphan, once it is
older than the grace time). After the commit the metadata goes first, then the data moves to the archive; a crash
between the two is mended at the next plan. A name may be used again once its segment is consumed, so a segment is
known by its bytes. Nothing here decodes records; it only counts them.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from upath import UPath

from sda_platform import faults
from sda_platform.formats.records import split_records
from sda_platform.formats.segments import MetaError, SegmentMeta, parse_segment_meta
from sda_platform.lake import durable
from sda_platform.lake.checkpoint import SegmentRef

META_SUFFIX = ".meta.json"


@dataclass(frozen=True)
class PendingSegment:
    """A segment whose metadata has arrived. ``meta`` is None where it cannot be read (``defect`` says why)."""

    feed: str
    name: str
    meta: SegmentMeta | None
    defect: str | None = None

    @property
    def bytes(self) -> int:
        """Size as declared; 0 where unknown."""
        return self.meta.bytes if self.meta else 0

    @property
    def sealed_time_ns(self) -> int:
        """Mission time of sealing; 0 where unknown, so that such segments come first and are dealt with."""
        return self.meta.sealed_time_ns if self.meta else 0


@dataclass(frozen=True)
class Orphan:
    """A file in a zone that no segment accounts for."""

    path: str
    reason: str
    age_s: float


class LandingZone:
    """One feed's zone below ``root``."""

    def __init__(self, root: str, feed: str) -> None:
        self.feed = feed
        self.root = UPath(root) / feed

    def seal(self, name: str, data: bytes, meta: SegmentMeta) -> bool:
        """Put a segment into the zone, data first, metadata last. False: the zone already has or had this segment."""
        if self._path("pending", name + META_SUFFIX).exists() or self.was_archived(meta.sha256):
            return False
        durable.write(self._path("pending", name), data)
        faults.reach("landing.data_written")
        durable.write(self._path("pending", name + META_SUFFIX), meta.to_json().encode())
        faults.reach("landing.sealed")
        return True

    def pending(self) -> list[PendingSegment]:
        """The segments that wait, oldest seal first. Reads metadata only."""
        names = (n for n in self._names("pending") if n.endswith(META_SUFFIX))
        segments = [self._describe(name.removesuffix(META_SUFFIX)) for name in names]
        return sorted(segments, key=lambda s: (s.sealed_time_ns, s.name))

    def pending_names(self) -> list[str]:
        """Names of the waiting segments, sorted; the cheap question that a sensor asks."""
        return sorted(n.removesuffix(META_SUFFIX) for n in self._names("pending") if n.endswith(META_SUFFIX))

    def pending_marks(self) -> list[str]:
        """The waiting segments, sorted, each with the moment its metadata came: tells today's file from yesterday's
        of the same name. One that is consumed meanwhile is left out."""
        return sorted(f"{name}@{came}" for name in self.pending_names() if (came := self._came(name)) is not None)

    def read(self, segment: PendingSegment) -> tuple[bytes, str | None]:
        """The segment's data and, where it is not what its metadata promises, the defect in words."""
        path = self._path("pending", segment.name)
        if not path.exists():
            return b"", f"{segment.name}: metadata without data"
        data = path.read_bytes()
        if segment.meta is None:
            return data, segment.defect
        if len(data) != segment.meta.bytes:
            return data, f"{segment.name}: truncated: has {len(data)} bytes, metadata says {segment.meta.bytes}"
        if hashlib.sha256(data).hexdigest() != segment.meta.sha256:
            return data, f"{segment.name}: checksum differs from the metadata's {segment.meta.sha256[:12]}…"
        records = sum(1 for _ in split_records(data, segment.meta.format))
        if records != segment.meta.records:
            return data, f"{segment.name}: metadata says {segment.meta.records} records, found {records}"
        return data, None

    def was_archived(self, sha256: str) -> bool:
        """Whether a segment with these bytes was consumed before, under whatever name."""
        return self._path("archive", sha256).exists()

    def was_quarantined(self, name: str, sha256: str) -> bool:
        """Whether this defective segment was told before."""
        return self._quarantined(name, sha256).exists()

    def acknowledge(self, segments: Iterable[SegmentRef]) -> None:
        """The table holds these segments: drop their metadata, then move their data away. Repeating it is harmless.

        Sound ones go to the archive, named by their content; defective ones to quarantine, under their own name. What
        has come since under the name of one of them has other bytes, and stays.
        """
        for segment in segments:
            target, data = self._resting_place(segment), self._path("pending", segment.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            found = data.read_bytes() if data.exists() else b""
            if segment_sha256(self.feed, segment.name, found, segment.defect) == segment.sha256:
                self._path("pending", segment.name + META_SUFFIX).unlink(missing_ok=True)
                if data.exists():
                    data.rename(target)
            # Where its data is gone, or was replaced after a crash, it must still be known as consumed.
            if not target.exists():
                target.touch()

    def discard_duplicate(self, name: str) -> None:
        """Drop a second delivery of bytes that were consumed."""
        self._path("pending", name + META_SUFFIX).unlink(missing_ok=True)
        self._path("pending", name).unlink(missing_ok=True)

    def orphans(self, wall_s: float, grace_s: float) -> Iterator[Orphan]:
        """Data without metadata and metadata without data, older than ``grace_s`` at wall time ``wall_s``."""
        names = set(self._names("pending"))
        for name in sorted(names):
            path = self._path("pending", name)
            is_meta = name.endswith(META_SUFFIX)
            partner = name.removesuffix(META_SUFFIX) if is_meta else name + META_SUFFIX
            if partner in names or not path.exists():
                continue
            age_s = wall_s - path.stat().st_mtime
            if age_s >= grace_s:
                yield Orphan(str(path), "metadata without data" if is_meta else "data without metadata", age_s)

    def _describe(self, name: str) -> PendingSegment:
        try:
            meta = parse_segment_meta(self._path("pending", name + META_SUFFIX).read_text(errors="replace"))
        except MetaError as error:
            return PendingSegment(self.feed, name, None, f"{name}: metadata unreadable: {error}")
        if meta.feed != self.feed:
            return PendingSegment(
                self.feed, name, None, f"{name}: unknown feed {meta.feed!r} in the zone of {self.feed}"
            )
        return PendingSegment(self.feed, name, meta)

    def _names(self, place: str) -> list[str]:
        folder = self.root / place
        return [p.name for p in folder.iterdir() if not p.name.startswith(".")] if folder.exists() else []

    def _came(self, name: str) -> float | None:
        try:
            return float(self._path("pending", name + META_SUFFIX).stat().st_mtime)
        except FileNotFoundError:
            return None

    def _resting_place(self, segment: SegmentRef) -> UPath:
        if segment.defect is None:
            return self._path("archive", segment.sha256)
        return self._quarantined(segment.name, segment.sha256)

    def _quarantined(self, name: str, sha256: str) -> UPath:
        return self._path("quarantine", f"{name}.{sha256[:12]}")

    def _path(self, place: str, name: str) -> UPath:
        return self.root / place / name


def segment_sha256(zone: str, name: str, data: bytes, defect: str | None) -> str:
    """By which hash a segment is known: of its bytes, so that a second delivery under another name is seen.

    That of a defective one covers zone and name too: two files torn to nothing are two losses, and both are told.
    """
    prefix = b"" if defect is None else f"{zone}/{name}\0".encode()
    return hashlib.sha256(prefix + data).hexdigest()


def unknown_zones(root: str, feeds: Iterable[str]) -> list[Orphan]:
    """Directories below ``root`` that belong to no known feed: what lies there is never read, and must be reported."""
    base, known = UPath(root), set(feeds)
    if not base.exists():
        return []
    return [
        Orphan(str(p), f"unknown feed {p.name!r}; known are {', '.join(sorted(known))}", 0.0)
        for p in sorted(base.iterdir(), key=str)
        if p.is_dir() and p.name not in known
    ]
