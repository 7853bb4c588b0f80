"""An archive that was removed: what its zone consumed is then known from the table alone.

Second deliveries are recognised by the archive. Where its directory is gone although the table has commits, an empty
file for each segment that the table has rows of takes the place of the bytes, so that a redelivery doubles nothing.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.dataset as ds
from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.landing.listing import is_local
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.log import Head, TableLog

_UNFINISHED = ".archive.new"


def restore_marks(zones: Sequence[LandingZone], log: TableLog, head: Head) -> None:
    """Mark in each local zone without an archive what the table at ``head`` holds of it."""
    for zone in zones:
        archive = zone.archive.places[0]
        if head.commit is not None and is_local(zone.root) and not archive.exists():
            _mark(zone, log, Path(str(archive)))


def _mark(zone: LandingZone, log: TableLog, archive: Path) -> None:
    """The directory is made beside its place and renamed, so a crash leaves it whole or absent."""
    wanted = (ds.field("feed") == zone.feed) & (ds.field("record_number") >= 0)
    held = log.rows(["segment_sha256"], wanted).column("segment_sha256").unique().to_pylist()
    new = archive.with_name(_UNFINISHED)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    for sha256 in held:
        (new / sha256).touch()
    durable.sync([UPath(new)])
    new.rename(archive)
    durable.sync([UPath(archive.parent)])
