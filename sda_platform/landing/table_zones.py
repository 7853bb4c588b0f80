"""The landing zones of one table: what its asset takes from them, and clears after its commit."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain

from upath import UPath

from sda_platform.lake.errors import SegmentLost
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.lost_tables import require_new
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing import intake
from sda_platform.landing.beyond_archive import beyond_archive
from sda_platform.landing.consumed_marks import restore_marks
from sda_platform.landing.owners import Owners
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone


@dataclass(frozen=True)
class TableZones:
    """The zones of a table and the bounds of a batch.

    ``attempts_file`` names the segments whose decoding has begun; None where no attempt is recorded. ``owners`` are the
    processes that write it. A lone file that has not changed since the wall time ``orphaned_before_s`` is an orphan.
    """

    zones: Sequence[LandingZone]
    max_segments: int
    max_bytes: int
    attempts_file: UPath | None = None
    owners: Owners = field(default_factory=Owners)
    orphaned_before_s: float = 0.0

    def take(
        self, log: TableLog, head: Head, *, max_segments: int | None = None, sound_sources: Collection[str] = ()
    ) -> list[LoadedSegment]:
        """Take the next segments for the table of ``log`` at ``head``; see `intake.take`.

        Raises TableLost where there is no table, but the zones gave it records before.
        """
        if head.version < 0:
            require_new(log, shown_by_zones(log.table, self.zones))
        restore_marks(self.zones, log, head)
        return intake.take(
            self.zones,
            head,
            max_segments=max_segments or self.max_segments,
            max_bytes=self.max_bytes,
            orphaned_before_s=self.orphaned_before_s,
            sound_sources=sound_sources,
        )

    def clear(self, head: Head) -> None:
        """Clear the zones of what the commit at ``head`` consumed; see `intake.finish_last_commit`."""
        intake.finish_last_commit(self.zones, head)


def shown_by_zones(table: Table, zones: Sequence[LandingZone]) -> str | None:
    """Return how ``zones`` show that ``table``, which has no log, existed before; None if they do not."""
    segments = chain.from_iterable(zone.consumed() for zone in zones)
    by_feed = {zone.feed: zone for zone in zones}
    segment = next((s for s in segments if has_rows(by_feed[s.zone], s)), None)
    if segment is None:
        beyond = beyond_archive(zones)
        return f"{table.name} is missing, and {beyond}" if beyond.marks else None
    consumed = f"{segment.zone}/{segment.name}"
    return f"{table.name} is missing, but its zones have consumed segments, such as {consumed}: it was lost"


def has_rows(zone: LandingZone, segment: SegmentRef) -> bool:
    """Return whether the table of a consumed segment must have a row of it: a record, or the defect."""
    if segment.defect is not None:
        return True
    try:
        meta = zone.load_consumed(segment).meta
    except SegmentLost:
        return False  # a mark that a segment was consumed whose bytes are gone
    return meta is not None and meta.records > 0
