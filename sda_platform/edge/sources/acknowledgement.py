"""Acknowledgements on a TCP connection: how many of its frames are durable.

After each seal the collector writes a cumulative u64, in the byte order of the stream's lengths. What has no
acknowledgement when the connection ends is the sender's to send again.
"""

import asyncio
from contextlib import suppress

from sda_platform.edge.batch import BatchReceipt
from sda_platform.edge.sources.frame_stream import LengthPrefix

_BYTES = 8
_UNACKNOWLEDGED = 64


class FramesLost(Exception):
    """Frames were dropped by policy: the connection ends, so that the sender sends them again."""


class Acknowledger:
    """Writes the acknowledgements of one connection, in order; at most 64 hand-overs may be without one."""

    def __init__(self, writer: asyncio.StreamWriter, framing: LengthPrefix, timeout_s: float) -> None:
        self._writer, self._timeout_s = writer, timeout_s
        self._is_big_endian = framing.is_big_endian
        self._expected: asyncio.Queue[tuple[int, BatchReceipt] | None] = asyncio.Queue(maxsize=_UNACKNOWLEDGED)

    async def expect(self, count: int, receipt: BatchReceipt) -> None:
        """The first ``count`` frames are durable once ``receipt`` is; waits while too many are not."""
        await self._expected.put((count, receipt))

    async def finish(self) -> None:
        """Nothing more comes: `run` ends after the last acknowledgement."""
        await self._expected.put(None)

    async def run(self) -> None:
        """Write until `finish`. Raises FramesLost."""
        while (expected := await self._expected.get()) is not None:
            count, receipt = expected
            if not await receipt.durable():
                raise FramesLost
            await self._write(count)

    async def _write(self, count: int) -> None:
        self._writer.write(count.to_bytes(_BYTES, "big" if self._is_big_endian else "little"))
        with suppress(OSError, TimeoutError):  # a peer that does not read is noticed when it sends nothing either
            async with asyncio.timeout(self._timeout_s):
                await self._writer.drain()
