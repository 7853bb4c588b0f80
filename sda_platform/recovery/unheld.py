"""Consumed segments whose rows a table does not have."""

from collections.abc import Sequence

import pyarrow.dataset as ds

from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.consumed import MARK_DIGITS, quarantined_name
from sda_platform.landing.table_zones import has_rows
from sda_platform.landing.zone import LandingZone


def archived(segments: Sequence[SegmentRef], zones: Sequence[LandingZone]) -> list[SegmentRef]:
    """Those of ``segments`` that do not wait any more, wholly or in part."""
    found = []
    for zone in zones:
        sound, defective = zone.consumed_segments.names(), zone.consumed_segments.defective_names()
        own = [segment for segment in segments if segment.zone == zone.feed]
        found += [s for s in own if s.defect is None and s.sha256 in sound]
        found += [
            s for s in own if s.defect is not None and (quarantined_name(s.name), s.sha256[:MARK_DIGITS]) in defective
        ]
    return found


def unheld_since_head(log: TableLog, zones: Sequence[LandingZone]) -> list[SegmentRef]:
    """Segments that were consumed after the newest commit of the table, which has no row of them.

    There are some where an older state of the lake was restored, and the zones are of today. The newest commit's own
    segments are put at rest after it, too; only what is left after these costs a look at the table's rows.
    """
    head = log.head()
    if head.commit is None:
        return []
    own = {segment.sha256 for segment in head.commit.manifest.segments}
    since_s = head.commit.timestamp_ms / 1000
    later = [(zone, segment) for zone in zones for segment in zone.consumed(since_s) if segment.sha256 not in own]
    if not later:
        return []
    wanted = ds.field("segment_sha256").isin([segment.sha256 for _, segment in later])
    held = set(log.rows(["segment_sha256"], wanted).column("segment_sha256").to_pylist())
    return [segment for zone, segment in later if segment.sha256 not in held and has_rows(zone, segment)]


def unheld(log: TableLog, zones: Sequence[LandingZone], version: int) -> list[SegmentRef]:
    """Consumed segments of which the table, as of ``version``, has no row: archived ones with records, and defective
    ones."""
    if not zones:
        return []
    held = set(log.rows(["segment_sha256"], version=version).column("segment_sha256").to_pylist())
    missing = [(zone, segment) for zone in zones for segment in zone.consumed() if segment.sha256 not in held]
    return [segment for zone, segment in missing if has_rows(zone, segment)]
