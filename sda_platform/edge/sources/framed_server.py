"""Sources that listen on TCP for length-prefixed frames: inter-satellite links, and telemetry of many stations.

A connection has a task and a bounded buffer of its own: one that stalls or misbehaves concerns no other. Beyond
``max_connections`` a new one is closed at once and counted, so that a storm of them costs nothing else.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from sda_platform.edge.address import Address, listening_tcp
from sda_platform.edge.senders import ALL_SENDERS, AllowedSenders
from sda_platform.edge.sources.frame_stream import FRAME_TIMEOUTS, READ_BYTES, FrameTimeouts, LengthPrefix
from sda_platform.edge.sources.intake import Intake, LinkIntake, TelemetryIntake
from sda_platform.edge.sources.session import Session
from sda_platform.edge.sources.source import Services, Source


class FramedServer(Source):
    """Listens at ``bind``. ``tls`` makes the context at each start, so that it reads renewed certificates."""

    framing: ClassVar[LengthPrefix]
    intake_class: ClassVar[type[Intake]]

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        bind: Address,
        acknowledges: bool = False,
        max_connections: int = 256,
        timeouts: FrameTimeouts = FRAME_TIMEOUTS,
        allowed: AllowedSenders = ALL_SENDERS,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        super().__init__(name, services)
        self._allowed, self._tls = allowed, tls
        self._bind, self._acknowledges, self._timeouts = bind, acknowledges, timeouts
        self._max_connections = max_connections
        self._intake = self.intake_class(self)
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._address = ""

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return self._address

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._sessions)

    async def run(self) -> None:
        """See `Source.run`."""
        with self.listening(self._bind, partial(listening_tcp, self._bind, self._max_connections)) as opened:
            tls = self._tls()
            # The server closes the socket that it gets.
            server = await asyncio.start_server(
                self._accept,
                sock=opened.dup(),
                limit=READ_BYTES,
                backlog=self._max_connections,
                ssl=tls,
                ssl_handshake_timeout=self._timeouts.frame_s if tls else None,
            )
            self._address = str(Address(*opened.getsockname()[:2]))
            self.works()
            self.log.info("listening", address=self._address)
            try:
                await self.stopping.wait()
            finally:
                server.close()
                await self._drain()
                self._address = ""

    async def _drain(self) -> None:
        """Let every connection end at a frame boundary."""
        for session in self._sessions.values():
            session.stream.stop()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=self._timeouts.drain_s + 0.5)
        for task in list(self._sessions):
            task.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        peer = writer.get_extra_info("peername")
        if peer is None or not self._allowed.allows(str(peer[0])):
            self.errors["refused_sender"] += 1
            writer.transport.abort()
            return
        if task is None or self.stopping.is_set() or len(self._sessions) >= self._max_connections:
            self.errors["refused_connection"] += 1
            writer.transport.abort()
            return
        keep_alive(writer)
        session = Session(reader, writer, self._intake, self.framing, self._timeouts, acknowledges=self._acknowledges)
        self._sessions[task] = session
        try:
            await session.run()
        except Exception as error:  # what one peer sends ends no other connection
            self.note_fault(error)
        finally:
            del self._sessions[task]


class LinkSource(FramedServer):
    """Beacons of satellites over inter-satellite links; one connection may carry many satellites."""

    kind, zone = "isl", "isl"
    framing = LengthPrefix(is_big_endian=False)
    intake_class = LinkIntake


class TelemetrySource(FramedServer):
    """Telemetry frames that ground stations send."""

    kind, zone = "telemetry", "telemetry"
    framing = LengthPrefix(is_big_endian=True)
    intake_class = TelemetryIntake


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Have the kernel notice a peer that is gone."""
    opened: socket.socket | None = writer.get_extra_info("socket")
    if opened is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
