"""The consumed segments of a landing zone, kept so that a batch can be read again.

Sound segments are in ``archive/``. The data is named by the segment's hash, the metadata by that hash and the original
name. Rows of the table refer to that name. One rename archives the metadata and keeps the name, so no crash can
separate them. Defective segments are in ``quarantine/`` under their own name. A file in ``names/`` records that bytes
were consumed under that name: an empty one for sound bytes that were the first, otherwise with the hash of the second
delivery (`name_marks`). It is made after the metadata is archived and before the name is free.
"""

import hashlib
from collections.abc import Iterator

from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.listing import changed_s, holds_file, is_local, list_directory, path_of, status
from sda_platform.landing.name_marks import create_mark
from sda_platform.landing.segments import (
    NAME_CONFLICT,
    REPORTED,
    LoadedSegment,
    refused_sha256,
    undecodable_sha256,
)

META_SUFFIX = ".meta.json"
MARK_DIGITS = 12
_SHA256_DIGITS = 64
_LONGEST_FILE_NAME_BYTES = 255
# What a name in quarantine may have: a mark, the metadata's suffix and those of a partial file are added to it.
_LONGEST_QUARANTINED_BYTES = 200
_SHORTENED_MARK_DIGITS = 16


def is_kept(name: str) -> bool:
    """Return whether hash and name together are short enough for the file name of archived metadata."""
    return _SHA256_DIGITS + len(f".{name}{META_SUFFIX}".encode()) <= _LONGEST_FILE_NAME_BYTES


