"""Orphans: files in the landing zones that no segment accounts for, and what becomes of them.

A writer that died, a network share that forgot a file, a clean-up that was killed: each leaves data without metadata,
metadata without data, or a partial file. None is touched while its writer may still be at work. Once it has not
changed for the grace time, it is told (`sda status`, the check `no_orphans`) and taken by the next batch as a
defective segment, which makes it a dead letter and puts its bytes into quarantine; a partial file is removed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from upath import UPath

from sda_platform.lake.landing.archive import META_SUFFIX
from sda_platform.lake.landing.segments import PendingSegment
from sda_platform.lake.landing.zone import LandingZone

_LONE_DATA = "data without metadata"
_LONE_METADATA = "metadata without data"


@dataclass(frozen=True)
class Orphan:
    """A file that no segment accounts for. ``changed_s`` is the wall time of its last change; ``name`` the segment
    that it would have been, None for what is none."""

    path: UPath
    reason: str
    changed_s: float
    name: str | None = None

    def told(self, wall_s: float) -> str:
        """The orphan in words, with its age at ``wall_s``."""
        return f"{self.path}: {self.reason}, {wall_s - self.changed_s:,.0f} s old"


def find_orphans(zone: LandingZone, before_s: float) -> list[Orphan]:
    """The orphans of ``zone`` that have not changed since the wall time ``before_s``, by name."""
    return sorted((o for o in _lone_files(zone) if o.changed_s <= before_s), key=lambda o: o.path.name)


def orphaned_names(zone: LandingZone, before_s: float) -> list[str]:
    """The names of the segments that these orphans would have been; the cheap question that a sensor asks."""
    return [orphan.name for orphan in find_orphans(zone, before_s) if orphan.name is not None]


def take_orphans(zone: LandingZone, before_s: float) -> list[PendingSegment]:
    """The same orphans, as the defective segments that they are; partial files, of which nobody knew, are removed."""
    segments = []
    for orphan in find_orphans(zone, before_s):
        if orphan.name is None:
            orphan.path.unlink(missing_ok=True)
            continue
        described = zone.describe(orphan.name)
        meta = described.meta if described else None
        segments.append(PendingSegment(zone.feed, orphan.name, meta, f"{orphan.name}: {orphan.reason}", is_lone=True))
    return segments


def unknown_zones(root: str, feeds: Iterable[str]) -> list[Orphan]:
    """Directories below ``root`` that belong to no known feed: what lies there is never read, and must be reported."""
    base, known = UPath(root), set(feeds)
    if not base.exists():
        return []
    reason = f"unknown feed {{!r}}; known are {', '.join(sorted(known))}"
    folders = (p for p in sorted(base.iterdir(), key=str) if p.is_dir() and not p.name.startswith("."))
    return [Orphan(p, reason.format(p.name), p.stat().st_mtime) for p in folders if p.name not in known]


def _lone_files(zone: LandingZone) -> Iterator[Orphan]:
    names = set(zone.pending_files())
    for name in names:
        is_meta, is_partial = name.endswith(META_SUFFIX), name.startswith(".")
        segment = name.removesuffix(META_SUFFIX)
        if not is_partial and (segment if is_meta else name + META_SUFFIX) in names:
            continue
        path = zone.root / "pending" / name
        try:
            changed_s = path.stat().st_mtime
        except FileNotFoundError:
            continue
        if is_partial:
            yield Orphan(path, "partial file of a writer that died", changed_s)
        else:
            yield Orphan(path, _LONE_METADATA if is_meta else _LONE_DATA, changed_s, segment)
