"""What commits changed, as events: a stream (server-sent events) that a client resumes, or pages in JSON.

A cursor states what of each feed a client has: everything up to a commit, and so many rows of the next one. A client
that reconnects with the id of its last event is sent what came later: each row at least once, with an id of its own.
"""

import asyncio
import json
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sda_platform.fair_share import FairShare, peer_of
from sda_platform.formats.omm import encode_omm_json
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.kept_views import NotKept
from sda_platform.serving.negotiation import best
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import NotAcceptable, element_set, json_rows
from sda_platform.serving.requests import BadRequest, page_length, turn_of
from sda_platform.serving.source import ELEMENT_SETS, FEEDS, CatalogueSource

MEDIA_TYPES: Final = ("application/json", "text/event-stream")
FIRST: Final = "first"
_PLACE: Final = rf"({'|'.join(FEEDS)}):[0-9]{{1,18}}(\.[0-9]{{1,9}})?"
CURSOR_PATTERN: Final = rf"({FIRST}|{_PLACE}(,{_PLACE})*)"
LOOK_S: Final = 1.0
"""How often streams look for newer commits."""
MOST_STREAMS: Final = 100
"""Streams that may be open, of which a peer has a fair share; more are answered 503."""
_QUIET_S: Final = 15.0
# Rows that are rendered at once: what a stream holds beside the commit.
_ROWS: Final = 500
# Commits that streams share; a client that is further behind reads its own.
_KEPT_COMMITS: Final = 8
_RETRY_MS: Final = 2_000
_OBJECTS: Final = ("norad_id", "norad_id_1", "norad_id_2")


@dataclass(frozen=True)
class FeedCursor:
    """What a client has: everything of each feed up to a commit, and so many ``rows`` of the next one."""

    commits: Mapping[str, int]
    rows: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parsed(cls, text: str, feeds: Sequence[str]) -> "FeedCursor":
        """Read a cursor; `FIRST` is before all commits. Raises BadRequest."""
        if not re.fullmatch(CURSOR_PATTERN, text):
            raise BadRequest(f"the cursor {text[:80]!r} is none that an event has, nor {FIRST}")
        given = {} if text == FIRST else dict(each.split(":") for each in text.split(","))
        places = {feed: given.get(feed, "0").partition(".") for feed in feeds}
        return cls(
            {feed: int(sequence) for feed, (sequence, _, _) in places.items()},
            {feed: int(rows) for feed, (_, _, rows) in places.items() if rows},
        )

    def after(self, feed: str, sequence: int, rows: int = 0) -> "FeedCursor":
        """Return the cursor with everything of a commit, and so many rows of the next one."""
        others = {name: count for name, count in self.rows.items() if name != feed}
        return FeedCursor({**self.commits, feed: sequence}, {**others, feed: rows} if rows else others)

    def __str__(self) -> str:
        return ",".join(
            f"{feed}:{sequence}.{self.rows[feed]}" if feed in self.rows else f"{feed}:{sequence}"
            for feed, sequence in self.commits.items()
        )


@dataclass(frozen=True)
class FeedEvent:
    """A row of a commit: its feed, the numbers of its ``objects``, JSON, and the cursor that ends with it."""

    feed: str
    objects: tuple[int, ...]
    data: bytes
    cursor: FeedCursor


