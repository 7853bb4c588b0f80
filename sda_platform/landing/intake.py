"""Intake: which segments of the landing zones the next commit takes, and their verified bytes.

Membership decides, never an order of names: a segment is done when the newest manifest lists it (then only its clean-up
is missing, and is done here). It is a second delivery when its bytes were consumed before with a valid record. Bytes
that were refused as a whole in the same zone and format count, too. The commit lists second deliveries too: only after
it are they removed, so each is counted once. Other bytes under the name of a consumed segment are a conflict and are
quarantined.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence

from sda_platform import failpoints
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake.log_commits import Head
from sda_platform.landing.orphans import take_orphans
from sda_platform.landing.segments import (
    DUPLICATE,
    LoadedSegment,
    PendingSegment,
    is_known_by_bytes,
    refused_hashes,
)
from sda_platform.landing.zone import LandingZone

_TURNS_OF_SEGMENTS = 4
_TURNS_OF_COST = 32
# Of a source whose records may be unreadable: about 5,000 small ones, a tenth of a second, or one segment.
_TURNS_OF_COST_UNPROVEN = 256
# A record takes time by itself, most where it cannot be read: as much as so many bytes of sound records.
_RECORD_BYTES = 96


def take(
    zones: Sequence[LandingZone],
    head: Head,
    *,
    max_segments: int,
    max_bytes: int,
    orphaned_before_s: float = 0.0,
    sound_sources: Collection[str] = (),
) -> list[LoadedSegment]:
    """Return the next segments of all ``zones``, within both bounds (at least one); see `in_turns` for their order.

    Orphans that have not changed since the wall time ``orphaned_before_s`` are taken as defective segments. The last
    batch had sound records of ``sound_sources``.
    """
    finish_last_commit(zones, head)
    failpoints.hit("intake.before_listing")
    found = [segment for zone in zones for segment in _found_in(zone, orphaned_before_s)]
    found = in_turns(found, sound_sources, max_segments=max_segments, max_bytes=max_bytes)
    failpoints.hit("intake.listed")
    taken: dict[str, LoadedSegment] = {}
    size = 0
    for segment in _fresh(found, zones, taken):
        # Metadata may state less than there is, and an orphan has none: memory is bounded by what was read.
        size += max(len(segment.data), _cost(segment.meta))
        if taken and (len(taken) >= max_segments or size > max_bytes):
            break
        taken[segment.sha256] = segment
        failpoints.hit("intake.read")
    return list(taken.values())


def in_turns(
    found: Sequence[PendingSegment], sound_sources: Collection[str], *, max_segments: int, max_bytes: int
) -> list[PendingSegment]:
    """``found`` in the order in which they are due, with turns of the sources.

    A turn of a source is a quarter of the segments of a batch, or a thirty-second of what it may cost: bytes, or
    records where they are small. It is an eighth of that unless the source is one of ``sound_sources``: records that
    cannot be read cost most. Its segments beyond come after the first turns of all others. While other
    sources wait, a batch has no more than one turn of cost of each, or one segment. So a large file of one partner, or
    one of records that cannot be read, adds little to the batches of the others.
    """
    due = sorted(found, key=lambda s: (s.due_time_ns, s.feed, s.name))
    used: dict[str, list[int]] = {}
    turns = []
    for segment in due:
        segments_and_cost = used.setdefault(segment.source, [0, 0])
        counted, cost = segments_and_cost
        turns_of_cost = _TURNS_OF_COST if segment.source in sound_sources else _TURNS_OF_COST_UNPROVEN
        turn_of_cost = cost * turns_of_cost // max_bytes
        turns.append((max(counted * _TURNS_OF_SEGMENTS // max_segments, turn_of_cost), turn_of_cost))
        segments_and_cost[0] += 1
        segments_and_cost[1] += _cost(segment.meta)
    order = sorted(range(len(due)), key=lambda place: turns[place][0])
    return [due[place] for place in order if len(used) == 1 or turns[place][1] == 0]


def _cost(meta: SegmentMeta | None) -> int:
    """Return what a segment costs a batch, in bytes of sound records."""
    return max(meta.bytes, meta.records * _RECORD_BYTES) if meta else 0


def finish_last_commit(zones: Sequence[LandingZone], head: Head) -> None:
    """Acknowledge what the newest commit consumed: a crash may have come between commit and clean-up.

    Because every plan does this before it commits, only the newest commit's segments can still lie in a zone.
    """
    consumed = head.commit.manifest.segments if head.commit else ()
    for zone in zones:
        zone.acknowledge([s for s in consumed if s.zone == zone.feed])


def _found_in(zone: LandingZone, orphaned_before_s: float) -> list[PendingSegment]:
    """Return the pending segments and the orphans of ``zone``, of one listing."""
    listing = zone.listing()
    return [*zone.pending(listing), *take_orphans(zone, orphaned_before_s, listing)]


def _fresh(
    pending: Sequence[PendingSegment], zones: Sequence[LandingZone], taken: Mapping[str, LoadedSegment]
) -> Iterator[LoadedSegment]:
    """Yield the pending segments that no commit lists, each as what it is: sound, defective, a conflict, a second
    delivery.

    One with the bytes of a segment in ``taken``, but of another zone or format, waits for the next batch: only the
    commit shows whether the first one had a valid record.
    """
    by_feed = {zone.feed: zone for zone in zones}
    for found in pending:
        zone = by_feed[found.feed]
        if found.is_lone and zone.is_whole(found.name):
            continue  # it was sealed since it was found lone: no orphan any more
        try:
            segment = zone.read(found)
        except PermissionError:
            continue  # it waits, and the check `no_orphans` names it, until it can be read
        if not segment.data and zone.is_absent(found.name):
            continue  # another run, or its sender, removed it since the listing
        twin = taken.get(segment.sha256)
        if twin is not None and segment.defect is None and not _is_alike(segment, twin):
            continue
        if twin is not None or _is_held(found, segment, zones):
            yield segment.refused(DUPLICATE)
            continue
        yield zone.consumed_segments.judged(segment)


def _is_alike(one: LoadedSegment, other: LoadedSegment) -> bool:
    """Return whether two segments with the same bytes come from one zone in one format."""
    return one.zone == other.zone and (one.meta and one.meta.format) == (other.meta and other.meta.format)


def _is_held(found: PendingSegment, segment: LoadedSegment, zones: Sequence[LandingZone]) -> bool:
    """Return whether the table has consumed these bytes: with a valid record in any of its zones, or refused as a whole
    in the same zone and format.

    That makes a whole segment a second delivery, and a lone file the rest of a consumed one; what is defective
    otherwise is reported in any case.
    """
    own = next(zone for zone in zones if zone.feed == segment.zone)
    if segment.defect is None and segment.meta is not None:
        if any(zone.consumed_segments.holds(segment.sha256) for zone in zones):
            return True
        is_by_bytes = is_known_by_bytes(segment.name, None)
        return is_by_bytes and own.consumed_segments.holds_delivery(own.feed, segment.meta.format, segment.sha256)
    if not found.is_lone:
        return False
    if found.meta is not None:
        return any(zone.consumed_segments.holds(found.meta.sha256) for zone in zones)
    plain = hashlib.sha256(segment.data).hexdigest()
    return any(zone.consumed_segments.holds(plain) for zone in zones) or any(
        map(own.consumed_segments.holds, refused_hashes(own.feed, plain))
    )
