"""A station that is called: connect, read telemetry frames, connect again; and the element set of its pass.

    connecting ─► connected ─► reconnecting ─► connecting …
    On a stop: disconnecting ─► stopped.

Pauses between attempts are 1, 2, 4 … 30 s with some jitter, so that stations do not return together. A
connection that brings no frame counts as a failed attempt. A station is called for as long as it is configured. Without
a frame for five minutes it is on the health page. Every transition is written to the log in order.
"""

import asyncio
from contextlib import suppress
from random import Random

from sda_platform.edge.address import Address
from sda_platform.edge.sources.element_refresh import ElementRefresh
from sda_platform.edge.sources.frame_stream import FRAME_TIMEOUTS, READ_BYTES, FrameTimeouts, LengthPrefix
from sda_platform.edge.sources.framed_server import keep_alive
from sda_platform.edge.sources.intake import TelemetryIntake
from sda_platform.edge.sources.session import Session
from sda_platform.edge.sources.source import Services, Source, SourceState
from sda_platform.resilience import doubling_s

GOODBYE = b"\x00\x00\x00\x07GOODBYE"


class StationSource(Source):
    """Calls the station at ``address``; ``elements`` keeps the element set of its satellite fresh meanwhile."""

    kind, zone = "station", "telemetry"

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        address: Address,
        elements: ElementRefresh | None = None,
        timeouts: FrameTimeouts = FRAME_TIMEOUTS,
        connect_s: float = 5.0,
        patience_s: float = 300.0,
        longest_pause_s: float = 30.0,
        first_pause_s: float = 1.0,
    ) -> None:
        super().__init__(name, services)
        self._station, self._elements, self._timeouts = address, elements, timeouts
        self._connect_s, self.patience_s = connect_s, patience_s
        self._first_pause_s, self._longest_pause_s = first_pause_s, longest_pause_s
        self._intake = TelemetryIntake(self)
        self._session: Session | None = None
        self._jitter = Random(name)
        self.transitions: list[str] = []

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return str(self._station)

    async def run(self) -> None:
        """See `Source.run`."""
        refreshing = asyncio.create_task(self._elements.run(self)) if self._elements else None
        try:
            await self._keep_connected()
        finally:
            if refreshing is not None:  # the refresh ends with the session; nothing waits for it
                refreshing.cancel()
                with suppress(asyncio.CancelledError):
                    await refreshing
        self._enter(SourceState.STOPPED, "stopped")

    async def _keep_connected(self) -> None:
        attempt = 0
        while not self.stopping.is_set():
            attempt += 1
            self._enter(SourceState.STARTING, f"connecting, attempt {attempt}")
            ended = await self._connection()
            if self.stopping.is_set():
                return
            if ended is None:
                attempt, ended = 1, "the connection ended"
            self.fails(ended)
            pause_s = doubling_s(attempt, base_s=self._first_pause_s, cap_s=self._longest_pause_s)
            pause_s = min(pause_s * self._jitter.uniform(1.0, 1.1), self._longest_pause_s)
            self._enter(SourceState.RETRYING, f"reconnecting in {pause_s:.1f} s: {ended}")
            await self.pause(pause_s)

    async def _connection(self) -> str | None:
        """One connection to its end; None after one that brought frames, else what was wrong."""
        try:
            async with asyncio.timeout(self._connect_s):
                reader, writer = await asyncio.open_connection(*self._station, limit=READ_BYTES)
        except (OSError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}".rstrip(": ")
        keep_alive(writer)
        self._enter(SourceState.RUNNING, "connected")
        self._session = session = Session(
            reader, writer, self._intake, LengthPrefix(is_big_endian=True), self._timeouts
        )
        if self.stopping.is_set():
            self.stop()
        session.farewell = GOODBYE
        try:
            reason = await session.run()
        except Exception as error:
            reason = self.note_fault(error)
        finally:
            self._session = None
        return None if session.frames else f"no frame came: {reason}"

    def stop(self) -> None:
        """Finish the frame in progress, send GOODBYE, close."""
        super().stop()
        if self._session is not None:
            self._enter(SourceState.DRAINING, "disconnecting")
            self._session.stream.stop()

    def _enter(self, state: SourceState, detail: str) -> None:
        self.state, self.detail = state, detail
        self.transitions.append(detail)
        del self.transitions[:-64]
        self.log.info("station", state=state.value, detail=detail)
