"""Intake: which segments of the landing zones the next commit takes, and their verified bytes.

Membership decides, never an order of names: a segment is done when the newest checkpoint lists it (then only its
clean-up is missing, and is done here) or when its bytes are in the archive (then it is a second delivery).
"""

from collections.abc import Container, Iterator, Sequence

from sda_platform import faults
from sda_platform.lake.landing import LandingZone, LoadedSegment, PendingSegment
from sda_platform.lake.log import Head


def take(zones: Sequence[LandingZone], head: Head, *, max_segments: int, max_bytes: int) -> list[LoadedSegment]:
    """The next segments of all ``zones``, oldest seal first, within both bounds (at least one, however large)."""
    finish_last_commit(zones, head)
    faults.reach("intake.before_listing")
    pending = sorted((s for zone in zones for s in zone.pending()), key=lambda s: (s.sealed_time_ns, s.feed, s.name))
    faults.reach("intake.listed")
    taken: dict[str, LoadedSegment] = {}
    size = 0
    for segment in _fresh(pending, zones, taken):
        size += len(segment.data)
        if taken and (len(taken) >= max_segments or size > max_bytes):
            break
        taken[segment.sha256] = segment
        faults.reach("intake.read")
    return list(taken.values())


def finish_last_commit(zones: Sequence[LandingZone], head: Head) -> None:
    """Acknowledge what the newest commit consumed: a crash may have come between commit and clean-up.

    Because every plan does this before it commits, only the newest commit's segments can still lie in a zone.
    """
    consumed = head.commit.checkpoint.segments if head.commit else ()
    for zone in zones:
        zone.acknowledge([s for s in consumed if s.zone == zone.feed])


def _fresh(
    pending: Sequence[PendingSegment], zones: Sequence[LandingZone], taken: Container[str]
) -> Iterator[LoadedSegment]:
    """The pending segments that no commit holds and that are not in ``taken``; a second delivery is discarded."""
    by_feed = {zone.feed: zone for zone in zones}
    for found in pending:
        zone = by_feed[found.feed]
        segment = zone.read(found)
        if segment.sha256 in taken or _was_consumed(segment, zone, zones):
            zone.discard_duplicate(segment.name)
        else:
            yield segment


def _was_consumed(segment: LoadedSegment, zone: LandingZone, zones: Sequence[LandingZone]) -> bool:
    """A table takes the same bytes once, whichever of its zones they come to; a defect is told once for each name."""
    if segment.defect is not None:
        return zone.was_quarantined(segment.name, segment.sha256)
    return any(each.was_archived(segment.sha256) for each in zones)
