"""The ``pending/`` directory of a landing zone: which segments wait there, their metadata and their bytes."""

from collections.abc import Iterable
from contextlib import suppress

from upath import UPath

from sda_platform.formats.segments import MetaError, parse_segment_meta
from sda_platform.lake.storage import location
from sda_platform.landing.consumed import META_SUFFIX
from sda_platform.landing.listing import Listing, bytes_in, changed_s, list_directory, path_of, status
from sda_platform.landing.segments import (
    LoadedSegment,
    PendingSegment,
    WaitingSegment,
    defect_of,
    is_known_by_bytes,
    segment_sha256,
)


class PendingSegments:
    """The segments below ``root``/``feed``/pending that no commit has consumed. Reads only."""

    def __init__(self, root: str, feed: str) -> None:
        self.feed = feed
        self.root = location(root) / feed
        self._pending = self.root / "pending"

    def pending(self, listing: Listing | None = None) -> list[PendingSegment]:
        """Return the pending segments, oldest seal first. Reads metadata only.

        ``listing`` is a recent one of the directory; by default, it is listed now.
        """
        segments = []
        for name in self.pending_names(listing):
            with suppress(PermissionError):  # permission was withdrawn after the listing, which omits unreadable files
                segment = self.describe(name)
                segments += [segment] if segment is not None else []  # None: consumed since the listing
        return sorted(segments, key=lambda s: (s.sealed_time_ns, s.name))

    def pending_names(self, listing: Listing | None = None) -> list[str]:
        """Sorted names of the pending segments that have both data and metadata."""
        found = set((listing or self.listing()).files)
        return sorted(name for name in found if name + META_SUFFIX in found)

    def pending_files(self) -> list[str]:
        """Names of all readable files in ``pending/``, including partial files of a writer at work."""
        return list(self.listing().files)

    def listing(self) -> Listing:
        """All entries of ``pending/``."""
        return list_directory(self._pending)

    def pending_path(self, name: str) -> UPath:
        """Return the path of the file in ``pending/`` that is listed as ``name``."""
        return path_of(self._pending, name)

    def waiting(self, names: Iterable[str]) -> list[WaitingSegment]:
        """Size and time of these segments, or of a lone file, from the directory. Consumed segments are omitted."""
        return [found for name in names if (found := self._status_of(name)) is not None]

    def _status_of(self, name: str) -> WaitingSegment | None:
        data, meta = map(status, self._waiting(name))
        last = meta or data
        return None if last is None else WaitingSegment(name, data.st_size if data else 0, changed_s(last))

    def read(self, segment: PendingSegment) -> LoadedSegment:
        """Read the segment's data; if data and metadata disagree, the result has the defect as text."""
        data = bytes_in(self._pending, segment.name) or b""
        defect = defect_of(segment, data)
        if segment.meta is not None and is_known_by_bytes(segment.name, defect):
            sha256 = segment.meta.sha256  # `defect_of` compared it with the data
        else:
            sha256 = segment_sha256(self.feed, segment.name, data, defect)
        return LoadedSegment(self.feed, segment.name, sha256, data, segment.meta, defect)

    def is_whole(self, name: str) -> bool:
        """Return whether data and metadata of this name are both pending."""
        return all(status(path) is not None for path in self._waiting(name))

    def is_absent(self, name: str) -> bool:
        """Return whether neither data nor metadata of this name is pending."""
        return all(status(path) is None for path in self._waiting(name))

    def describe(self, name: str) -> PendingSegment | None:
        """Read the metadata of the pending segment ``name``; None if there is no such segment."""
        text = bytes_in(self._pending, name + META_SUFFIX)
        return None if text is None else self._described(name, text)

    def _described(self, name: str, text: bytes) -> PendingSegment:
        """Return the segment ``name`` with the metadata in ``text``."""
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
        """Paths of the data and the metadata of the pending segment ``name``."""
        return self.pending_path(name), self.pending_path(name + META_SUFFIX)
