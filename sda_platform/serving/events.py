"""What commits changed, as events: a stream (server-sent events) that a client resumes, or pages in JSON.

A cursor states up to which commit of each feed a client has everything. It is the id of an event that completes a
commit. A client that reconnects with it is sent what came later: each row at least once, with an id of its own.
"""

import asyncio
import json
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sda_platform.formats.omm import encode_omm_json
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.kept_views import NotKept
from sda_platform.serving.negotiation import best
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import NotAcceptable, element_set, json_rows
from sda_platform.serving.requests import BadRequest, page_length
from sda_platform.serving.source import ELEMENT_SETS, FEEDS, CatalogueSource

MEDIA_TYPES: Final = ("application/json", "text/event-stream")
FIRST: Final = "first"
CURSOR_PATTERN: Final = rf"({FIRST}|({'|'.join(FEEDS)}):[0-9]{{1,18}}(,({'|'.join(FEEDS)}):[0-9]{{1,18}})*)"
LOOK_S: Final = 1.0
"""How often streams look for newer commits."""
MOST_STREAMS: Final = 100
"""Streams beyond this number are answered 503."""
_QUIET_S: Final = 15.0
# Rows that are rendered at once: what a stream holds beside the commit.
_ROWS: Final = 500
# Commits that streams share; a client that is further behind reads its own.
_KEPT_COMMITS: Final = 8
_RETRY_MS: Final = 2_000


@dataclass(frozen=True)
class FeedCursor:
    """The newest commit of each feed of which a client has everything."""

    commits: Mapping[str, int]

    @classmethod
    def parsed(cls, text: str, feeds: Sequence[str]) -> "FeedCursor":
        """Read a cursor; `FIRST` is before all commits. Raises BadRequest."""
        if not re.fullmatch(CURSOR_PATTERN, text):
            raise BadRequest(f"the cursor {text[:80]!r} is none that an event has, nor {FIRST}")
        given = {} if text == FIRST else {name: int(at) for name, _, at in (e.partition(":") for e in text.split(","))}
        return cls({feed: given.get(feed, 0) for feed in feeds})

    def after(self, feed: str, sequence: int) -> "FeedCursor":
        """Return the cursor with everything of a commit."""
        return FeedCursor({**self.commits, feed: sequence})

    def __str__(self) -> str:
        return ",".join(f"{feed}:{sequence}" for feed, sequence in self.commits.items())


class Changes:
    """Reads the commits of a source for all clients together."""

    def __init__(
        self,
        source: CatalogueSource,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_s: Callable[[], float] = time.monotonic,
        most_streams: int = MOST_STREAMS,
    ) -> None:
        self._source, self._clock_s, self._most_streams = source, clock_s, most_streams
        self._pause = pause
        self.is_over: Callable[[], bool] = lambda: False
        """Whether streams shall end."""
        self.streams = 0
        self._heads: Mapping[str, int] = {}
        self._looked_s = float("-inf")
        self._kept: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._looking, self._reading = asyncio.Lock(), asyncio.Lock()

    async def heads(self) -> Mapping[str, int]:
        """Return the newest commit of each feed that may be read, as of the last `LOOK_S`."""
        async with self._looking:
            if self._clock_s() - self._looked_s >= LOOK_S:
                self._heads = await run_in_threadpool(self._source.feed_heads)
                self._looked_s = self._clock_s()
        return self._heads

    async def commit(self, feed: str, sequence: int) -> pa.Table:
        """Return the rows of a commit; it is read once for all that ask for it meanwhile."""
        async with self._reading:
            found = self._kept.get((feed, sequence))
            if found is None:
                found = await run_in_threadpool(self._source.feed_rows, feed, sequence)
                self._kept[feed, sequence] = found
                while len(self._kept) > _KEPT_COMMITS:
                    self._kept.popitem(last=False)
        return found

    def require_room(self) -> None:
        """Raise Busy where as many streams are open as may be."""
        if self.streams >= self._most_streams:
            raise Busy(f"{self.streams} streams of events are open; no more are served")

    async def stream(self, cursor: FeedCursor) -> AsyncIterator[bytes]:
        """Send what is after ``cursor`` and whatever comes, until `is_over`."""
        self.streams += 1
        try:
            # The id of the beginning, so that a client which is cut off before the first event resumes here.
            yield f"retry: {_RETRY_MS}\nid: {cursor}\nevent: begin\ndata: {{}}\n\n".encode()
            quiet_since_s = self._clock_s()
            while not self.is_over():
                heads = await self.heads()
                for feed, upto in heads.items():
                    for sequence in range(cursor.commits.get(feed, upto) + 1, upto + 1):
                        before, cursor = cursor, cursor.after(feed, sequence)
                        async for piece in self._events(feed, sequence, before, cursor):
                            yield piece
                            quiet_since_s = self._clock_s()
                if self._clock_s() - quiet_since_s >= _QUIET_S:
                    yield b": nothing new\n\n"
                    quiet_since_s = self._clock_s()
                await self._pause(LOOK_S)
        finally:
            self.streams -= 1

    async def page(self, cursor: FeedCursor, limit: int) -> bytes:
        """Return what is after ``cursor`` as JSON: whole commits, the first and as many as have ``limit`` rows."""
        events: list[bytes] = []
        for feed, upto in (await self.heads()).items():
            for sequence in range(cursor.commits.get(feed, upto) + 1, upto + 1):
                rows = await self.commit(feed, sequence)
                if events and len(events) + rows.num_rows > limit:
                    return _page(cursor, events, is_complete=False)
                cursor = cursor.after(feed, sequence)
                for first in range(0, rows.num_rows, _ROWS):
                    events += await run_in_threadpool(_rendered, feed, sequence, first, rows.slice(first, _ROWS))
        return _page(cursor, events, is_complete=True)

    async def _events(self, feed: str, sequence: int, before: FeedCursor, after: FeedCursor) -> AsyncIterator[bytes]:
        rows = await self.commit(feed, sequence)
        for first in range(0, rows.num_rows, _ROWS):
            texts = await run_in_threadpool(_rendered, feed, sequence, first, rows.slice(first, _ROWS))
            ids = [before] * len(texts)
            if first + _ROWS >= rows.num_rows:
                ids[-1] = after
            pairs = zip(ids, texts, strict=True)
            yield b"".join(b"id: %s\nevent: %s\ndata: %s\n\n" % (str(i).encode(), feed.encode(), t) for i, t in pairs)


