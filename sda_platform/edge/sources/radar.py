"""Radar frames over UDP: read in bursts into one buffer, never faster than they can be handed on.

While an edge is full, or the source is over its quota, the socket is not read, and the kernel drops what exceeds its
buffer. Those drops are the only loss, and the kernel counts them (`kernel_drops`).
"""

import asyncio
import contextlib
import socket
import struct
from functools import partial
from typing import Final

from sda_platform.edge.address import Address, listening_udp
from sda_platform.edge.datagrams import DatagramReader
from sda_platform.edge.senders import ALL_SENDERS, AllowedSenders
from sda_platform.edge.sources.intake import RadarIntake
from sda_platform.edge.sources.source import Services, Source

# Fewer datagrams than this came together: a short wait costs less than a wake-up for each.
_FEW: Final = 64
_COALESCE_S: Final = 0.002
_SO_MEMINFO: Final = 55
_DROPS_AT: Final = 8


class RadarSource(Source):
    """Receives at ``bind``; ``receive_buffer_bytes`` is requested from the kernel, which may grant less."""

    kind, zone = "radar", "radar"

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        bind: Address,
        receive_buffer_bytes: int = 4 * 2**20,
        allowed: AllowedSenders = ALL_SENDERS,
    ) -> None:
        super().__init__(name, services)
        self._bind, self._receive_buffer_bytes = bind, receive_buffer_bytes
        self._intake = RadarIntake(self)
        self._socket: socket.socket | None = None
        self._wake = asyncio.Event()
        self._reader = DatagramReader(allowed=allowed)
        self._drops_before = self._drops = 0

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return str(Address(*self._socket.getsockname()[:2])) if self._socket else ""

    @property
    def kernel_drops(self) -> int:
        """Datagrams that the kernel dropped because its buffer was full."""
        if self._socket is not None:
            with contextlib.suppress(OSError, struct.error):
                facts = self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 4 * (_DROPS_AT + 1))
                self._drops = struct.unpack_from("=I", facts, 4 * _DROPS_AT)[0]
        return self._drops_before + self._drops

    async def run(self) -> None:
        """See `Source.run`."""
        with self.listening(self._bind, partial(listening_udp, self._bind, self._receive_buffer_bytes)) as opened:
            opened.setblocking(False)
            self._socket = opened
            self.works()
            self.log.info("listening", address=self.address)
            try:
                while not self.stopping.is_set():
                    await self._read(opened)
                while len(frames := self._reader.read(opened)):  # what the kernel holds at the end
                    await self._intake.take(frames)
            finally:
                self._drops_before, self._drops = self.kernel_drops, 0
                self._socket = None

    async def _read(self, opened: socket.socket) -> None:
        await self.within_quota(self._intake.longest_wait_s)
        frames = self._reader.read(opened)
        if self._reader.refused:
            self.errors["refused_sender"] += self._reader.refused
            self._reader.refused = 0
        if not len(frames):
            await self._readable(opened)
            return
        await self._intake.take(frames)
        await asyncio.sleep(_COALESCE_S if len(frames) < _FEW else 0)

    async def _readable(self, opened: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._wake.clear()
        loop.add_reader(opened, self._wake.set)
        try:
            if not self.stopping.is_set():
                await self._wake.wait()
        finally:
            loop.remove_reader(opened)

    def stop(self) -> None:
        """See `Source.stop`."""
        super().stop()
        self._wake.set()
