"""The writer's side of a landing zone: a segment is data plus metadata, each written whole and synced.

Several threads and processes may seal at once, also the same bytes. One of them gets True. Every answer means that the
segment is on disk.
"""

import time

from sda_platform import failpoints
from sda_platform.formats.segments import SegmentMeta, Sender, describe_segment
from sda_platform.lake import durable
from sda_platform.lake.errors import NameUsed, SegmentConflict
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.consumed import ConsumedSegments
from sda_platform.landing.listing import bytes_at
from sda_platform.landing.pending import PendingSegments
from sda_platform.landing.segments import NAME_CONFLICT, is_known_by_bytes, refused_sha256, segment_sha256


class WritableZone(PendingSegments):
    """The zone of one feed below ``root``, as senders see it."""

    def __init__(self, root: str, feed: str) -> None:
        super().__init__(root, feed)
        self.consumed_segments = ConsumedSegments(self.root)
        self._places = (self._pending, *self.consumed_segments.places)

    def seal(self, name: str, data: bytes, meta: SegmentMeta) -> bool:
        """Write a segment to ``pending/``, data first, metadata last. False: these bytes are pending or were consumed.

        Raises SegmentConflict if other bytes are pending or were consumed under this name; nothing is overwritten.
        """
        if self._is_held(name, data, meta.format):
            return False
        data_path, meta_path = self._waiting(name)
        is_new = durable.create(data_path, data)
        if not is_new and bytes_at(data_path) != data:
            raise SegmentConflict(f"{data_path}: other bytes are pending under this name; give the new ones another")
        if not is_new and self._is_described(name, meta):
            # The process that wrote it may have ended before it synced the files.
            durable.sync([data_path, meta_path, self._pending])
            return False
        if self._is_name_used(name, data, meta.format):  # also if an interrupted attempt left data without metadata
            data_path.unlink(missing_ok=True)
            raise NameUsed(f"{self.feed}/{name}: {NAME_CONFLICT}; give the new ones another")
        if not is_new:
            durable.write(data_path, data)  # data of an interrupted attempt: it may be unsynced, and its time is old
        failpoints.hit("landing.data_written")
        if not self._describe_new(name, data, meta):
            return False
        is_new = True
        if not data_path.exists():
            if not self._is_held(name, data, meta.format):
                # A batch quarantined the old data of an interrupted attempt while this attempt wrote.
                durable.write(data_path, data)
            elif meta_path.exists():  # another sealer's segment was consumed before this attempt described it
                meta_path.unlink(missing_ok=True)
                is_new = False
        failpoints.hit("landing.sealed")
        return is_new

    def _describe_new(self, name: str, data: bytes, meta: SegmentMeta) -> bool:
        """Write the metadata of a segment; False: another sealer of these bytes has done so in this moment."""
        meta_path, text = self._waiting(name)[1], meta.to_json().encode()
        if durable.create(meta_path, text):
            return True
        if self._is_described(name, meta):
            durable.sync([meta_path, self._pending])
            return False
        if not meta_path.exists() and self._is_held(name, data, meta.format):
            return False
        durable.write(meta_path, text)  # what lay there describes other bytes
        return True

    def _is_described(self, name: str, meta: SegmentMeta) -> bool:
        """Return whether the metadata that lies under a name is of these bytes."""
        described = self.describe(name)
        return bool(described and described.meta and described.meta.sha256 == meta.sha256)

    def seal_at(
        self, sealed_time_ns: int, name: str, data: bytes, segment_format: str, *, sender: Sender | None = None
    ) -> bool:
        """`seal` what was made just now, at mission time ``sealed_time_ns``, with the description that follows."""
        meta = describe_segment(
            data,
            feed=self.feed,
            segment_format=segment_format,
            sealed_time_ns=sealed_time_ns,
            sealed_wall_time_ns=time.time_ns(),
            sender=sender,
        )
        return self.seal(name, data, meta)

    def _is_held(self, name: str, data: bytes, segment_format: str) -> bool:
        """Return whether a segment of this name with these bytes was consumed here."""
        return any(map(self.consumed_segments.holds, self._known_as(name, data, segment_format)))

    def _is_name_used(self, name: str, data: bytes, segment_format: str) -> bool:
        """Return whether a segment of this name with other bytes was consumed here."""
        if not self.consumed_segments.name_mark(name).exists():
            return False
        hashes = self._known_as(name, data, segment_format)
        own = (SegmentRef(self.feed, name, sha256, len(data), 0) for sha256 in hashes)
        # The name of a segment is marked after its metadata was archived.
        is_own = not self.consumed_segments.has_other_bytes(name, hashes[0])
        return not is_own and not any(self.consumed_segments.metadata(segment).exists() for segment in own)

    def _known_as(self, name: str, data: bytes, segment_format: str) -> list[str]:
        """Return the identities that these bytes can have: with a valid record, or refused as a whole."""
        sha256 = segment_sha256(self.feed, name, data, None)
        is_by_bytes = is_known_by_bytes(name, None)
        return [sha256, *([refused_sha256(self.feed, segment_format, sha256)] if is_by_bytes else [])]
