"""The landing zones of a replay: they give the segments of one commit once more and stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.table_zones import TableZones


@dataclass(frozen=True)
class RecordedZones(TableZones):
    """The zones of a table with the ``segments`` that one commit consumed, from archive and quarantine."""

    segments: Sequence[SegmentRef] = ()

    @override
    def take(self, log: TableLog, head: Head, *, max_segments: int | None = None) -> list[LoadedSegment]:
        """Return the recorded segments."""
        by_feed = {zone.feed: zone for zone in self.zones}
        return [by_feed[segment.zone].archived(segment) for segment in self.segments]

    @override
    def clear(self, head: Head) -> None:
        """Do nothing: the zones were cleared after the commit."""
