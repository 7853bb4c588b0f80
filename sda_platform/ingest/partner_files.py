"""`sda land`: put a partner's file into a landing zone the safe way, data first, metadata last.

Which feed and format a file is follows from its name unless the caller says. Its records are not judged here: a bad
record lands and becomes a dead letter. A file that is no segment at all (unknown kind, unreadable archive) is refused.
"""

import gzip
import hashlib
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.formats.records import FEED_FORMATS
from sda_platform.formats.segments import SegmentMeta, describe_segment
from sda_platform.lake.landing import LandingZone

MAX_SEGMENT_BYTES = 64 * 2**20

_FORMAT_BY_SUFFIX = {
    ".csv": "omm-csv",
    ".json": "omm-json",
    ".tle": "tle",
    ".2le": "tle",
    ".3le": "tle",
    ".jsonl": "optical-jsonl",
    ".ndjson": "optical-jsonl",
    ".radar": "radar-frames",
    ".isl": "isl-frames",
}


class PartnerFileError(ValueError):
    """A file that cannot be landed; the text names the file and says why and what to do."""


@dataclass(frozen=True)
class Landed:
    """What happened to a file. ``is_new`` is False when the zone already has or had these bytes."""

    file: str
    zone: str
    segment: str
    records: int
    is_new: bool


def land_file(
    path: Path, landing_root: str, clock: MissionClock, *, feed: str | None = None, segment_format: str | None = None
) -> Landed:
    """Land one file. Raises PartnerFileError."""
    data, inner_name = _read(path)
    chosen = segment_format or _FORMAT_BY_SUFFIX.get(Path(inner_name).suffix.lower())
    if chosen is None:
        known = ", ".join(sorted(_FORMAT_BY_SUFFIX))
        raise PartnerFileError(f"{path}: cannot tell its format from its name (known endings: {known}); give --format")
    zone = feed or next((name for name, formats in FEED_FORMATS.items() if chosen in formats), "")
    if zone not in FEED_FORMATS:
        raise PartnerFileError(f"{path}: unknown feed {zone!r}; the feeds are {', '.join(sorted(FEED_FORMATS))}")
    if chosen not in FEED_FORMATS[zone]:
        allowed = ", ".join(FEED_FORMATS[zone])
        raise PartnerFileError(f"{path}: feed {zone} does not carry format {chosen!r}, but {allowed}")
    meta = describe_segment(
        data, feed=zone, segment_format=chosen, sealed_time_ns=clock.now_ns(), sealed_wall_time_ns=time.time_ns()
    )
    return seal(data, meta, landing_root, stem=Path(inner_name).stem, suffix=Path(inner_name).suffix, file=str(path))


def seal(data: bytes, meta: SegmentMeta, landing_root: str, *, stem: str, suffix: str, file: str = "") -> Landed:
    """Seal bytes as a segment whose name follows from them, so that landing them twice is seen."""
    name = f"{stem}-{hashlib.sha256(data).hexdigest()[:12]}{suffix}"
    is_new = LandingZone(landing_root, meta.feed).seal(name, data, meta)
    return Landed(file, meta.feed, name, meta.records, is_new)


def _read(path: Path) -> tuple[bytes, str]:
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            data, name = gzip.decompress(data), path.stem
        else:
            name = path.name
    except IsADirectoryError:
        raise PartnerFileError(f"{path}: is a directory; name the files in it") from None
    except (OSError, EOFError, zlib.error) as error:
        raise PartnerFileError(f"{path}: cannot be read: {error}") from None
    if not data:
        raise PartnerFileError(f"{path}: is empty")
    if len(data) > MAX_SEGMENT_BYTES:
        raise PartnerFileError(
            f"{path}: has {len(data):,} bytes, a segment holds {MAX_SEGMENT_BYTES:,}; split it first"
        )
    return data, name