async def events(request: Request) -> Response:
    """Return what changed after a cursor: a stream where the client accepts one, else a page in JSON."""
    changes: Changes = request.app.state.changes
    media_type = best(request.headers.get("accept"), MEDIA_TYPES)
    if media_type is None:
        raise NotAcceptable(f"Accept: {request.headers.get('accept', '')[:80]} names none of {', '.join(MEDIA_TYPES)}")
    heads, limit = await changes.heads(), page_length(request)
    feeds = _feeds(request)
    # A client that reconnects by itself has the same address, and the id of the last event.
    text = request.headers.get("last-event-id") or request.query_params.get("since")
    cursor = FeedCursor({feed: heads[feed] for feed in feeds}) if text is None else FeedCursor.parsed(text, feeds)
    for feed, sequence in cursor.commits.items():
        if sequence > heads[feed]:
            raise NotKept(f"the cursor has commit {sequence} of {feed}, whose newest is {heads[feed]}: read it anew")
    nowhere = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if media_type == MEDIA_TYPES[0]:
        return Response(await changes.page(cursor, limit), 200, nowhere, media_type)
    changes.require_room()
    return StreamingResponse(changes.stream(cursor), 200, nowhere, media_type)


def _feeds(request: Request) -> list[str]:
    wanted = request.query_params.get("feeds")
    if wanted is None:
        return list(FEEDS)
    names = wanted.split(",")
    for name in names:
        if name not in FEEDS:
            raise BadRequest(f"no feed is named {name[:40]!r}; there are {', '.join(FEEDS)}")
    return [feed for feed in FEEDS if feed in names]


def _rendered(feed: str, sequence: int, first: int, rows: pa.Table) -> list[bytes]:
    """Return the JSON of the events of ``rows``, which begin at row ``first`` of the commit."""
    found = rows.to_pylist()
    if feed == ELEMENT_SETS:
        found = json.loads(encode_omm_json([element_set(StoredElements(**row)) for row in found]))
    return [
        json_rows([{"id": f"{feed}:{sequence}:{first + number}", "feed": feed, "row": row}])[1:-1]
        for number, row in enumerate(found)
    ]


def _page(cursor: FeedCursor, found: Sequence[bytes], *, is_complete: bool) -> bytes:
    head: dict[str, Any] = {"cursor": str(cursor), "is_complete": is_complete}
    return json.dumps(head).encode()[:-1] + b', "events": [' + b", ".join(found) + b"]}"
