"""Removal of segments that were consumed long ago, and whose rows the table has.

An empty file takes the place of the bytes, as in a pruned archive (`consumed_marks`), so a second delivery is still
recognised. Metadata and the mark of the name go after it. So a removal that is killed is found and finished by the next
one. Marks of second deliveries, which have no segment, go by their own age. The age counts from the time at which a
file got its place here; object stores keep none, so nothing is removed there by the platform.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow.dataset as ds
from upath import UPath

from sda_platform import failpoints
from sda_platform.lake import durable
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.consumed import MARK_DIGITS, META_SUFFIX
from sda_platform.landing.listing import changed_s, is_local, list_directory, path_of, status
from sda_platform.landing.zone import LandingZone


@dataclass(frozen=True)
class ExpiredSegments:
    """How many segments were removed, and how many bytes that freed."""

    segments: int = 0
    freed_bytes: int = 0


def expire_segments(zones: Sequence[LandingZone], log: TableLog, *, before_s: float) -> ExpiredSegments:
    """Remove the segments that ``zones`` handed to the table of ``log`` before ``before_s`` (Unix time).

    Kept are those of the newest commit, and those of which the table has no row. A segment without records is among
    these: its mark would look like one whose rows are lost.
    """
    head, removed, freed = log.head(), 0, 0
    for zone in zones:
        if head.commit is None or not is_local(zone.root):
            continue
        for data, files in _expired(zone, log, head, before_s):
            found = status(data)
            size = found.st_size if found else 0
            if found and size:
                durable.write(data, b"")
                os.utime(str(data), (changed_s(found), changed_s(found)))  # when it was consumed: `beyond_archive`
            failpoints.hit("landing.expired", zone.feed)
            for file in files:
                file.unlink(missing_ok=True)
            removed, freed = removed + 1, freed + size
        for mark in _old_marks(zone, before_s):
            mark.unlink(missing_ok=True)
        durable.sync(place for place in zone.consumed_segments.places if place.exists())
    return ExpiredSegments(removed, freed)


def _expired(zone: LandingZone, log: TableLog, head: Head, before_s: float) -> Iterator[tuple[UPath, Sequence[UPath]]]:
    """Yield the data of each segment that goes, with the files that go after it."""
    sound, defective = list(_old_sound(zone, before_s)), list(_old_defective(zone, before_s))
    if not sound and not defective:
        return
    of_zone = (ds.field("feed") == zone.feed) & (ds.field(COMMIT_SEQUENCE) < head.sequence)
    held = log.distinct("segment_sha256", of_zone)
    for segment in sound:
        if segment.sha256 in held:
            data, meta = zone.consumed_segments.place(segment)
            yield data, (meta, zone.consumed_segments.name_mark(segment.name))
    known = {sha256[:MARK_DIGITS] for sha256 in held}
    for data in defective:
        if data.name[-MARK_DIGITS:] in known:
            yield data, (data.with_name(data.name + META_SUFFIX),)


def _old_sound(zone: LandingZone, before_s: float) -> Iterator[SegmentRef]:
    """Yield the archived segments that are named by old metadata; a mark has none."""
    place = zone.consumed_segments.places[0]
    for file in list_directory(place).files:
        sha256, _, name = file.removesuffix(META_SUFFIX).partition(".")
        if sha256 and file.endswith(META_SUFFIX) and _is_old(path_of(place, file), before_s):
            yield SegmentRef(zone.feed, name or sha256, sha256, 0, 0)


def _old_defective(zone: LandingZone, before_s: float) -> Iterator[UPath]:
    """Yield the old data in quarantine, also where only its metadata is left."""
    place = zone.consumed_segments.places[1]
    for file in sorted(list_directory(place).files):
        data, found = path_of(place, file.removesuffix(META_SUFFIX)), status(path_of(place, file))
        is_meta = file.endswith(META_SUFFIX)
        if found is None or not found.st_size or changed_s(found) >= before_s:
            continue
        if not is_meta or not (its_data := status(data)) or not its_data.st_size:
            yield data


def _old_marks(zone: LandingZone, before_s: float) -> Iterator[UPath]:
    """Yield the old marks of second deliveries, which are not empty."""
    place = zone.consumed_segments.places[2]
    for file in list_directory(place).files:
        mark = path_of(place, file)
        found = status(mark)
        if found is not None and found.st_size and changed_s(found) < before_s:
            yield mark


def _is_old(file: UPath, before_s: float) -> bool:
    found = status(file)
    return found is not None and changed_s(found) < before_s
