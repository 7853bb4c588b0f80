"""Consumed segments whose bytes the archive no longer has: after the archive's age, an empty mark is all that is left.

The table has their rows. Where the table is lost too, they cannot be built anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from upath import UPath

from sda_platform.lake import durable
from sda_platform.landing.consumed import META_SUFFIX
from sda_platform.landing.listing import is_local, list_directory, path_of, status
from sda_platform.landing.zone import LandingZone


@dataclass(frozen=True)
class BeyondArchive:
    """The marks of the segments of some zones that are gone, and when these were consumed (Unix time, s).

    The times of marks that an earlier version of the platform left are those of the removal.
    """

    marks: tuple[UPath, ...] = ()
    first_s: float = 0.0
    last_s: float = 0.0

    def __str__(self) -> str:
        first, last = (datetime.fromtimestamp(at, UTC).date().isoformat() for at in (self.first_s, self.last_s))
        return (
            f"{len(self.marks)} consumed segments, from {first} to {last}, are beyond the archive: their bytes are gone"
        )


def beyond_archive(zones: Sequence[LandingZone]) -> BeyondArchive:
    """Return what ``zones`` consumed and no longer have; object stores keep no marks."""
    found = [mark for zone in zones if is_local(zone.root) for mark in _marks(zone)]
    if not found:
        return BeyondArchive()
    times = [at for _, at in found]
    return BeyondArchive(tuple(mark for mark, _ in found), min(times), max(times))


def accept_loss(beyond: BeyondArchive) -> list[str]:
    """Remove the marks, so that what is lost may be delivered again; for good on return. What was done, in words."""
    for mark in beyond.marks:
        mark.unlink(missing_ok=True)
    durable.sync({mark.parent for mark in beyond.marks})
    return [f"accepted the loss of {len(beyond.marks)} segments; they may be delivered again"] if beyond.marks else []


def _marks(zone: LandingZone) -> Iterator[tuple[UPath, float]]:
    """Each empty file without metadata, and its time."""
    for place in zone.consumed_segments.places[:2]:
        files = set(list_directory(place).files)
        described = {name.partition(".")[0] for name in files if name.endswith(META_SUFFIX)}
        for name in sorted(files):
            if name.endswith(META_SUFFIX) or name in described or f"{name}{META_SUFFIX}" in files:
                continue
            mark = path_of(place, name)
            found = status(mark)
            if found is not None and not found.st_size:
                yield mark, float(found.st_mtime)
