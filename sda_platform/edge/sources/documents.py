"""Landing a document that a source fetched: one segment, named by its content, so that the same one lands once."""

import time
from pathlib import Path
from urllib.parse import urlsplit

from sda_platform.edge.sources.source import Source
from sda_platform.formats.segments import Sender, describe_segment
from sda_platform.lake.storage import location
from sda_platform.landing.lander import seal
from sda_platform.landing.partner_bounds import PartnerBounds


async def land_document(source: Source, document: bytes | Path, *, zone: str, segment_format: str) -> int:
    """Seal a document (at most 64 MiB) in ``zone``; returns its number of records. It is durable on return.

    Raises OSError.
    """
    services = source.services
    records, size, is_new = await services.documents.run(
        _seal,
        document,
        zone,
        segment_format,
        services.clock.now_ns(),
        services.landing_root,
        f"{zone}-{source.name}",
        services.bounds,
        source.sender(urlsplit(source.address).netloc or source.address),
    )
    source.count_landed(records if is_new else 0, size)
    return records


def _seal(
    document: bytes | Path,
    zone: str,
    segment_format: str,
    now_ns: int,
    landing_root: str,
    stem: str,
    bounds: PartnerBounds,
    sender: Sender,
) -> tuple[int, int, bool]:
    """How many records and bytes the document has, and whether it was sealed now."""
    data = document.read_bytes() if isinstance(document, Path) else document
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
