"""Landing a document that a source fetched: one segment, named by its content, so that the same one lands once."""

import errno
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from sda_platform.clock import MissionClock
from sda_platform.edge.sources.source import Source
from sda_platform.edge.sources.upload import TEMPORARY
from sda_platform.formats.format import Format
from sda_platform.formats.registry import ZONES, known_format
from sda_platform.formats.segments import Sender, describe_segment
from sda_platform.formats.text import as_text
from sda_platform.lake.storage import location
from sda_platform.landing.contents import archive_ending
from sda_platform.landing.first_lines import NO_MAPPINGS, MappingError, Mappings, first_line, mapped
from sda_platform.landing.lander import PARTNER_SEGMENT_BYTES, Lander, ProgressUnreadable, seal
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import FileChanging, PartnerFileError

_HEAD_BYTES: Final = 2**20
_SHOWN: Final = 60
_NO_RECORDS: Final = b"[]"


class UnexpectedContent(ValueError):
    """A document that begins like no format of its zone; the text has the reason and the beginning."""


async def land_document(source: Source, document: bytes | Path, *, zone: str, segment_format: str) -> int:
    """Seal a document (at most 64 MiB) in ``zone``; returns its number of records. It is durable on return.

    Its format is what it begins like, ``segment_format`` before others of the zone. An archive is read as a dropped one
    is. Raises OSError, UnexpectedContent.
    """
    services = source.services
    records, size, is_new = await services.documents.run(
        seal_document,
        document,
        zone,
        segment_format,
        services.clock,
        services.landing_root,
        f"{zone}-{source.name}",
        services.bounds,
        source.sender(urlsplit(source.address).netloc or source.address),
        Path(urlsplit(source.address).path).name,
        services.mappings,
    )
    source.count_landed(records if is_new else 0, size)
    return records


def seal_document(
    document: bytes | Path,
    zone: str,
    segment_format: str,
    clock: MissionClock,
    landing_root: str,
    stem: str,
    bounds: PartnerBounds,
    sender: Sender,
    name: str = "",
    mappings: Mappings = NO_MAPPINGS,
) -> tuple[int, int, bool]:
    """Return how many records and bytes the document has, and whether it was sealed now. Raises as `land_document`."""
    data = document.read_bytes() if isinstance(document, Path) else document
    if ending := archive_ending(data):
        lander = Lander(
            landing_root,
            clock,
            bounds=bounds,
            segment_max_bytes=PARTNER_SEGMENT_BYTES,
            sender=sender,
            mappings=mappings,
        )
        folder = document.parent if isinstance(document, Path) else None
        return _land_archive(lander, data, folder, _file_name(name, zone, segment_format, ending), zone)
    beginning = as_text(data[:_HEAD_BYTES])
    if beginning.strip() == _NO_RECORDS:
        return 0, len(data), False
    try:
        known = _format_of(beginning, name, zone, segment_format, mappings)
        line = first_line(known, name, beginning, mappings)
    except MappingError as error:
        raise UnexpectedContent(f"{_begins(beginning)}: {error}; nothing was landed") from None
    data = line + as_text(data) if line else data
    bounds.check_room(location(landing_root), len(data))
    meta = describe_segment(
        data,
        feed=zone,
        segment_format=known.name,
        sealed_time_ns=clock.now_ns(),
        sealed_wall_time_ns=time.time_ns(),
        sender=sender,
    )
    return meta.records, meta.bytes, bool(meta.records) and seal(data, meta, landing_root, stem=stem)


def _land_archive(lander: Lander, data: bytes, folder: Path | None, name: str, zone: str) -> tuple[int, int, bool]:
    with TemporaryDirectory(prefix=TEMPORARY, dir=folder) as place:
        path = Path(place) / name
        path.write_bytes(data)
        try:
            landed = lander.land(path, feed=zone)
        except (FileChanging, ProgressUnreadable) as error:
            raise OSError(errno.EIO, str(error)) from None
        except PartnerFileError as refusal:
            raise UnexpectedContent(str(refusal).replace(f"{place}/", "")) from None
    return landed.records, landed.bytes, bool(landed.segments)


def _file_name(name: str, zone: str, configured: str, ending: str) -> str:
    """A name for an archive by which the format of what is in it can be found."""
    inner = Path(name.removesuffix(ending)).name
    endings = {suffix for each in ZONES[zone] for suffix in known_format(each).suffixes}
    is_known = Path(inner).suffix.lower() in endings
    return f"{inner or 'document'}{'' if is_known else known_format(configured).suffixes[0]}{ending}"


def _format_of(beginning: bytes, name: str, zone: str, configured: str, mappings: Mappings) -> Format:
    """Return the format of ``zone`` that a document begins like, the configured one first; an empty one keeps that.

    Raises UnexpectedContent, MappingError.
    """
    candidates = [known_format(each) for each in (configured, *ZONES[zone])]
    if not beginning.strip():
        return candidates[0]
    found = next((each for each in candidates if each.begins and each.begins.search(beginning)), None)
    found = found or mapped(candidates, name, beginning, mappings)
    if found is None and candidates[0].begins is not None:
        names = ", ".join(each.name for each in candidates[1:])
        raise UnexpectedContent(f"{_begins(beginning)}, like none of {names}; nothing was landed")
    return found or candidates[0]


def _begins(beginning: bytes) -> str:
    first = next(iter(beginning.strip().splitlines()), b"")[:_SHOWN].decode("utf-8", "replace")
    return f"the document begins with {first!a}"
