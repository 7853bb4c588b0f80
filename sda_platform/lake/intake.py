"""Intake: which segments of the landing zones the next commit takes, and their verified bytes.

Membership decides, never an order of names: a segment is done when the newest checkpoint lists it (then only its
clean-up is missing, and is done here) or when its bytes are in the archive (then it is a second delivery).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.checkpoint import SegmentRef
from sda_platform.lake.landing import LandingZone, PendingSegment, segment_sha256
from sda_platform.lake.log import Head


@dataclass(frozen=True)
class LoadedSegment:
    """A segment's bytes; ``defect`` is set where they are not what the metadata promises.

    ``sha256`` is the hash by which it is known, see `lake.landing.segment_sha256`.
    """

    zone: str
    name: str
    sha256: str
    data: bytes
    meta: SegmentMeta | None
    defect: str | None

    def ref(self, records: int) -> SegmentRef:
        """How a checkpoint names it."""
        return SegmentRef(self.zone, self.name, self.sha256, len(self.data), records, self.defect)


def take(zones: Sequence[LandingZone], head: Head, *, max_segments: int, max_bytes: int) -> list[LoadedSegment]:
    """The next segments of all ``zones``, oldest seal first, within both bounds (at least one, however large)."""
    finish_last_commit(zones, head)
    by_feed = {zone.feed: zone for zone in zones}
    pending = sorted((s for zone in zones for s in zone.pending()), key=lambda s: (s.sealed_time_ns, s.feed, s.name))
    taken: list[LoadedSegment] = []
    for segment in _fresh(pending, by_feed):
        size = sum(len(t.data) for t in taken) + len(segment.data)
        if taken and (len(taken) >= max_segments or size > max_bytes):
            break
        if all(segment.sha256 != t.sha256 for t in taken):
            taken.append(segment)
        else:
            by_feed[segment.zone].discard_duplicate(segment.name)
    return taken


def finish_last_commit(zones: Sequence[LandingZone], head: Head) -> None:
    """Acknowledge what the newest commit consumed: a crash may have come between commit and clean-up.

    Because every plan does this before it commits, only the newest commit's segments can still lie in a zone.
    """
    consumed = head.commit.checkpoint.segments if head.commit else ()
    for zone in zones:
        zone.acknowledge(s for s in consumed if s.zone == zone.feed)


def _fresh(pending: Sequence[PendingSegment], zones: dict[str, LandingZone]) -> Iterator[LoadedSegment]:
    for segment in pending:
        zone = zones[segment.feed]
        data, defect = zone.read(segment)
        sha256 = segment_sha256(zone.feed, segment.name, data, defect)
        known = zone.was_archived(sha256) if defect is None else zone.was_quarantined(segment.name, sha256)
        if known:
            zone.discard_duplicate(segment.name)
        else:
            yield LoadedSegment(segment.feed, segment.name, sha256, data, segment.meta, defect)
