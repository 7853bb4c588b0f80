"""One connection that brings frames, read to its end."""

import asyncio
from contextlib import suppress

from sda_platform.edge.address import Address
from sda_platform.edge.frames import frames_of
from sda_platform.edge.sources.acknowledgement import Acknowledger, FramesLost
from sda_platform.edge.sources.frame_stream import FrameStream, FrameTimeouts, LengthPrefix, StreamEnded
from sda_platform.edge.sources.intake import Intake

_CLEAN = frozenset({"closed", "stopped"})
_FORENSIC_BYTES = 4_096


class Session:
    """Hands over what a connection brings; with ``acknowledges`` it answers what is durable (`acknowledgement`)."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        intake: Intake,
        framing: LengthPrefix,
        timeouts: FrameTimeouts,
        *,
        acknowledges: bool = False,
    ) -> None:
        self.stream = FrameStream(reader, framing, timeouts)
        self.frames = 0
        self.farewell = b""  # what is written before the connection is closed
        self._writer, self._intake = writer, intake
        name = writer.get_extra_info("peername")
        self._peer = str(Address(*name[:2])) if name else None
        self._acknowledger = Acknowledger(writer, framing, timeouts.frame_s) if acknowledges else None

    async def run(self) -> str:
        """Read to the end; returns its reason: that of `StreamEnded`, or "lost" if frames were dropped."""
        try:
            if self._acknowledger is None:
                return await self._read()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._acknowledger.run())
                reason = await self._read()
                await self._acknowledger.finish()
            return reason
        except* FramesLost:
            self._intake.source.errors["lost"] += 1
        finally:
            if self.farewell:
                self._writer.write(self.farewell)
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        return "lost"

    async def _read(self) -> str:
        """Hand over every frame; a torn end is counted, and landed as far as it was received, up to 4 KiB."""
        try:
            while True:
                await self._intake.source.within_quota(self._intake.longest_wait_s)
                receipt = await self._intake.take(frames := await self.stream.read(), self._peer)
                self.frames += len(frames)
                self._intake.source.received()
                if self._acknowledger is not None:
                    await self._acknowledger.expect(self.frames, receipt)
        except StreamEnded as ended:
            if ended.reason not in _CLEAN:
                self._intake.source.errors[ended.reason] += 1
            if ended.rest:
                await self._intake.take(frames_of([ended.rest[:_FORENSIC_BYTES]]), self._peer)
            return ended.reason
