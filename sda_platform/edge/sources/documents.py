"""Landing a document that a source fetched: one segment, named by its content, so that the same one lands once."""

import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sda_platform.edge.sources.source import Source
from sda_platform.formats.registry import ZONES, known_format
from sda_platform.formats.segments import Sender, describe_segment
from sda_platform.formats.tabulated_paths import with_name
from sda_platform.formats.text import as_text
from sda_platform.lake.storage import location
from sda_platform.landing.lander import seal
from sda_platform.landing.partner_bounds import PartnerBounds

_HEAD_BYTES: Final = 2**20
_SHOWN: Final = 60


class UnexpectedContent(ValueError):
    """A document that begins like no format of its zone; the text has the reason and the beginning."""


async def land_document(source: Source, document: bytes | Path, *, zone: str, segment_format: str) -> int:
    """Seal a document (at most 64 MiB) in ``zone``; returns its number of records. It is durable on return.

    Its format is what it begins like, ``segment_format`` before others of the zone. Raises OSError, UnexpectedContent.
    """
    services = source.services
    records, size, is_new = await services.documents.run(
        seal_document,
        document,
        zone,
        segment_format,
        services.clock.now_ns(),
        services.landing_root,
        f"{zone}-{source.name}",
        services.bounds,
        source.sender(urlsplit(source.address).netloc or source.address),
        Path(urlsplit(source.address).path).name,
    )
    source.count_landed(records if is_new else 0, size)
    return records


def seal_document(
    document: bytes | Path,
    zone: str,
    segment_format: str,
    now_ns: int,
    landing_root: str,
    stem: str,
    bounds: PartnerBounds,
    sender: Sender,
    name: str = "",
) -> tuple[int, int, bool]:
    """How many records and bytes the document has, and whether it was sealed now. Raises as `land_document`."""
    data = document.read_bytes() if isinstance(document, Path) else document
    segment_format = _format_of(data, zone, segment_format)
    if known_format(segment_format).is_named:
        data = b"".join(with_name([data], name))
    bounds.check_room(location(landing_root), len(data))
    meta = describe_segment(
        data,
        feed=zone,
        segment_format=segment_format,
        sealed_time_ns=now_ns,
        sealed_wall_time_ns=time.time_ns(),
        sender=sender,
    )
    return meta.records, meta.bytes, bool(meta.records) and seal(data, meta, landing_root, stem=stem)


def _format_of(data: bytes, zone: str, configured: str) -> str:
    """The format of ``zone`` that ``data`` begins like, the configured one first; an empty document keeps that."""
    head = as_text(data[:_HEAD_BYTES])
    candidates = [known_format(name) for name in (configured, *ZONES[zone])]
    if not head.strip():
        return configured
    found = next((each.name for each in candidates if each.begins and each.begins.search(head)), None)
    if found is None and candidates[0].begins is not None:
        names = ", ".join(each.name for each in candidates[1:])
        beginning = head.strip().splitlines()[0][:_SHOWN].decode("utf-8", "replace")
        raise UnexpectedContent(f"the document begins with {beginning!a}, like none of {names}; nothing was landed")
    return found or configured
