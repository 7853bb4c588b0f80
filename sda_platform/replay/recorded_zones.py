"""The landing zones of a replay: they give the segments of one commit once more and stay as they are."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from typing_extensions import override

from sda_platform.formats.cutting import count_records
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.table_zones import TableZones


@dataclass(frozen=True)
class RecordedZones(TableZones):
    """The zones of a table with the ``segments`` that one commit consumed, from archive and quarantine.

    ``corrected`` has other bytes for some of them, by their SHA-256.
    """

    segments: Sequence[SegmentRef] = ()
    corrected: Mapping[str, bytes] = field(default_factory=dict)

    @override
    def take(
        self, log: TableLog, head: Head, *, max_segments: int | None = None, sound_sources: Collection[str] = ()
    ) -> list[LoadedSegment]:
        """Return the recorded segments. Raises InvalidRequest for a correction of one whose metadata is unreadable."""
        by_feed = {zone.feed: zone for zone in self.zones}
        return [self._corrected(by_feed[segment.zone].load_consumed(segment)) for segment in self.segments]

    def _corrected(self, segment: LoadedSegment) -> LoadedSegment:
        data = self.corrected.get(segment.sha256)
        if data is None:
            return segment
        if segment.meta is None:
            raise InvalidRequest(f"{segment.zone}/{segment.name}: its metadata is unreadable, so its format is unknown")
        sha256, records = hashlib.sha256(data).hexdigest(), count_records(data, segment.meta.format)
        meta = replace(segment.meta, bytes=len(data), sha256=sha256, records=records)
        return replace(segment, data=data, sha256=sha256, meta=meta, defect=None)

    @override
    def clear(self, head: Head) -> None:
        """Do nothing: the zones were cleared after the commit."""
