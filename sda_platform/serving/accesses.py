"""Every request is counted and, where there is a log, recorded before its answer begins."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client.core import Metric
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sda_platform.fair_share import peer_of
from sda_platform.http_gate import READING
from sda_platform.resilience import Quotas
from sda_platform.serving.access_log import Access, AccessLog
from sda_platform.serving.answering import problem
from sda_platform.serving.event_stream import EventPublisher
from sda_platform.telemetry import SERVING_METRICS, ExportedMetrics, family

_FAILED: Final = 500
_BOUNDS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_MOST_CHARACTERS: Final = 1_000
_NO_LOG: Final = "the log of accesses cannot be written, so nothing is answered: free space below the home"


class RequestMetrics(ExportedMetrics):
    """Counts of requests since the start, and what the stream of events waits for."""

    def __init__(self, publisher: EventPublisher | None = None) -> None:
        self._publisher = publisher
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._sent: Counter[str] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, handler: str, client: str, status: int, seconds: float, sent_bytes: int) -> None:
        """Count a request that begins to be answered."""
        self._requests[handler, client, str(status)] += 1
        self._sent[handler] += sent_bytes
        self._seconds[handler] += seconds
        buckets = self._buckets.setdefault(handler, [0] * (len(_BOUNDS_S) + 1))
        buckets[sum(seconds > bound for bound in _BOUNDS_S)] += 1

    def collect(self) -> Iterator[Metric]:
        """Every family with its samples."""
        requests, sent, seconds, behind = map(family, SERVING_METRICS)
        for labels, count in sorted(self._requests.items()):
            requests.add_metric(labels, count)
        for handler, count in sorted(self._sent.items()):
            sent.add_metric([handler], count)
        for handler, buckets in sorted(self._buckets.items()):
            totals = [sum(buckets[: place + 1]) for place in range(len(buckets))]
            bounds = [*map(str, _BOUNDS_S), "+Inf"]
            seconds.add_metric([handler], list(zip(bounds, totals, strict=True)), self._seconds[handler])
        if self._publisher:
            behind.add_metric([], self._publisher.behind_commits)
        yield from (requests, sent, seconds, behind)


class Accesses:
    """An ASGI application that passes requests to ``app``; ``quotas`` pay for what their readers are sent."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: RequestMetrics,
        quotas: Quotas,
        log: AccessLog | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._metrics, self._quotas, self._log, self._now_s = app, metrics, quotas, log, now_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, has_begun, is_refused = self._now_s(), False, False

        async def recorded(message: Message) -> None:
            nonlocal has_begun, is_refused
            if message["type"] == "http.response.start":
                has_begun = True
                try:
                    await self._record(scope, message, self._now_s() - began_s)
                except OSError:
                    is_refused = True
                    await problem(_NO_LOG, 503, {"Retry-After": "1"})(scope, receive, send)
            if not is_refused:
                await send(message)

        try:
            await self._app(scope, receive, recorded)
        except Exception:
            if not has_begun:  # the server answers it, outside of this application
                with suppress(OSError):
                    await self._record(scope, {"status": _FAILED}, self._now_s() - began_s)
            raise

    async def _record(self, scope: Scope, start: Message, seconds: float) -> None:
        client, sent_bytes = _client(scope), _length(start)
        handler = getattr(scope.get("endpoint"), "__name__", "none").strip("_")
        self._metrics.count(handler, client, start["status"], seconds, sent_bytes or 0)
        if client and scope["method"] in READING:
            self._quotas.spend(client, requests=1, bytes=sent_bytes or 0)
        if self._log is None:
            return
        query = scope["query_string"].decode("latin-1")
        target = f"{scope['path']}?{query}" if query else scope["path"]
        access = Access(
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            client,
            peer_of(scope.get("client")),
            scope["method"],
            target[:_MOST_CHARACTERS],
            start["status"],
            sent_bytes,
            round(seconds, 6),
        )
        self._log.record(access)
        if scope["method"] == "POST":  # what was written is on disk, and so is who wrote it
            await run_in_threadpool(self._log.sync)


def _client(scope: Scope) -> str:
    state: dict[str, Any] = scope.get("state") or {}
    return state.get("client") or ""


def _length(start: Message) -> int | None:
    stated = dict(start.get("headers", ())).get(b"content-length")
    return None if stated is None else int(stated)
