"""The optical archive over HTTP: requests records newer than a mark that survives restarts.

Each request repeats the overlap before the mark, because records arrive late and several may share a time. Records that
this process has landed are recognised by id, those without one by their text, and omitted. After a restart the overlap
is landed again, and equal observation ids make it harmless. The mark advances only after the records before it are
durable.

Usually one request has all that is new. An answer that is too large or too slow, or a refusal, halves the time that is
asked for (``until``); each good answer doubles it. After one that is too large there is no pause. So an outage of any
length is caught up with, as far back as the archive keeps records. What it does not keep any more is a gap, which is
counted and reported.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

from sda_platform.edge.batch import BatchReceipt, ReceivedBatch
from sda_platform.edge.http_client import HttpBounds, HttpClient, HttpRefused, HttpTooLarge, HttpTooSlow
from sda_platform.edge.marks import DurableMark
from sda_platform.edge.optical_records import NoRecords, Piece, read_piece
from sda_platform.edge.priority import Priority
from sda_platform.edge.sources.source import Services, Source, SourceFailed
from sda_platform.resilience import BreakerState
from sda_platform.units import SECOND_NS

_REMEMBERED: Final = 100_000
_LONG_POLL_GRACE_S: Final = 2.0
_FUTURE_NS: Final = 5_000_000_000
_PIECE_BYTES: Final = 2**18
_UNSEALED: Final = 8
_LONGEST_ANSWER_S: Final = 1_800.0
_LEAST_WINDOW_NS: Final = SECOND_NS
_HTTP_BOUNDS: Final = HttpBounds(attempts=1, total_s=60.0, max_bytes=16 * 2**20)


class OpticalSource(Source):
    """Polls ``url?since=<ns>``; with ``wait_ms`` the server may hold the request until there is something new."""

    kind, zone = "optical", "optical"
    is_stateful = True

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        url: str,
        poll_interval_s: float = 5.0,
        wait_ms: int = 0,
        overlap_s: float = 60.0,
        archive_s: float = 86_400.0,
        bounds: HttpBounds = _HTTP_BOUNDS,
    ) -> None:
        super().__init__(name, services)
        self._url, self._poll_interval_s, self._wait_ms = url, poll_interval_s, wait_ms
        self._overlap_ns, self._archive_ns, self._bounds = round(overlap_s * 1e9), round(archive_s * 1e9), bounds
        self._entry = services.entry(self.zone)
        self._mark = DurableMark(services.state_directory / f"{name}.mark.json")
        self._client: HttpClient | None = None
        self._landed: dict[str, int] = {}  # time by id, of records within the overlap
        self._cursor_ns: int | None = None  # of a pass through windows: where the next one begins
        self._window_ns: int | None = None  # None: one request has all
        self._gap_from_ns = 0

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return self._url

    @property
    def mark_ns(self) -> int:
        """The time up to which all records are durable."""
        return self._mark.time_ns

    @property
    def breaker_state(self) -> BreakerState | None:
        """See `Source.breaker_state`."""
        return self._client.breaker_state if self._client else None

    async def run(self) -> None:
        """See `Source.run`. Raises MarkUnreadable, OSError."""
        self._mark.load()
        self._client = client = HttpClient(self._bounds, internal=self.services.internal_names)
        try:
            while not self.stopping.is_set():
                try:
                    found = await self._poll(client)
                except HttpTooLarge as much:
                    self._narrow(much)  # at once: the archive is well; the least window has no bound
                    continue
                except (SourceFailed, OSError) as failure:
                    self._narrow(failure)
                    await self.retry_later(failure)
                    continue
                self.works()
                if self._window_ns is None and not (found and self._wait_ms):
                    await self.pause(0.1 if self._wait_ms else self._poll_interval_s)
        finally:
            await client.close()

    def _span(self) -> tuple[int, int | None]:
        """From which time to which records are asked for now; None: to the newest."""
        now_ns = self.services.clock.now_ns()
        oldest_ns = now_ns - self._archive_ns
        if 0 < self._mark.time_ns < oldest_ns and self._cursor_ns is None:
            self._report_gap(oldest_ns - self._mark.time_ns)
        since_ns = self._cursor_ns or max(self._mark.time_ns - self._overlap_ns, oldest_ns, 0)
        if self._window_ns is None or since_ns + self._window_ns >= now_ns:
            return since_ns, None
        return since_ns, since_ns + self._window_ns

    def _report_gap(self, gap_ns: int) -> None:
        """Records between the mark and the archive's oldest are lost; counted once."""
        if self._gap_from_ns != self._mark.time_ns:
            self._gap_from_ns = self._mark.time_ns
            self.errors["archive_gap"] += 1
            self.note(f"{gap_ns / 1e9:,.0f} s of records are lost: the archive keeps {self._archive_ns / 3.6e12:g} h")

    def _narrow(self, failure: Exception) -> None:
        """Ask for half of the time after an answer that is too much, or a refusal."""
        if isinstance(failure, (HttpRefused, HttpTooSlow)):
            since_ns, until_ns = self._span()
            span_ns = (until_ns or self.services.clock.now_ns()) - since_ns
            self._window_ns = max(span_ns // 2, _LEAST_WINDOW_NS)

    async def _poll(self, client: HttpClient) -> int:
        """One request and the landing of its answer; returns how many records are new."""
        since_ns, until_ns = self._span()
        params = {"since": str(since_ns)}
        if until_ns is not None:
            params["until"] = str(until_ns)
        elif self._wait_ms:
            params["wait_ms"] = str(self._wait_ms)
        total_s = max(self._bounds.total_s, self._wait_ms / 1e3 + _LONG_POLL_GRACE_S)
        # An archive that does not know `until` answers the shortest window with all it has: that is read to its end.
        is_least = self._window_ns is not None and self._window_ns <= _LEAST_WINDOW_NS
        answer = _Answer(self)
        request = asyncio.ensure_future(
            client.get(
                self._url,
                params=params,
                total_s=_LONGEST_ANSWER_S if is_least else total_s,
                max_bytes=None if is_least else self._bounds.max_bytes,
                sink=answer.take,
            )
        )
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({request, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                return 0
            request.result()
            await answer.end()
        finally:
            request.cancel()
            stopped.cancel()
            await asyncio.gather(request, stopped, return_exceptions=True)
        if until_ns is not None and answer.last_ns > until_ns:
            until_ns = None  # an archive that does not know `until` has answered all it has
        await self._advance(max(self._mark.time_ns, answer.newest_ns), until_ns)
        return answer.count

    async def _advance(self, mark_ns: int, until_ns: int | None) -> None:
        """Move the mark, and go on to the next window."""
        in_thread = partial(asyncio.get_running_loop().run_in_executor, self.services.executor)
        await in_thread(self._mark.move, mark_ns)
        self._landed = await in_thread(_recent, self._landed, mark_ns - self._overlap_ns)
        self._cursor_ns = until_ns
        if until_ns is None:
            self._window_ns = None
        elif self._window_ns is not None:
            self._window_ns *= 2

    def new_lines(self, piece: Piece, times_ns: Mapping[str, int]) -> list[bytes]:
        """Return the lines of the records that are not durable already; counts the others, and records without id or
        time.

        ``times_ns``: until when each is remembered; a record without a time may come for as long as it is answered.
        """
        is_landed = [name in self._landed for name in piece.names]
        self._landed.update(
            (name, times_ns[name]) for name, is_old in zip(piece.names, is_landed, strict=True) if is_old
        )
        bad = sum(at is None and not is_old for at, is_old in zip(piece.times_ns, is_landed, strict=True))
        for reason, count in (("repeated", sum(is_landed)), ("bad_record", bad)):
            if count:
                self.errors[reason] += count
        return [line for line, is_old in zip(piece.lines, is_landed, strict=True) if not is_old]

    async def hand_over(self, lines: list[bytes]) -> BatchReceipt:
        """Give records to the zone."""
        receipt, now_s = BatchReceipt(), asyncio.get_running_loop().time()
        self.last_received_s = now_s
        data = b"\n".join(lines) + b"\n"
        peer = urlsplit(self._url).netloc
        batch = ReceivedBatch(self.name, Priority.HIGH, data, len(lines), now_s, receipt, peer, marking=self.marking)
        await self._entry.hand_over(batch)
        return receipt

    async def durable(self, receipt: BatchReceipt, times_ns: dict[str, int]) -> None:
        """Return once these records are sealed. Raises SourceFailed if some were dropped."""
        if not await receipt.durable():
            raise SourceFailed(f"{self._url}: {receipt.lost} records were not kept; they are requested again")
        self._landed.update(times_ns)
        if len(self._landed) > 2 * _REMEMBERED:
            self._landed = dict(islice(self._landed.items(), _REMEMBERED, None))


def _recent(times_ns: dict[str, int], oldest_ns: int) -> dict[str, int]:
    """Those of ``times_ns`` from ``oldest_ns`` on, at most `_REMEMBERED`."""
    found = {name: at for name, at in times_ns.items() if at >= oldest_ns}
    return dict(islice(found.items(), max(len(found) - _REMEMBERED, 0), None))


class _Answer:
    """The records of one answer on their way. Of all records, landed now or before: ``last_ns`` is the latest time, and
    ``newest_ns`` the latest that is no clock's fault."""

    def __init__(self, source: OpticalSource) -> None:
        self.count = self.last_ns = self.newest_ns = 0
        self._latest_ns = source.services.clock.now_ns() + _FUTURE_NS
        self._source = source
        self._parts: list[bytes] = []
        self._rest: bytes | None = b""
        self._is_first, self._size = True, 0
        self._unsealed: deque[tuple[BatchReceipt, dict[str, int]]] = deque(maxlen=_UNSEALED + 1)

    async def take(self, chunk: bytes) -> None:
        """A piece of the body as it came. Raises SourceFailed."""
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size >= _PIECE_BYTES:
            await self._read(is_last=False)

    async def end(self) -> None:
        """The body has ended: return once all records are durable. Raises SourceFailed."""
        await self._read(is_last=True)
        while self._unsealed:
            await self._source.durable(*self._unsealed.popleft())

    async def _read(self, *, is_last: bool) -> None:
        if self._rest is None:
            self._parts, self._size = [], 0
            return
        data = self._rest + b"".join(self._parts)
        self._parts, self._size = [], 0
        services = self._source.services
        try:
            piece = await services.documents.run(
                read_piece, data, services.clock.now_ns(), is_first=self._is_first, is_last=is_last
            )
        except NoRecords as error:
            raise SourceFailed(f"{self._source.address} answers no list of records: {error}") from None
        self._is_first, self._rest = not piece.has_begun, piece.rest
        times_ns = [at for at in piece.times_ns if at is not None]
        self.last_ns = max(self.last_ns, *times_ns, 0)
        self.newest_ns = max(self.newest_ns, *(at for at in times_ns if at <= self._latest_ns), 0)
        newest_ns = max(self.newest_ns, self._source.mark_ns)
        known = {n: newest_ns if at is None else at for n, at in zip(piece.names, piece.times_ns, strict=True)}
        lines = self._source.new_lines(piece, known)
        if lines:
            self.count += len(lines)
            self._unsealed.append((await self._source.hand_over(lines), known))
        if len(self._unsealed) > _UNSEALED:
            await self._source.durable(*self._unsealed.popleft())
