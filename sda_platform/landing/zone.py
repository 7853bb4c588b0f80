"""Landing zones: where sealed segments wait, and where they go once a table holds them.

A zone is ``<root>/<feed>/`` with ``pending/``, ``archive/`` and ``quarantine/``. A segment is data plus
``<name>.meta.json``; the metadata is written last, so a segment without it is not there yet (`orphans` sees to
it that it does not lie for ever). After the commit the metadata moves to the archive first, then the data: what a table
holds is never seen as waiting, and a crash between the two is mended at the next plan. Both stay in the archive, so
that a batch can be built again. A segment is known by its bytes, and a name belongs to the first bytes that were
consumed under it: later ones are a conflict. Nothing here decodes records; it only counts them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from upath import UPath

from sda_platform import failpoints
from sda_platform.formats.segments import MetaError, SegmentMeta, parse_segment_meta
from sda_platform.lake import durable
from sda_platform.lake.errors import NameUsed, SegmentConflict, SegmentLost
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.consumed import META_SUFFIX, ConsumedSegments
from sda_platform.landing.listing import Listing, bytes_at, changed_s, is_local, list_directory, path_of, status
from sda_platform.landing.segments import (
    NAME_CONFLICT,
    UNDECODABLE,
    LoadedSegment,
    PendingSegment,
    WaitingSegment,
    defect_kind,
    defect_of,
    is_known_by_bytes,
    refused_sha256,
    segment_is,
    segment_sha256,
)

# What is known of a segment in quarantine: either its bytes were not as promised, or the decoder failed at them.
_IN_QUARANTINE = ("in quarantine", f"{UNDECODABLE} an error; in quarantine")


class LandingZone:
    """One feed's zone below ``root``."""

    def __init__(self, root: str, feed: str) -> None:
        self.feed = feed
        self.root = UPath(root) / feed
        self._pending = self.root / "pending"
        self.archive = ConsumedSegments(self.root)
        self._places = (self._pending, *self.archive.places)

    def seal(self, name: str, data: bytes, meta: SegmentMeta) -> bool:
        """Put a segment into the zone, data first, metadata last. False: the zone already has or had these bytes.

        Raises SegmentConflict when other bytes wait, or were consumed, under this name: nothing is overwritten.
        """
        if self._is_held(name, data, meta.format):
            return False
        data_path, meta_path = self._waiting(name)
        is_new = durable.create(data_path, data)
        if not is_new and bytes_at(data_path) != data:
            raise SegmentConflict(f"{data_path}: other bytes wait under this name; give the new ones another")
        if not is_new and meta_path.exists():
            # The writer that put it there may have died before it was there for good.
            durable.sync([data_path, meta_path, self._pending])
            return False
        if self._is_name_used(name, data, meta.format):  # also where an attempt that died left the data alone
            data_path.unlink(missing_ok=True)
            raise NameUsed(f"{self.feed}/{name}: {NAME_CONFLICT}; give the new ones another")
        if not is_new:
            durable.write(data_path, data)  # an earlier attempt left it alone here: it may not be synced, and is old
        failpoints.hit("landing.data_written")
        durable.write(meta_path, meta.to_json().encode())
        if not data_path.exists() and not self._is_held(name, data, meta.format):
            # What an earlier attempt left alone here was old, and a batch cleared it away while this one wrote.
            durable.write(data_path, data)
        failpoints.hit("landing.sealed")
        return True

    def _is_held(self, name: str, data: bytes, segment_format: str) -> bool:
        """Whether a segment of this name with these bytes was consumed here."""
        return any(map(self.archive.holds, self._known_as(name, data, segment_format)))

    def _is_name_used(self, name: str, data: bytes, segment_format: str) -> bool:
        """Whether a segment of this name with other bytes was consumed here."""
        if not self.archive.name_mark(name).exists():
            return False
        hashes = self._known_as(name, data, segment_format)
        own = (SegmentRef(self.feed, name, sha256, len(data), 0) for sha256 in hashes)
        # The name of a segment is marked after its metadata was archived.
        return not any(self.archive.metadata(segment).exists() for segment in own)

    def _known_as(self, name: str, data: bytes, segment_format: str) -> list[str]:
        """The hashes by which these bytes are known here: with a valid record, or refused as a whole."""
        sha256 = segment_sha256(self.feed, name, data, None)
        is_by_bytes = is_known_by_bytes(name, None)
        return [sha256, *([refused_sha256(self.feed, segment_format, sha256)] if is_by_bytes else [])]

    def pending(self) -> list[PendingSegment]:
        """The segments that wait, oldest seal first. Reads metadata only."""
        segments = []
        for name in self.pending_names():
            with suppress(PermissionError):  # taken away since the listing, which leaves out what cannot be read
                segment = self.describe(name)
                segments += [segment] if segment is not None else []  # None: consumed meanwhile
        return sorted(segments, key=lambda s: (s.sealed_time_ns, s.name))

    def pending_names(self) -> list[str]:
        """Names of the segments that wait with both data and metadata, sorted."""
        found = set(self.pending_files())
        return sorted(name for name in found if name + META_SUFFIX in found)

    def pending_files(self) -> list[str]:
        """Names of all files that wait and can be read, partial ones of a writer at work among them."""
        return list(self.listing().files)

    def listing(self) -> Listing:
        """Everything that lies in ``pending/``."""
        return list_directory(self._pending)

    def pending_path(self, name: str) -> UPath:
        """The path of the file in ``pending/`` that is listed as ``name``."""
        return path_of(self._pending, name)

    def waiting(self, names: Iterable[str]) -> list[WaitingSegment]:
        """What the directory tells of these segments; of a lone file what there is. A consumed one is left out."""
        return [found for name in names if (found := self._look(name)) is not None]

    def _look(self, name: str) -> WaitingSegment | None:
        data, meta = map(status, self._waiting(name))
        last = meta or data
        return None if last is None else WaitingSegment(name, data.st_size if data else 0, changed_s(last))

    def read(self, segment: PendingSegment) -> LoadedSegment:
        """The segment's data and, where it is not what its metadata promises, the defect in words."""
        data = bytes_at(self.pending_path(segment.name)) or b""
        defect = defect_of(segment, data)
        if segment.meta is not None and is_known_by_bytes(segment.name, defect):
            sha256 = segment.meta.sha256  # as was just seen
        else:
            sha256 = segment_sha256(self.feed, segment.name, data, defect)
        return LoadedSegment(self.feed, segment.name, sha256, data, segment.meta, defect)

    def is_whole(self, name: str) -> bool:
        """Whether both data and metadata wait under this name."""
        return all(status(path) is not None for path in self._waiting(name))

    def is_absent(self, name: str) -> bool:
        """Whether neither data nor metadata wait under this name."""
        return all(status(path) is None for path in self._waiting(name))

    def acknowledge(self, segments: Sequence[SegmentRef]) -> None:
        """The table holds these segments: move them away, metadata first, for good on return. May be repeated.

        Sound ones go to the archive, named by their content, and their name is marked as used; defective ones go to
        quarantine, under their own name; second deliveries are removed. What has come since under the name of one of
        them has other bytes, and stays.
        """
        if not segments:
            return
        self._make_places()
        for segment in segments:
            if segment.is_duplicate:
                self._discard(segment)
            else:
                self._move_away(segment)
                self._give_back(segment)
        # Unsynced, a power loss could bring them back after the next commit, which no longer lists them.
        durable.sync(self._places)
        failpoints.hit("landing.acknowledged")

    def _move_away(self, segment: SegmentRef) -> None:
        (waiting, waiting_meta), (resting, resting_meta) = self._waiting(segment.name), self.archive.place(segment)
        data, moved = bytes_at(waiting), False  # read first: what another run moves from now on is seen at rest
        is_at_rest = resting.exists()  # if it is, what waits now under its name came later
        is_own = not is_at_rest and self._is_own(segment, data)
        if is_own:
            _move(waiting_meta, resting_meta)
            failpoints.hit("landing.metadata_moved")
        if segment.defect is None and not is_at_rest:
            # After the metadata is archived: a mark without it would turn a segment that is taken again into a
            # conflict. Before the name is free, and never later: no sender is promised what becomes a conflict.
            self.archive.mark_name(segment.name)
        if is_own:
            moved = _move(waiting, resting)
            failpoints.hit("landing.data_moved")
        # Where its data is gone, or was replaced since it was read, it must still be known as consumed; and a
        # defective one that was completed since it was read is kept as it was reported.
        if not is_at_rest and not moved:
            self._put_at_rest(resting, data if data and segment_is(segment, data) else b"")

    def _put_at_rest(self, resting: UPath, data: bytes) -> None:
        """Write ``data`` to ``resting`` by way of `pending`, where partial files are swept."""
        partial = self._pending / f".{resting.name}"
        durable.write(partial, data)
        _move(partial, resting)

    def _discard(self, segment: SegmentRef) -> None:
        """Remove a second delivery, unless other bytes have come under its name since."""
        if segment_is(segment, bytes_at(self.pending_path(segment.name)) or b""):
            self.discard_duplicate(segment.name)

    def _give_back(self, segment: SegmentRef) -> None:
        """Have the data of a lone file wait again whose sender completed it while it was moved to quarantine.

        The sender was promised the file when its metadata was there: the two together are a sound segment.
        """
        if segment.defect is None:
            return
        waiting, data = self._waiting(segment.name)[0], bytes_at(self.archive.place(segment)[0])
        described = self.describe(segment.name)
        is_complete = data and described and described.meta and defect_of(described, data) is None
        if is_complete and data and not waiting.exists():
            durable.write(waiting, data)

    def _is_own(self, segment: SegmentRef, data: bytes | None) -> bool:
        """Whether what waits under the segment's name, ``data`` or metadata alone, is the segment."""
        if segment.defect is None and data is not None:
            return segment_is(segment, data)
        described = self.describe(segment.name)
        meta = described.meta if described else None
        if segment.defect is None:
            return meta is not None and meta.sha256 == segment.sha256
        is_bad = defect_kind(segment.defect) == "bad_segment"
        if is_bad and described and data is not None and defect_of(described, data) is None:
            return False  # the defective one was sent again, whole this time
        return segment_is(segment, data or b"")

    def consumed(self, since_s: float | None = None) -> Iterator[SegmentRef]:
        """The segments that archive and quarantine hold, put there after the wall time ``since_s`` (None: all of them).

        How many records each has is not known. A defective one is listed where its bytes are still there.
        """
        for sha256, name in sorted(self.archive.names(since_s).items()):
            yield SegmentRef(self.feed, name, sha256, 0, 0)
        for name, mark in sorted(self.archive.defective_names(since_s)):
            places = (self.archive.quarantined(name, mark), self.pending_path(name))
            found = (data for place in places if (data := bytes_at(place)) is not None)
            refs = (self._in_quarantine(name, data, defect) for data in found for defect in _IN_QUARANTINE)
            yield from islice((ref for ref in refs if ref.sha256.startswith(mark)), 1)

    def _in_quarantine(self, name: str, data: bytes, defect: str) -> SegmentRef:
        return SegmentRef(self.feed, name, segment_sha256(self.feed, name, data, defect), len(data), 1, defect)

    def archived(self, segment: SegmentRef) -> LoadedSegment:
        """A consumed segment as the commit took it, out of the archive or (a defective one) out of quarantine; what a
        crash has kept from going there, or from coming back, is taken from where it waits.

        Of a second delivery the first one keeps the bytes. Raises SegmentLost when its bytes are not there any more.
        """
        if segment.is_duplicate:
            return LoadedSegment(self.feed, segment.name, segment.sha256, b"", None, segment.defect)
        resting, at_rest = self.archive.place(segment)[0], self.archive.metadata(segment)
        places = [(resting, at_rest), *map(self._waiting, _names_of(segment))]
        found = [(data, beside) for path, beside in places if (data := bytes_at(path)) is not None]
        data, beside = next(((data, beside) for data, beside in found if segment_is(segment, data)), (None, at_rest))
        if data is None:
            told = f"has other bytes ({len(found[0][0])}, not {segment.bytes})" if found else "is missing"
            raise SegmentLost(f"{resting}: {self.feed}/{segment.name}, which a commit consumed, {told}")
        described = self._describe(segment.name, at_rest) or self._describe(segment.name, beside)
        meta = described.meta if described else None
        if segment.defect is None and meta is None:
            raise SegmentLost(f"{at_rest}: the metadata of {self.feed}/{segment.name} is missing or unreadable")
        return LoadedSegment(self.feed, segment.name, segment.sha256, data, meta, segment.defect)

    def restore(self, segments: Sequence[SegmentRef]) -> None:
        """Have consumed segments wait again, data first, metadata last. May be repeated after a crash.

        One whose name is taken by other bytes waits under its hash. Raises SegmentLost when the bytes of one are gone,
        SegmentConflict when one can have no other name; all stay where they are then.
        """
        if not segments:
            return
        self._make_places()
        names = [self._free_name(segment) for segment in segments]
        for segment, name in zip(segments, names, strict=True):
            resting, waiting = self.archive.place(segment)[0], self.pending_path(name)
            if segment.defect is None:
                self.archive.name_mark(segment.name).unlink(missing_ok=True)
            if segment_is(segment, bytes_at(resting) or b""):
                _move(resting, waiting)
            else:  # it waits already, and must not be known as consumed
                resting.unlink(missing_ok=True)
            failpoints.hit("landing.data_restored")
        # Unsynced, a power loss could bring the metadata alone, which is the rest of a consumed segment.
        durable.sync(self._places)
        for segment, name in zip(segments, names, strict=True):
            _move(self.archive.metadata(segment), self._waiting(name)[1])
            failpoints.hit("landing.metadata_restored")
        durable.sync(self._places)
        failpoints.hit("landing.restored")

    def _free_name(self, segment: SegmentRef) -> str:
        """The name under which ``segment`` can wait again, or does already. Raises SegmentLost, SegmentConflict."""
        data = self.archived(segment).data
        for name in _names_of(segment):
            if bytes_at(self.pending_path(name)) in (None, data):
                return name
        told = "other bytes wait under the name of what is to be restored"
        raise SegmentConflict(f"{self._pending / segment.name}: {told}")

    def discard_duplicate(self, name: str) -> None:
        """Drop a second delivery of bytes that were consumed.

        Its metadata is gone for good before its data is: left alone, it would describe the next file of this name.
        """
        data_path, meta_path = self._waiting(name)
        if meta_path.exists():
            meta_path.unlink(missing_ok=True)
            durable.sync([self._pending])
            failpoints.hit("landing.duplicate_metadata_removed")
        data_path.unlink(missing_ok=True)

    def describe(self, name: str) -> PendingSegment | None:
        """The segment that waits under ``name``, as its metadata tells it; None where there is none."""
        return self._describe(name, self._waiting(name)[1])

    def _describe(self, name: str, meta_path: UPath) -> PendingSegment | None:
        """What the metadata at ``meta_path`` says of the segment ``name``; None where there is none."""
        text = bytes_at(meta_path)
        if text is None:
            return None
        try:
            meta = parse_segment_meta(text)
        except MetaError as error:
            return PendingSegment(self.feed, name, None, f"{name}: metadata unreadable: {error}")
        if meta.feed != self.feed:
            return PendingSegment(
                self.feed, name, None, f"{name}: unknown feed {meta.feed!r} in the zone of {self.feed}"
            )
        return PendingSegment(self.feed, name, meta)

    def _waiting(self, name: str) -> tuple[UPath, UPath]:
        """Data and metadata of what waits under ``name``."""
        return self.pending_path(name), self.pending_path(name + META_SUFFIX)

    def _make_places(self) -> None:
        for place in self._places:
            durable.make_directory(place)


def _names_of(segment: SegmentRef) -> list[str]:
    """The names under which a consumed segment can wait again: its own, or else its hash, where that tells no name."""
    return [segment.name, *([segment.sha256] if is_known_by_bytes(segment.name, segment.defect) else [])]


def _move(source: UPath, target: UPath) -> bool:
    """Rename the regular file ``source``; False where there is none (any more)."""
    if is_local(source) and status(source) is None:
        return False
    try:
        source.rename(target)
    except FileNotFoundError:
        return False
    return True
