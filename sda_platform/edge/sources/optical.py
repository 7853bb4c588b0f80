"""The optical archive over HTTP: requests records newer than a mark that survives restarts (DP1-F3, E6).

Each request repeats the overlap before the mark, because records arrive late and several may share a time. Records that
this process has landed are recognised by id and omitted. After a restart the overlap is landed again, and equal
observation ids make it harmless. The mark advances only after the records before it are durable.
"""

import asyncio
import json
from typing import Any, Final

from sda_platform.edge.batch import BatchReceipt, ReceivedBatch
from sda_platform.edge.http_client import HttpBounds, HttpClient, HttpFailed
from sda_platform.edge.marks import DurableMark
from sda_platform.edge.priority import Priority
from sda_platform.edge.sources.source import Services, Source, SourceFailed, SourceState
from sda_platform.resilience import BreakerState

_REMEMBERED: Final = 100_000
_LONG_POLL_GRACE_S: Final = 2.0
_FUTURE_NS: Final = 5_000_000_000
_HTTP_BOUNDS: Final = HttpBounds(total_s=10.0, max_bytes=16 * 2**20)


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
        bounds: HttpBounds = _HTTP_BOUNDS,
    ) -> None:
        super().__init__(name, services)
        self._url, self._poll_interval_s, self._wait_ms = url, poll_interval_s, wait_ms
        self._overlap_ns, self._bounds = round(overlap_s * 1e9), bounds
        self._entry = services.entry(self.zone)
        self._mark = DurableMark(services.state_directory / f"{name}.mark.json")
        self._client: HttpClient | None = None
        self._landed: dict[str, int] = {}  # time by id, of records within the overlap

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return self._url

    @property
    def breaker_state(self) -> BreakerState | None:
        """See `Source.breaker_state`."""
        return self._client.breaker_state if self._client else None

    async def run(self) -> None:
        """See `Source.run`. Raises SourceFailed, MarkUnreadable."""
        self._mark.load()
        self._client = client = HttpClient(self._bounds)
        try:
            failures = 0
            while not self.stopping.is_set():
                try:
                    found, failures = await self._poll(client), 0
                except HttpFailed as failure:  # an archive that is away is no reason to restart
                    failures += 1
                    await self.retry_later(failure)
                    continue
                self.state, self.detail = SourceState.RUNNING, ""
                if not (found and self._wait_ms):
                    await self.pause(0.1 if self._wait_ms else self._poll_interval_s)
        finally:
            await client.close()

    async def _poll(self, client: HttpClient) -> int:
        """One request and the landing of its answer; returns how many records are new."""
        params = {"since": str(max(self._mark.time_ns - self._overlap_ns, 0))}
        if self._wait_ms:
            params["wait_ms"] = str(self._wait_ms)
        total_s = self._bounds.total_s if not self._wait_ms else self._wait_ms / 1e3 + _LONG_POLL_GRACE_S
        request = asyncio.ensure_future(client.get(self._url, params=params, total_s=total_s))
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({request, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                return 0
            return await self._land(_records(request.result().content, self._url))
        finally:
            request.cancel()
            stopped.cancel()

    async def _land(self, records: list[Any]) -> int:
        received_ns, lines, times = self.services.clock.now_ns(), [], dict[str, int]()
        for record in records:
            name, time_ns = _identity(record)
            if name and name in self._landed:
                self.errors["repeated"] += 1
                continue
            if name is None:
                self.errors["bad_record"] += 1
            else:
                times[name] = time_ns
            if isinstance(record, dict):
                record = {**record, "received_ns": received_ns}
            lines.append(json.dumps(record, separators=(",", ":")).encode())
        if lines:
            receipt, now_s = BatchReceipt(), asyncio.get_running_loop().time()
            self.last_received_s = now_s
            data = b"\n".join(lines) + b"\n"
            await self._entry.hand_over(ReceivedBatch(self.name, Priority.HIGH, data, len(lines), now_s, receipt))
            if not await receipt.durable():
                raise SourceFailed(f"{self._url}: {receipt.lost} records were not kept; they are requested again")
        self._advance(times, latest_ns=received_ns + _FUTURE_NS)
        return len(lines)

    def _advance(self, times: dict[str, int], latest_ns: int) -> None:
        """Move the mark to the newest of ``times``; a record from the future, a clock's fault, does not move it."""
        mark_ns = max([self._mark.time_ns, *(time_ns for time_ns in times.values() if time_ns <= latest_ns)])
        known = {**self._landed, **times}
        recent = [(name, at) for name, at in known.items() if at >= mark_ns - self._overlap_ns]
        self._landed = dict(recent[-_REMEMBERED:])
        self._mark.move(mark_ns)


def _records(content: bytes, url: str) -> list[Any]:
    """The elements of the answer. Raises SourceFailed where it is no JSON array."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SourceFailed(f"{url} does not answer JSON: {str(error)[:200]}") from None
    if not isinstance(found, list):
        raise SourceFailed(f"{url} answers a {type(found).__name__}, must be a list of records")
    return found


def _identity(record: Any) -> tuple[str | None, int]:
    """Id and time of a record; no id where it lacks either."""
    if isinstance(record, dict):
        name, time_ns = record.get("obs_id"), record.get("timestamp_ns")
        if isinstance(name, str) and name and isinstance(time_ns, int) and not isinstance(time_ns, bool):
            return name, time_ns
    return None, 0
