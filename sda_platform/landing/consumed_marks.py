"""An archive that was removed or pruned: what its zone consumed is then known from the table alone.

Second deliveries are recognised by the archive. Where a segment is gone and the table has rows of it, an empty file
takes the place of its bytes. So a redelivery doubles nothing. A plan looks whether the whole directory is gone, the
nightly maintenance whether single files are.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.dataset as ds
from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.listing import is_local
from sda_platform.landing.zone import LandingZone

_UNFINISHED = ".archive.new"


def restore_marks(zones: Sequence[LandingZone], log: TableLog, head: Head) -> None:
    """Mark in each local zone without an archive what the table at ``head`` holds of it."""
    for zone in zones:
        archive = zone.consumed_segments.places[0]
        if head.commit is not None and is_local(zone.root) and not archive.exists():
            _mark(zone, log, Path(str(archive)))


def mark_pruned(zones: Sequence[LandingZone], log: TableLog) -> Iterator[str]:
    """Mark in each local zone the single segments that the table holds and the archive lacks; return their number.

    Segments of the newest commit may not be archived yet and are omitted.
    """
    head = log.head()
    for zone in zones:
        archive = zone.consumed_segments.places[0]
        if head.commit is None or not is_local(zone.root) or not archive.exists():
            continue
        held = log.distinct("segment_sha256", _of(zone) & (ds.field(COMMIT_SEQUENCE) < head.sequence))
        gone = sorted(sha256 for sha256 in held if not zone.consumed_segments.holds(sha256))
        for sha256 in gone:
            (archive / sha256).touch()
        durable.sync([archive])
        if gone:
            yield (
                f"{zone.feed}: {len(gone)} consumed segments are gone from {archive}, such as {gone[0]}. Each is "
                "marked as consumed; without its bytes its commit can be neither replayed nor built anew"
            )


def _of(zone: LandingZone) -> ds.Expression:
    """Return the records that came from ``zone``."""
    return (ds.field("feed") == zone.feed) & (ds.field("record_number") >= 0)


def _mark(zone: LandingZone, log: TableLog, archive: Path) -> None:
    """The directory is made under another name and renamed, so after a crash it is complete or absent."""
    new = archive.with_name(_UNFINISHED)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for sha256 in log.distinct("segment_sha256", _of(zone)):
        (new / sha256).touch()
    durable.sync([UPath(new)])
    new.rename(archive)
    durable.sync([UPath(archive.parent)])
