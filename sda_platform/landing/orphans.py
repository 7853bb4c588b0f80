"""Orphans: files in the landing zones that belong to no segment.

A killed writer, an incomplete copy or a killed clean-up leaves data without metadata, metadata without data, or a
partial file. It is not touched while its writer may still be at work. After the grace time without a change it is
reported (`sda status`, the check `no_orphans`). The next batch then takes it as a defective segment: it becomes a dead
letter, and its bytes go to quarantine. A partial file is removed. A path that is no regular file or that this process
may not read is reported and stays, until a person removes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from upath import UPath

from sda_platform.lake.storage import location
from sda_platform.landing.consumed import META_SUFFIX
from sda_platform.landing.listing import Listing, changed_s, is_local, shown_name, status
from sda_platform.landing.segments import PendingSegment
from sda_platform.landing.zone import LandingZone

_LONE_DATA = "data without metadata"
_LONE_METADATA = "metadata without data"
_PARTIAL = "partial file of a killed writer"
_NO_FILE = "no regular file; nothing reads or removes it"
_UNREADABLE = "cannot be read by this platform; give it read permission"
_OF_OUR_WRITERS = (_LONE_DATA, _LONE_METADATA, _PARTIAL)


@dataclass(frozen=True)
class Orphan:
    """A file that no segment accounts for. ``changed_s`` is the wall time of its last change; ``name`` the segment
    that it would have been, None for what is none; ``is_partial`` marks what may be removed."""

    path: UPath
    reason: str
    changed_s: float
    name: str | None = None
    is_partial: bool = False

    @property
    def zone(self) -> str:
        """The directory below the landing root in which it lies, or which it is."""
        return self.path.parent.parent.name if self.path.parent.name == "pending" else self.path.name

    @property
    def is_ours(self) -> bool:
        """Whether a process of the platform left it: only those write data, metadata and partial files here."""
        return self.reason in _OF_OUR_WRITERS

    def description(self, wall_s: float) -> str:
        """Return the orphan in words, with its age at ``wall_s``."""
        return f"{shown_name(str(self.path))}: {self.reason}, {wall_s - self.changed_s:,.0f} s old"


def find_orphans(zone: LandingZone, before_s: float, listing: Listing | None = None) -> list[Orphan]:
    """Return the orphans of ``zone`` that have not changed since the wall time ``before_s``, by name.

    ``listing`` is a recent one of ``pending/``; by default, the directory is listed now.
    """
    orphans = _lone_files(zone, listing or zone.listing())
    return sorted((o for o in orphans if o.changed_s <= before_s), key=lambda o: o.path.name)


def orphaned_names(zone: LandingZone, before_s: float) -> list[str]:
    """Return the names of the segments that these orphans would have been; cheap enough for a sensor."""
    return [orphan.name for orphan in find_orphans(zone, before_s) if orphan.name is not None]


def take_orphans(zone: LandingZone, before_s: float, listing: Listing | None = None) -> list[PendingSegment]:
    """Return the same orphans as defective segments; partial files, on which no sender relies, are removed."""
    segments = []
    for orphan in find_orphans(zone, before_s, listing):
        if orphan.is_partial:
            orphan.path.unlink(missing_ok=True)
        if orphan.name is None:
            continue
        described = zone.describe(orphan.name)
        meta = described.meta if described else None
        segments.append(PendingSegment(zone.feed, orphan.name, meta, f"{orphan.name}: {orphan.reason}", is_lone=True))
    return segments


def unknown_zones(root: str, feeds: Iterable[str]) -> list[Orphan]:
    """Directories below ``root`` that belong to no known feed: what lies there is never read, and must be reported."""
    base, known = location(root), set(feeds)
    if not base.exists():
        return []
    reason = f"unknown feed {{!r}}; known are {', '.join(sorted(known))}"
    folders = (p for p in sorted(base.iterdir(), key=str) if p.is_dir() and not p.name.startswith("."))
    return [Orphan(p, reason.format(p.name), p.stat().st_mtime) for p in folders if p.name not in known]


def _lone_files(zone: LandingZone, listing: Listing) -> Iterator[Orphan]:
    names = {*listing.files, *listing.unreadable}
    for name in listing.files:
        is_meta = name.endswith(META_SUFFIX)
        segment = name.removesuffix(META_SUFFIX)
        if (segment if is_meta else name + META_SUFFIX) in names:
            continue
        path = zone.pending_path(name)
        found = status(path)
        if found is None:
            continue
        if name.startswith("."):
            yield Orphan(path, _PARTIAL, changed_s(found), is_partial=True)
        else:
            yield Orphan(path, _LONE_METADATA if is_meta else _LONE_DATA, changed_s(found), segment)
    for reason, apart in ((_UNREADABLE, listing.unreadable), (_NO_FILE, listing.others)):
        yield from (Orphan(path, reason, _age(path)) for path in map(zone.pending_path, apart))


def _age(path: UPath) -> float:
    """Return the time of change of whatever lies at ``path``; links are not followed."""
    try:
        return changed_s(path.lstat() if is_local(path) else path.stat())
    except FileNotFoundError:
        return 0.0