class Changes:
    """Reads the commits of a source for all clients together."""

    def __init__(
        self,
        source: CatalogueSource,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_s: Callable[[], float] = time.monotonic,
        most_streams: int = MOST_STREAMS,
    ) -> None:
        self._source, self._clock_s, self._pause = source, clock_s, pause
        self._streams = FairShare(most_streams)
        self.is_over: Callable[[], bool] = lambda: False
        """Whether streams shall end."""
        self._heads: Mapping[str, int] = {}
        self._looked_s = float("-inf")
        self._kept: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._looking, self._reading = asyncio.Lock(), asyncio.Lock()

    @property
    def known_heads(self) -> Mapping[str, int]:
        """The newest commit of each feed, as of the last look of any client."""
        return self._heads

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

    def require_room(self, peer: str) -> None:
        """Raise Busy where as many streams are open as may be, or as ``peer`` may have."""
        if not self._streams.takes(peer):
            raise Busy(f"{self._streams.held} streams of events are open; no more are served")
        self._streams.give_back(peer)

    async def stream(self, cursor: FeedCursor, peer: str = "") -> AsyncIterator[bytes]:
        """Send what is after ``cursor`` and whatever comes, until `is_over`."""
        if not self._streams.takes(peer):
            return  # another one came first: the client connects again
        try:
            # The id of the beginning, so that a client which is cut off before the first event resumes here.
            yield f"retry: {_RETRY_MS}\nid: {cursor}\nevent: begin\ndata: {{}}\n\n".encode()
            quiet_since_s = self._clock_s()
            while not self.is_over():
                heads = await self.heads()
                for feed, upto in heads.items():
                    while cursor.commits.get(feed, upto) < upto:
                        found, cursor = await self.next_events(feed, cursor, _ROWS)
                        if found:
                            yield await run_in_threadpool(_sent, found)
                            quiet_since_s = self._clock_s()
                if self._clock_s() - quiet_since_s >= _QUIET_S:
                    yield b": nothing new\n\n"
                    quiet_since_s = self._clock_s()
                await self._pause(LOOK_S)
        finally:
            self._streams.give_back(peer)

    async def page(self, cursor: FeedCursor, limit: int) -> bytes:
        """Return what is after ``cursor`` as JSON, at most ``limit`` rows."""
        events: list[bytes] = []
        for feed, upto in (await self.heads()).items():
            while cursor.commits.get(feed, upto) < upto:
                if len(events) >= limit:
                    return _page(cursor, events, is_complete=False)
                found, cursor = await self.next_events(feed, cursor, min(_ROWS, limit - len(events)))
                events += [each.data for each in found]
        return _page(cursor, events, is_complete=True)

    async def next_events(self, feed: str, cursor: FeedCursor, most: int) -> tuple[list[FeedEvent], FeedCursor]:
        """Return at most ``most`` events after ``cursor``, of one commit, and the cursor then."""
        sequence, first = cursor.commits[feed] + 1, cursor.rows.get(feed, 0)
        rows = await self.commit(feed, sequence)
        end = max(first, min(first + most, rows.num_rows))
        found = await run_in_threadpool(_rendered, feed, sequence, first, rows.slice(first, end - first))
        places = [cursor.after(feed, sequence - 1, place) for place in range(first + 1, end + 1)]
        after = cursor.after(feed, sequence) if end >= rows.num_rows else places[-1]
        cursors = [*places[:-1], after][: len(found)]
        return [FeedEvent(feed, *each, at) for each, at in zip(found, cursors, strict=True)], after


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
        if sequence + (feed in cursor.rows) > heads[feed]:
            raise NotKept(f"the cursor has commit {sequence} of {feed}, whose newest is {heads[feed]}: read it anew")
    nowhere = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if media_type == MEDIA_TYPES[0]:
        async with turn_of(request):
            return Response(await changes.page(cursor, limit), 200, nowhere, media_type)
    peer = peer_of(request.client)
    changes.require_room(peer)
    return StreamingResponse(changes.stream(cursor, peer), 200, nowhere, media_type)


def _feeds(request: Request) -> list[str]:
    wanted = request.query_params.get("feeds")
    if wanted is None:
        return list(FEEDS)
    names = wanted.split(",")
    for name in names:
        if name not in FEEDS:
            raise BadRequest(f"no feed is named {name[:40]!r}; there are {', '.join(FEEDS)}")
    return [feed for feed in FEEDS if feed in names]


def _rendered(feed: str, sequence: int, first: int, rows: pa.Table) -> list[tuple[tuple[int, ...], bytes]]:
    """Return the objects and the JSON of the events of ``rows``, which begin at row ``first`` of the commit."""
    found = rows.to_pylist()
    objects = [tuple(row[name] for name in _OBJECTS if row.get(name) is not None) for row in found]
    if feed == ELEMENT_SETS:
        found = json.loads(encode_omm_json([element_set(StoredElements(**row)) for row in found]))
    texts = (
        json_rows([{"id": f"{feed}:{sequence}:{first + number}", "feed": feed, "row": row}])[1:-1]
        for number, row in enumerate(found)
    )
    return list(zip(objects, texts, strict=True))


def _sent(found: Sequence[FeedEvent]) -> bytes:
    """Return events as server-sent ones."""
    return b"".join(
        b"id: %s\nevent: %s\ndata: %s\n\n" % (str(each.cursor).encode(), each.feed.encode(), each.data)
        for each in found
    )


def _page(cursor: FeedCursor, found: Sequence[bytes], *, is_complete: bool) -> bytes:
    head: dict[str, Any] = {"cursor": str(cursor), "is_complete": is_complete}
    return json.dumps(head).encode()[:-1] + b', "events": [' + b", ".join(found) + b"]}"
