"""Refresh the element set of one satellite during a pass: a request at the start, then every 600 s.

The set is validated before it is used: both lines' checksums, their ids and the requested id, and an epoch
that is not older than the one held. A good one is landed in zone `elements`. After a failure the previous one is kept.
"""

import asyncio

from sda_platform.edge.http_client import HTTP_BOUNDS, HttpBounds, HttpClient
from sda_platform.edge.sources.documents import land_document
from sda_platform.edge.sources.source import Source, SourceFailed
from sda_platform.formats.json_fields import json_object, text_field
from sda_platform.formats.records import RawRecord
from sda_platform.formats.tle import read_tle


class ElementRefresh:
    """Requests ``<base_url>/tle/<norad_id>`` for ``{"name", "line1", "line2"}``."""

    def __init__(
        self, base_url: str, norad_id: int, *, interval_s: float = 600.0, bounds: HttpBounds = HTTP_BOUNDS
    ) -> None:
        self._url, self._norad_id = f"{base_url.rstrip('/')}/tle/{norad_id}", norad_id
        self._interval_s, self._bounds = interval_s, bounds
        self.epoch_time_ns: int | None = None
        self.refreshed = 0

    async def run(self, source: Source) -> None:
        """Refresh until cancelled."""
        client = HttpClient(self._bounds, internal=source.services.internal_names)
        try:
            while True:
                try:
                    await self._refresh(client, source)
                except Exception as error:  # whatever the service answers, the pass goes on, and so does the refresh
                    source.errors["elements"] += 1
                    source.log.warning("element set not refreshed", reason=f"{type(error).__name__}: {error}")
                await asyncio.sleep(self._interval_s)
        finally:
            await client.close()

    async def _refresh(self, client: HttpClient, source: Source) -> None:
        lines = self._checked((await client.get(self._url)).content)
        await land_document(source, lines, zone="elements", segment_format="tle")
        self.refreshed += 1

    def _checked(self, content: bytes) -> bytes:
        """Return the lines of a valid answer. Raises RecordError, SourceFailed."""
        fields = json_object(content)
        lines = "\n".join(text_field(fields, name).strip() for name in ("name", "line1", "line2")).encode()
        found = read_tle(RawRecord(0, None, lines))
        if found.norad_id != self._norad_id:
            raise SourceFailed(f"{self._url} is about object {found.norad_id}, not {self._norad_id}")
        if self.epoch_time_ns is not None and found.epoch_time_ns < self.epoch_time_ns:
            raise SourceFailed(f"{self._url} is older than the set that is held")
        self.epoch_time_ns = found.epoch_time_ns
        return lines + b"\n"