class ConsumedSegments:
    """What the zone at ``zone_root`` handed over to a table."""

    def __init__(self, zone_root: UPath) -> None:
        self._sound = zone_root / "archive"
        self._defective = zone_root / "quarantine"
        self._names = zone_root / "names"
        self._empty_mark = zone_root / ".mark"
        self.places = (self._sound, self._defective, self._names)

    def holds(self, sha256: str) -> bool:
        """Return whether a segment with these bytes was consumed before, under whatever name."""
        return holds_file(self._sound, sha256)

    def holds_delivery(self, zone: str, segment_format: str, sha256: str) -> bool:
        """Return whether these bytes were consumed here: with a valid record, or refused as a whole in this format."""
        return self.holds(sha256) or self.holds(refused_sha256(zone, segment_format, sha256))

    def name_mark(self, name: str) -> UPath:
        """Return the file that exists once a sound segment or a second delivery of this name was consumed."""
        return self._names / quarantined_name(name)

    def mark_name(self, name: str, delivered_again: str = "") -> None:
        """Record that a sound segment of this name was consumed, or the hash of the bytes that were delivered again."""
        create_mark((self._names, quarantined_name(name)), delivered_again, self._empty_mark)

    def has_other_bytes(self, name: str, sha256: str) -> bool:
        """Return whether a name belongs to consumed bytes other than those that were delivered again under it."""
        return holds_file(self._names, quarantined_name(name)) and self.name_mark(name).read_text() != sha256

    def forget_unbacked_names(self) -> None:
        """Remove, for good on return, the marks of names that the archive does not hold: the commits that consumed them
        were undone. Of names that are too long for the archive the marks stay."""
        backed = {quarantined_name(name) for name in self.names().values()}
        for mark in set(_files_in(self._names, None)) - backed:
            if is_kept(mark):
                (self._names / mark).unlink(missing_ok=True)
        if self._names.exists():
            durable.sync([self._names])

    def holds_defective(self, name: str, sha256: str) -> bool:
        """Return whether this defective segment was reported before."""
        return holds_file(self._defective, _mark_of(name, sha256))

    def judged(self, segment: LoadedSegment) -> LoadedSegment:
        """Return the segment, refused where its name belongs to other bytes, or where quarantine has it already."""
        if segment.defect is None and self.has_other_bytes(segment.name, segment.sha256):
            segment = segment.refused(f"{segment.name}: {NAME_CONFLICT}")
        return segment.refused(REPORTED) if self._is_reported(segment) else segment

    def _is_reported(self, segment: LoadedSegment) -> bool:
        """Return whether the same segment was quarantined before, unless it comes back from there by a person's
        will.
        """
        if segment.defect is not None:
            return self.holds_defective(segment.name, segment.sha256)
        if segment.meta is None or segment.meta.reprocess_count:
            return False
        sha256 = undecodable_sha256(segment.zone, segment.name, segment.meta.sha256)
        return self.holds_defective(segment.name, sha256)

    def quarantined(self, name: str, sha256: str) -> UPath:
        """Where the data of a defective segment goes; of its hash the beginning will do."""
        return self._defective / _mark_of(name, sha256)

    def names(self, since_s: float | None = None) -> dict[str, str]:
        """By hash, the name under which each sound segment was consumed; its hash, where the archive does not have it.

        What a crash left half here and half waiting is among them; ``since_s`` is as in `LandingZone.consumed`.
        """
        found: dict[str, str] = {}
        for file in _files_in(self._sound, since_s):
            sha256, _, name = file.removesuffix(META_SUFFIX).partition(".")
            if sha256 and (name or sha256 not in found):
                found[sha256] = name or sha256
        return found

    def defective_names(self, since_s: float | None = None) -> set[tuple[str, str]]:
        """Of each defective segment its name in quarantine and the beginning of its hash, likewise."""
        parts = (file.removesuffix(META_SUFFIX).rpartition(".") for file in _files_in(self._defective, since_s))
        return {(name, mark) for name, _, mark in parts if name and len(mark) == MARK_DIGITS}

    def place(self, segment: SegmentRef) -> tuple[UPath, UPath]:
        """Where data and metadata of a consumed segment go."""
        place, data, meta = self.names_at_rest(segment)
        return place / data, place / meta

    def names_at_rest(self, segment: SegmentRef) -> tuple[UPath, str, str]:
        """Return the directory of a consumed segment, and the names that its data and metadata have there."""
        if segment.defect is not None:
            mark = _mark_of(segment.name, segment.sha256)
            return self._defective, mark, mark + META_SUFFIX
        named = f"{segment.sha256}.{segment.name}" if is_kept(segment.name) else segment.sha256
        return self._sound, segment.sha256, named + META_SUFFIX

    def metadata(self, segment: SegmentRef) -> UPath:
        """Where the metadata of a consumed segment is; archives of earlier versions have it by the hash alone."""
        data, meta = self.place(segment)
        return meta if meta.exists() else segment_at(data)[1]


def _files_in(place: UPath, since_s: float | None) -> Iterator[str]:
    """Names of the files in ``place``, of those only that were put there after ``since_s``.

    A rename sets a local file's time of change. Elsewhere no such time is kept, and nothing is found.
    """
    for name in list_directory(place).files:
        if since_s is None or (is_local(place) and _changed_after(path_of(place, name), since_s)):
            yield name


def _changed_after(path: UPath, since_s: float) -> bool:
    found = status(path)
    return found is not None and changed_s(found) > since_s


def _mark_of(name: str, sha256: str) -> str:
    return f"{quarantined_name(name)}.{sha256[:MARK_DIGITS]}"


def quarantined_name(name: str) -> str:
    """Return the name that a segment has in quarantine: its own, shortened by a hash where the file system
    needs that.
    """
    encoded = name.encode()
    if len(encoded) <= _LONGEST_QUARANTINED_BYTES:
        return name
    mark = hashlib.sha256(encoded).hexdigest()[:_SHORTENED_MARK_DIGITS]
    kept = encoded[: _LONGEST_QUARANTINED_BYTES - _SHORTENED_MARK_DIGITS - 1].decode("utf-8", "ignore")
    return f"{kept}~{mark}"


def segment_at(data_path: UPath) -> tuple[UPath, UPath]:
    """Data and metadata of a segment, which lie side by side."""
    return data_path, data_path.with_name(data_path.name + META_SUFFIX)
