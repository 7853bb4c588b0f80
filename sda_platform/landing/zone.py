"""Landing zones: sealed segments are pending until a table has consumed them, then they move to the archive.

A zone is ``<root>/<feed>/`` with ``pending/``, ``archive/`` and ``quarantine/``. A segment is data plus
``<name>.meta.json``. The metadata is written last, so a segment without it is not complete (`orphans` reports and
quarantines such files). After the commit the metadata moves to the archive first, then the data. So a consumed segment
is never listed as pending, and the next plan repairs a crash between the two moves. Both files stay in the archive, so
that a batch can be read again. A segment's identity is its bytes. A name belongs to the first bytes that were consumed
under it; other bytes under that name are a conflict. This module decodes no records.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from upath import UPath

from sda_platform import failpoints
from sda_platform.lake import durable
from sda_platform.lake.errors import SegmentConflict, SegmentLost
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.consumed import META_SUFFIX
from sda_platform.landing.listing import bytes_at, bytes_in, holds_file, move_between, move_file, move_new
from sda_platform.landing.segments import (
    DUPLICATE,
    REPORTED,
    UNDECODABLE,
    LoadedSegment,
    PendingSegment,
    defect_kind,
    defect_of,
    is_known_by_bytes,
    segment_is,
    segment_sha256,
)
from sda_platform.landing.writing import WritableZone

# The defects of a quarantined segment: its bytes and its metadata disagree, or the decoder failed.
_IN_QUARANTINE = ("in quarantine", f"{UNDECODABLE} an error; in quarantine")


class LandingZone(WritableZone):
    """The zone of one feed below ``root``: seals segments, and moves them when a table has consumed them."""

    def acknowledge(self, segments: Sequence[SegmentRef]) -> None:
        """Move segments that the table has consumed, metadata first; the moves are synced on return. May be repeated.

        Sound segments go to the archive under a name made of their content, and their name is marked as used. Defective
        segments go to quarantine under their own name. Second deliveries are removed. What arrived later under one of
        these names stays pending: other bytes, or the rest of a file that came alone.
        """
        if not segments:
            return
        self._make_places()
        for segment in segments:
            if segment.is_duplicate:
                self._discard(segment)
            else:
                self._move_away(segment)
                if segment.defect is not None:
                    self._give_back(segment.name, bytes_at(self.consumed_segments.place(segment)[0]))
        # Without the sync, a power loss could restore them after the next commit, whose manifest does not list them.
        durable.sync(self._places)
        failpoints.hit("landing.acknowledged")

    def _move_away(self, segment: SegmentRef) -> None:
        place, data_at_rest, meta_at_rest = self.consumed_segments.names_at_rest(segment)
        # Read first: a move by another run after this line leaves the data in the archive.
        data, moved = bytes_in(self._pending, segment.name), False
        is_at_rest = holds_file(place, data_at_rest)  # if True, pending data of this name arrived later
        described = self.describe(segment.name) if segment.defect is not None or data is None else None
        is_own = not is_at_rest and self._is_own(segment, data, described)
        # The name of a defective segment is free after a move by another run: its sender may have sealed it again.
        move = move_between if segment.defect is None else move_new
        # Lone data has no metadata to move: what comes after this look completes it, and `_give_back` returns the data.
        if is_own and (segment.defect is None or described):
            move((self._pending, segment.name + META_SUFFIX), (place, meta_at_rest))
            failpoints.hit("landing.metadata_moved")
        if segment.defect is None and not is_at_rest:
            # After the metadata is archived: a mark without metadata would make a repeated segment a conflict.
            # Before the name is free: later, a sender could seal other bytes that then become a conflict.
            self.consumed_segments.mark_name(segment.name)
        if is_own:
            moved = move((self._pending, segment.name), (place, data_at_rest))
            failpoints.hit("landing.data_moved")
        # If its data is missing or was replaced after the read, the archive must still record it as consumed. A
        # defective segment that was completed after the read is kept with the bytes that were reported.
        if not is_at_rest and not moved:
            self._put_at_rest(place, data_at_rest, data if data and segment_is(segment, data) else b"")

    def _put_at_rest(self, place: UPath, name: str, data: bytes) -> None:
        """Write ``data`` as ``name`` in ``place``, unless another run has moved it there by now.

        It goes through ``pending/``, where the sweep removes partial files.
        """
        partial = self._pending / f".{name}"
        durable.write(partial, data)
        if not move_new((self._pending, f".{name}"), (place, name)):
            partial.unlink(missing_ok=True)

    def _discard(self, segment: SegmentRef) -> None:
        """Remove a second delivery, unless something else waits under its name by now: other bytes, or a whole segment
        of which a part is in quarantine."""
        waiting = self.pending_path(segment.name)
        data, described = bytes_at(waiting) or b"", self.describe(segment.name)
        if not segment_is(segment, data):
            return
        if (
            segment.defect == REPORTED
            and described
            and not self.consumed_segments.judged(self.read(described)).is_duplicate
        ):
            return
        if segment.defect == DUPLICATE and data:
            # Before the name is free, as in `_move_away`: another run could remove the bytes that a sender then seals.
            self.consumed_segments.mark_name(segment.name, segment_sha256(self.feed, segment.name, data, None))
        if described:
            self.discard_duplicate(segment.name)
        else:  # metadata that comes after the look above is that of its sender, who completes the file just now
            waiting.unlink(missing_ok=True)
            self._give_back(segment.name, data)

    def _give_back(self, name: str, data: bytes | None) -> None:
        """Return the ``data`` of a lone file to ``pending/`` if its metadata arrived while the file was moved away.

        The sender's seal succeeded when the metadata was written: data and metadata are a sound segment.
        """
        described = self.describe(name)
        if data and described and described.meta and defect_of(described, data) is None:
            durable.create(self.pending_path(name), data)

    def _is_own(self, segment: SegmentRef, data: bytes | None, described: PendingSegment | None) -> bool:
        """Return whether the pending ``data`` (or metadata alone) under the segment's name belongs to the segment.

        ``described``: what the pending metadata states; not needed for the data of a sound segment.
        """
        if segment.defect is None and data is not None:
            return segment_is(segment, data)
        meta = described.meta if described else None
        if segment.defect is None:
            return meta is not None and meta.sha256 == segment.sha256
        is_bad = defect_kind(segment.defect) == "bad_segment"
        if is_bad and described and data is not None and defect_of(described, data) is None:
            return False  # the defective segment was sent again, complete
        return segment_is(segment, data or b"")

    def consumed(self, since_s: float | None = None) -> Iterator[SegmentRef]:
        """List the segments moved to archive or quarantine after the wall time ``since_s`` (None: all).

        Their record counts are not available (0). A defective segment is listed if its bytes still exist.
        """
        for sha256, name in sorted(self.consumed_segments.names(since_s).items()):
            yield SegmentRef(self.feed, name, sha256, 0, 0)
        for name, mark in sorted(self.consumed_segments.defective_names(since_s)):
            places = (self.consumed_segments.quarantined(name, mark), self.pending_path(name))
            found = (data for place in places if (data := bytes_at(place)) is not None)
            refs = (self._in_quarantine(name, data, defect) for data in found for defect in _IN_QUARANTINE)
            yield from islice((ref for ref in refs if ref.sha256.startswith(mark)), 1)

    def _in_quarantine(self, name: str, data: bytes, defect: str) -> SegmentRef:
        return SegmentRef(self.feed, name, segment_sha256(self.feed, name, data, defect), len(data), 1, defect)

    def load_consumed(self, segment: SegmentRef) -> LoadedSegment:
        """Read a consumed segment, as the commit read it, from the archive or (a defective one) from quarantine.

        If a crash interrupted a move, the segment is read from ``pending/``. A second delivery has no bytes of its own.
        Raises SegmentLost if the bytes do not exist any more.
        """
        if segment.is_duplicate:
            return LoadedSegment(self.feed, segment.name, segment.sha256, b"", None, segment.defect)
        resting, at_rest = self.consumed_segments.place(segment)[0], self.consumed_segments.metadata(segment)
        places = [(resting, at_rest), *map(self._waiting, _names_of(segment))]
        found = [(data, its_meta) for path, its_meta in places if (data := bytes_at(path)) is not None]
        own = ((data, its_meta) for data, its_meta in found if segment_is(segment, data))
        data, its_meta = next(own, (None, at_rest))
        if data is None:
            problem = f"has other bytes ({len(found[0][0])}, not {segment.bytes})" if found else "is missing"
            raise SegmentLost(f"{resting}: {self.feed}/{segment.name}, which a commit consumed, {problem}")
        texts = (text for path in (at_rest, its_meta) if (text := bytes_at(path)) is not None)
        meta = next((self._described(segment.name, text).meta for text in texts), None)
        if segment.defect is None and meta is None:
            raise SegmentLost(f"{at_rest}: the metadata of {self.feed}/{segment.name} is missing or unreadable")
        return LoadedSegment(self.feed, segment.name, segment.sha256, data, meta, segment.defect)

    def restore(self, segments: Sequence[SegmentRef]) -> None:
        """Move consumed segments back to ``pending/``, data first, metadata last. May be repeated after a crash.

        A segment whose name other bytes use gets its hash as name. Raises SegmentLost if the bytes of a segment do not
        exist, SegmentConflict if no other name is possible. In both cases no segment moves.
        """
        if not segments:
            return
        self._make_places()
        names = [self._free_name(segment) for segment in segments]
        for segment, name in zip(segments, names, strict=True):
            resting, waiting = self.consumed_segments.place(segment)[0], self.pending_path(name)
            if segment.defect is None:
                self.consumed_segments.name_mark(segment.name).unlink(missing_ok=True)
            if segment_is(segment, bytes_at(resting) or b""):
                move_file(resting, waiting)
            else:  # it is pending already and must not be recorded as consumed
                resting.unlink(missing_ok=True)
            failpoints.hit("landing.data_restored")
        # Without the sync, a power loss could keep the metadata alone, which means a consumed segment.
        durable.sync(self._places)
        for segment, name in zip(segments, names, strict=True):
            move_file(self.consumed_segments.metadata(segment), self._waiting(name)[1])
            failpoints.hit("landing.metadata_restored")
        durable.sync(self._places)
        failpoints.hit("landing.restored")

    def _free_name(self, segment: SegmentRef) -> str:
        """Return the name under which ``segment`` can be, or already is, pending. Raises SegmentLost,
        SegmentConflict.
        """
        data = self.load_consumed(segment).data
        for name in _names_of(segment):
            if bytes_at(self.pending_path(name)) in (None, data):
                return name
        raise SegmentConflict(f"{self._pending / segment.name}: other bytes are pending under the name to restore")

    def complete_moves(self) -> None:
        """Archive metadata that waits alone while its data is archived: a power loss kept the second of two moves only.

        Without its metadata, a consumed segment cannot be read again. No other process may write.
        """
        waiting = set(self.pending_files())
        alone = {name.removesuffix(META_SUFFIX) for name in waiting if name.endswith(META_SUFFIX)} - waiting
        described = [self.describe(name) for name in sorted(alone)]
        consumed = [
            (d.name, d.meta.sha256) for d in described if d and d.meta and self.consumed_segments.holds(d.meta.sha256)
        ]
        known_as = self.consumed_segments.names() if consumed else {}
        for name, sha256 in consumed:
            segment = SegmentRef(self.feed, name, sha256, 0, 0)
            if known_as[sha256] == sha256 and not self.consumed_segments.metadata(segment).exists():
                move_file(self._waiting(name)[1], self.consumed_segments.place(segment)[1])
                self.consumed_segments.mark_name(name)
        if consumed:
            durable.sync(self._places)

    def discard_duplicate(self, name: str) -> None:
        """Remove a second delivery of bytes that were consumed.

        The removal of its metadata is synced first: alone, it would describe the next file of this name.
        """
        data_path, meta_path = self._waiting(name)
        if meta_path.exists():
            meta_path.unlink(missing_ok=True)
            durable.sync([self._pending])
            failpoints.hit("landing.duplicate_metadata_removed")
        data_path.unlink(missing_ok=True)

    def _make_places(self) -> None:
        for place in self._places:
            durable.make_directory(place)


def _names_of(segment: SegmentRef) -> list[str]:
    """Return the names under which a consumed segment can be pending again: its own, or a hash of the bytes."""
    return [segment.name, *([segment.sha256] if is_known_by_bytes(segment.name, segment.defect) else [])]
