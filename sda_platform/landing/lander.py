"""`sda land`: put a partner's file into its landing zone, whatever its size, once, and for good on return.

The file is read twice: once to its end, so that a torn one is refused before anything has landed, and once to be cut
into segments at record boundaries. After each sealed segment the progress is written, so that a kill at any moment is
resumed without a gap or a repeat: the names of segments follow from the content, and a zone takes the same bytes once.
No more than one segment is held in memory.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from upath import UPath

from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.formats.cutting import split_stream
from sda_platform.formats.registry import ZONES, known_format
from sda_platform.formats.segments import SegmentMeta, Sender, describe_segment
from sda_platform.lake import durable
from sda_platform.lake.storage import location
from sda_platform.landing.contents import UnreadableContent, read_chunks
from sda_platform.landing.first_lines import NO_MAPPINGS, Mappings
from sda_platform.landing.partner_bounds import BoundExceeded, PartnerBounds
from sda_platform.landing.partner_files import (
    Content,
    FileChanging,
    PartnerFile,
    PartnerFileError,
    examine,
    identify,
    refuse_if_changed,
)
from sda_platform.landing.zone import LandingZone

MAX_SEGMENT_BYTES = 64 * 2**20
PARTNER_SEGMENT_BYTES = 2**18
"""Segments of a partner's file: sixteen are a turn of its source in a batch, or one of many small records, see
`intake.in_turns`."""
PROGRESS_VERSION = 1
_SHORT_HASH = 12


class ProgressUnreadable(PartnerFileError):
    """The platform's own record of a landing is damaged; the partner's file may be good."""


@dataclass(frozen=True)
class Progress:
    """How far a file has been landed: its first ``segments`` segments, which hold ``records_read`` records.

    ``stem`` and ``segment_max_bytes`` are those of the first attempt: a later one must cut and name as it did.
    """

    source: str
    sha256: str
    feed: str
    format: str
    stem: str
    segment_max_bytes: int
    records_read: int = 0
    segments: int = 0
    finished: bool = False
    schema_version: int = PROGRESS_VERSION

    @classmethod
    def load(cls, path: UPath) -> "Progress | None":
        """Return the progress written at ``path``; None where there is none. Raises ProgressUnreadable."""
        try:
            facts = json.loads(path.read_bytes())
            if facts["schema_version"] != PROGRESS_VERSION:
                raise ValueError(f"schema_version is {facts['schema_version']}, only {PROGRESS_VERSION} is known")
            return cls(**facts)
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise ProgressUnreadable(f"{path}: is no progress of a landing: {error}; remove it to land anew") from None

    def save(self, path: UPath) -> None:
        """Write it, for good on return."""
        durable.write(path, json.dumps(asdict(self), sort_keys=True).encode())


@dataclass(frozen=True)
class LandedFile:
    """What became of a file: its ``records`` in all, the ``segments`` that were sealed now (none: nothing was left to
    do, the zone has or had these bytes), and how many ``sealed_records`` those hold. ``bytes``: read now, expanded.
    ``sha256`` is the hash of the file."""

    file: str
    zone: str
    records: int
    segments: tuple[str, ...]
    sealed_records: int = 0
    bytes: int = 0
    sha256: str = field(default="", compare=False)

    @property
    def short_hash(self) -> str:
        """Return the digits of the hash that the names of the segments have."""
        return self.sha256[:_SHORT_HASH]


def _report_nothing(stage: str, position: int) -> None:
    del stage, position


class Lander:
    """Lands files below ``landing_root``; ``report`` gets the phase ("checking", "landing") and the position.

    ``bounds``: what a file may cost; None for those that a person lands. ``sender``: who brings them. ``zones``: those
    that they may reach. ``mappings``: of sensors' own CSV files. ``on_segment`` gets each segment before it is sealed,
    its metadata, and how many records of the file come before it.
    """

    def __init__(
        self,
        landing_root: str,
        clock: MissionClock,
        *,
        segment_max_bytes: int = MAX_SEGMENT_BYTES,
        report: Callable[[str, int], None] | None = None,
        bounds: PartnerBounds | None = None,
        sender: Sender | None = None,
        on_segment: Callable[[bytes, SegmentMeta, int], None] | None = None,
        mappings: Mappings = NO_MAPPINGS,
        zones: Collection[str] = tuple(ZONES),
    ) -> None:
        self._on_segment = on_segment
        self._root = landing_root
        self._clock = clock
        self._segment_max_bytes = segment_max_bytes
        self._report = report or _report_nothing
        self._bounds = bounds
        self._sender, self._mappings, self._zones = sender, mappings, zones

    def land(
        self, path: Path, *, feed: str | None = None, segment_format: str | None = None, is_complete: bool = False
    ) -> LandedFile:
        """Land the file at ``path``, or what is left of it. Raises PartnerFileError; OSError where the disk refuses."""
        file = identify(path, feed=feed, segment_format=segment_format, mappings=self._mappings)
        if file.feed not in self._zones:
            raise PartnerFileError(
                f"{path}: its source brings no files to zone {file.feed}, only to {', '.join(self._zones)}"
            )
        content = examine(file, is_complete=is_complete, report=partial(self._report, "checking"), bounds=self._bounds)
        failpoints.hit("lander.examined")
        # The same bytes as another feed's or another format's are another landing: the first may have been a mistake.
        progress_path = location(self._root) / ".lander" / f"{content.sha256}-{file.feed}-{file.format}.json"
        progress = Progress.load(progress_path) or self._beginning(file, content)
        sealed: dict[str, int] = {}
        for data in () if progress.finished else self._segments_left(file, progress):
            refuse_if_changed(file, content)
            records, name = self._seal(data, progress)
            sealed |= {name: records} if name else {}
            progress = replace(progress, records_read=progress.records_read + records, segments=progress.segments + 1)
            progress.save(progress_path)
            failpoints.hit("lander.progress_written")
        if not progress.finished:
            replace(progress, finished=True).save(progress_path)
            partials = progress_path.parent.glob(f".{progress_path.name}.*.tmp")
            durable.sweep_partials(partials, time.time())
        return LandedFile(
            str(path), file.feed, progress.records_read, tuple(sealed), sum(sealed.values()), content.bytes,
            content.sha256,
        )  # fmt: skip

    def _seal(self, data: bytes, progress: Progress) -> tuple[int, str | None]:
        """Return how many records ``data`` has, and the name that it was sealed under (None: it was before, or has
        none).
        """
        meta = describe_segment(
            data,
            feed=progress.feed,
            segment_format=progress.format,
            sealed_time_ns=self._clock.now_ns(),
            sealed_wall_time_ns=time.time_ns(),
            sender=self._sender,
        )
        name = f"{progress.stem}{in_name(progress.sha256)}{progress.records_read}"
        name += known_format(progress.format).suffixes[0]
        if self._bounds is not None:
            try:
                self._bounds.check_records(len(data), meta.records, progress.records_read + meta.records)
            except BoundExceeded as error:
                raise PartnerFileError(f"{progress.source}: {error}") from None
            self._bounds.check_room(location(self._root), len(data))
        if self._on_segment is not None:
            self._on_segment(data, meta, progress.records_read)
        is_new = meta.records > 0 and LandingZone(self._root, progress.feed).seal(name, data, meta)
        return meta.records, name if is_new else None

    def _beginning(self, file: PartnerFile, content: Content) -> Progress:
        limit = self._segment_max_bytes
        return Progress(str(file.path), content.sha256, file.feed, file.format, file.stem, limit)

    def _segments_left(self, file: PartnerFile, progress: Progress) -> Iterator[bytes]:
        chunks = read_chunks(file.path, file.format, partial(self._report, "landing"), first_line=file.first_line)
        try:
            yield from islice(split_stream(chunks, file.format, progress.segment_max_bytes), progress.segments, None)
        except UnreadableContent as error:  # it was read to its end a moment ago
            raise FileChanging(f"{file.path}: {error}; land it again to go on where this stopped") from None


def in_name(sha256: str) -> str:
    """Return what the names of the segments of a file with this hash have between its stem and a number."""
    return f"-{sha256[:_SHORT_HASH]}-"


def segment_name(meta: SegmentMeta, stem: str) -> str:
    """Return the name of a segment that follows from its bytes."""
    return f"{stem}-{meta.sha256[:_SHORT_HASH]}{known_format(meta.format).suffixes[0]}"


def seal(data: bytes, meta: SegmentMeta, landing_root: str, *, stem: str) -> bool:
    """Seal bytes that are a segment already, under a name that follows from them; False: they were landed before."""
    return LandingZone(landing_root, meta.feed).seal(segment_name(meta, stem), data, meta)
