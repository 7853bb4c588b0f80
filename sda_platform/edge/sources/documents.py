"""Landing a document that a source fetched: one segment, named by its content, so that the same one lands once."""

import asyncio
import time

from sda_platform.edge.sources.source import Source
from sda_platform.formats.segments import describe_segment
from sda_platform.landing.lander import seal


async def land_document(source: Source, data: bytes, *, zone: str, segment_format: str) -> int:
    """Seal ``data`` (at most 64 MiB) in ``zone``; returns its number of records. It is durable on return.

    Raises OSError.
    """
    services = source.services
    meta = describe_segment(
        data,
        feed=zone,
        segment_format=segment_format,
        sealed_time_ns=services.clock.now_ns(),
        sealed_wall_time_ns=time.time_ns(),
    )
    if meta.records:
        loop = asyncio.get_running_loop()
        is_new = await loop.run_in_executor(
            services.executor, lambda: seal(data, meta, services.landing_root, stem=f"{zone}-{source.name}")
        )
        source.count_landed(meta.records if is_new else 0)
    return meta.records
