"""Intake: which segments of the landing zones the next commit takes, and their verified bytes.

Membership decides, never an order of names: a segment is done when the newest checkpoint lists it (then only its
clean-up is missing, and is done here) or when its bytes are in the archive (then it is a second delivery).
"""

from collections.abc import Container, Iterator, Sequence

from sda_platform import faults
from sda_platform.lake.landing.orphans import take_orphans
from sda_platform.lake.landing.segments import LoadedSegment, PendingSegment, segment_sha256
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.log import Head


def take(
    zones: Sequence[LandingZone], head: Head, *, max_segments: int, max_bytes: int, orphaned_before_s: float = 0.0
) -> list[LoadedSegment]:
    """The next segments of all ``zones``, oldest seal first, within both bounds (at least one, however large).

    Orphans that have not changed since the wall time ``orphaned_before_s`` are taken as defective segments.
    """
    finish_last_commit(zones, head)
    faults.reach("intake.before_listing")
    found = [segment for zone in zones for segment in (*zone.pending(), *take_orphans(zone, orphaned_before_s))]
    found.sort(key=lambda s: (s.sealed_time_ns, s.feed, s.name))
    faults.reach("intake.listed")
    taken: dict[str, LoadedSegment] = {}
    size = 0
    for segment in _fresh(found, zones, taken):
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
        if found.is_lone and zone.is_whole(found.name):
            continue  # it was sealed since it was found lone: no orphan any more
        try:
            segment = zone.read(found)
        except PermissionError:
            continue  # it waits, and the check `no_orphans` names it, until it can be read
        is_told = segment.defect is not None and zone.archive.holds_defective(segment.name, segment.sha256)
        if segment.sha256 in taken or is_told or _is_held(found, segment, zones):
            zone.discard_duplicate(segment.name)
        else:
            yield segment


def _is_held(found: PendingSegment, segment: LoadedSegment, zones: Sequence[LandingZone]) -> bool:
    """Whether the table holds these bytes already, whichever of its zones they came to.

    That makes a whole segment a second delivery, and a lone file the rest of a consumed one; what is defective
    otherwise is told in any case.
    """
    if segment.defect is not None and not found.is_lone:
        return False
    if segment.defect is None:
        sha256 = segment.sha256
    else:
        sha256 = found.meta.sha256 if found.meta else segment_sha256(segment.zone, segment.name, segment.data, None)
    return any(zone.archive.holds(sha256) for zone in zones)
