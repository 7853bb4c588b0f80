"""Reading length-prefixed frames from a TCP stream, many at once, within bounds of size and time.

At most one frame and one read are in memory. A frame that began must end within `FrameTimeouts.frame_s`. A peer that
sends nothing for `FrameTimeouts.idle_s` is disconnected.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import numpy as np

from sda_platform.edge.frames import LENGTH_BYTES, Frames, cut_stream
from sda_platform.formats.framing.container import MAX_PAYLOAD_BYTES

READ_BYTES: Final = 2**18
_QUIET_S: Final = 0.05


class StreamEnded(Exception):
    """The stream ends here; ``reason`` is for counting, ``rest`` is what was received of the last frame."""

    def __init__(self, reason: str, rest: bytes) -> None:
        super().__init__(reason)
        self.reason, self.rest = reason, rest


@dataclass(frozen=True)
class LengthPrefix:
    """How lengths are written, and the largest that is accepted."""

    is_big_endian: bool
    max_bytes: int = MAX_PAYLOAD_BYTES


@dataclass(frozen=True)
class FrameTimeouts:
    """Timeouts, seconds: for any byte, for the end of a frame, and for that end after a requested stop."""

    idle_s: float = 60.0
    frame_s: float = 10.0
    drain_s: float = 2.0


FRAME_TIMEOUTS: Final = FrameTimeouts()


class FrameStream:
    """The frames of one connection."""

    def __init__(self, reader: asyncio.StreamReader, framing: LengthPrefix, timeouts: FrameTimeouts) -> None:
        self._reader, self._framing, self._timeouts = reader, framing, timeouts
        self._buffer = bytearray()
        self._needed = LENGTH_BYTES
        self._began_s: float | None = None
        self._stop_at_s: float | None = None
        self._waiting: asyncio.Timeout | None = None

    async def read(self) -> Frames:
        """Return the frames that have arrived, at least one. Raises StreamEnded.

        Reasons: ``closed`` (between two frames), ``stopped``, ``torn`` (within one), ``oversized``, ``slow``, ``idle``.
        """
        while True:
            if len(self._buffer) >= self._needed:
                frames = self._cut()
                if len(frames):
                    return frames
            chunk = await self._receive()
            if not chunk:
                raise self._ended("torn" if self._buffer else "closed")
            if not self._buffer:
                self._began_s = asyncio.get_running_loop().time()
            self._buffer += chunk

    def stop(self) -> None:
        """Have `read` end at the next frame boundary at which the peer is quiet, or after `FrameTimeouts.drain_s`."""
        now_s = asyncio.get_running_loop().time()
        self._stop_at_s = now_s + self._timeouts.drain_s
        if self._waiting is not None:
            self._waiting.reschedule(self._deadline_s(now_s))

    def _cut(self) -> Frames:
        cut = cut_stream(
            np.frombuffer(bytes(self._buffer), np.uint8),
            is_big_endian=self._framing.is_big_endian,
            max_bytes=self._framing.max_bytes,
        )
        del self._buffer[: cut.rest]
        self._began_s = asyncio.get_running_loop().time()
        if cut.is_violated and not len(cut.frames):
            raise self._ended("oversized")
        self._needed = LENGTH_BYTES
        if len(self._buffer) >= LENGTH_BYTES and not cut.is_violated:
            head = self._buffer[:LENGTH_BYTES]
            self._needed += int.from_bytes(head, "big" if self._framing.is_big_endian else "little")
        return cut.frames

    async def _receive(self) -> bytes:
        try:
            async with asyncio.timeout_at(self._deadline_s(asyncio.get_running_loop().time())) as self._waiting:
                return await self._reader.read(READ_BYTES)
        except TimeoutError:
            if self._stop_at_s is not None and not self._buffer:
                raise self._ended("stopped") from None
            raise self._ended("slow" if self._buffer else "idle") from None
        except OSError:  # the peer reset the connection
            raise self._ended("torn" if self._buffer else "closed") from None
        finally:
            self._waiting = None

    def _deadline_s(self, now_s: float) -> float:
        if self._stop_at_s is not None:
            return self._stop_at_s if self._buffer else min(now_s + _QUIET_S, self._stop_at_s)
        if self._buffer and self._began_s is not None:
            return self._began_s + self._timeouts.frame_s
        return now_s + self._timeouts.idle_s

    def _ended(self, reason: str) -> StreamEnded:
        return StreamEnded(reason, bytes(self._buffer))
