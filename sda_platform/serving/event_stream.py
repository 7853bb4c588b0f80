"""Events in a stream of NATS JetStream: each row once and in order, however often a publisher or the server is killed.

The stream holds the publisher's place: each message has the cursor that ends with it. A message also names the sequence
that the message before it must have. So of two publishers one is refused; it finds the place anew and continues there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sda_platform.serving.events import LOOK_S, Changes, FeedCursor, FeedEvent
from sda_platform.serving.source import FEEDS
from sda_platform.units import DAY_S

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

STREAM: Final = "SDA"
SUBJECTS: Final = "sda.>"
PLACE: Final = "sda.place"
"""The subject of messages that only have a cursor: where publishing began, and each hour in which nothing came."""
CURSOR: Final = "Sda-Cursor"
"""The header with the cursor that ends with its message: `GET /events?since=` goes on from there."""
_EXPECTED: Final = "Nats-Expected-Last-Sequence"
_WRONG_LAST_SEQUENCE: Final = 10_071
_KEPT_S: Final = 30 * DAY_S
"""How long a stream that is made here keeps messages; one that exists stays as its operator made it."""
_PLACE_S: Final = 3_600.0
_AT_ONCE: Final = 100
_RETRY_S: Final = 2.0
TIMEOUT_S: Final = 5.0
"""How long an answer of the server is waited for."""
_LOG = logging.getLogger(__name__)

Connect = Callable[[], Coroutine[Any, Any, "Client"]]


class _Overtaken(Exception):
    """Another publisher has written to the stream: its last message is another one."""


class EventPublisher:
    """Publishes what ``changes`` has to the server that ``connect`` reaches, until the server of answers ends."""

    def __init__(
        self, changes: Changes, connect: Connect, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._changes, self._connect, self._pause = changes, connect, pause
        self._cursor = FeedCursor({})
        self._last = 0
        self._problem: str | None = "no connection yet"

    @property
    def behind_commits(self) -> int:
        """How many commits wait, as of the last look; until a server has answered, those since the start."""
        upto = self._changes.known_heads
        return sum(max(0, upto[feed] - sequence) for feed, sequence in self._cursor.commits.items())

    async def health(self) -> dict[str, Any]:
        """Report why nothing is published, or null, and how many commits wait."""
        await self._changes.heads()
        return {"problem": self._problem, "behind_commits": self.behind_commits}

    async def run(self) -> None:
        """Publish until the server ends; a failure is logged once, and tried again."""
        while not self._changes.is_over():
            try:
                heads = await self._changes.heads()
                self._cursor = self._cursor if self._cursor.commits else FeedCursor(dict(heads))
                connection = await self._connect()
                try:
                    await self._follow(connection)
                finally:
                    with suppress(Exception):
                        await connection.close()
            except Exception as error:
                problem = str(error) or type(error).__name__
                if problem != self._problem:
                    _LOG.warning("events are not published: %s; trying again every %g s", problem, _RETRY_S)
                self._problem = problem
                await self._pause(_RETRY_S)

    async def _follow(self, connection: "Client") -> None:
        stream = connection.jetstream(timeout=TIMEOUT_S)
        await self._find_place(stream)
        if self._problem:
            _LOG.info("events are published from %s on", self._cursor)
        self._problem, quiet_s = None, 0.0
        while not self._changes.is_over():
            has_news = False
            for feed, upto in (await self._changes.heads()).items():
                while self._cursor.commits[feed] < upto:
                    found, after = await self._changes.next_events(feed, self._cursor, _AT_ONCE)
                    try:
                        await self._publish(stream, found)
                    except _Overtaken:
                        await self._pause(_RETRY_S)
                        await self._find_place(stream)
                        continue
                    self._cursor, has_news = after, has_news or bool(found)
            quiet_s = 0.0 if has_news else quiet_s + LOOK_S
            if quiet_s >= _PLACE_S:
                await self._write_place(stream)
                quiet_s = 0.0
            if connection.is_closed:
                raise ConnectionError("the server of the stream closed the connection")
            await self._pause(LOOK_S)

    async def _find_place(self, stream: "JetStreamContext") -> None:
        """Find where the stream ends: make it where it is absent, and begin with what comes from now on."""
        from nats.js.api import StreamConfig
        from nats.js.errors import NotFoundError

        try:
            self._last = (await stream.stream_info(STREAM)).state.last_seq
        except NotFoundError:
            await stream.add_stream(StreamConfig(name=STREAM, subjects=[SUBJECTS], max_age=_KEPT_S))
            self._last = 0
        heads = await self._changes.heads()
        text = await _cursor_of(stream, self._last) if self._last else None
        if text is None:
            if self._last:
                _LOG.warning("the stream %s has lost its last message: what came since is not published", STREAM)
            self._cursor = FeedCursor(dict(heads))
            await self._write_place(stream)
            return
        found = FeedCursor.parsed(text, FEEDS)
        anew = [feed for feed, upto in heads.items() if found.commits[feed] + (feed in found.rows) > upto]
        if anew:
            _LOG.warning("%s were built anew: their events are published from the first on", ", ".join(anew))
        self._cursor = FeedCursor(
            {feed: 0 if feed in anew else sequence for feed, sequence in found.commits.items()},
            {feed: rows for feed, rows in found.rows.items() if feed not in anew},
        )

    async def _publish(self, stream: "JetStreamContext", found: list[FeedEvent]) -> None:
        """Publish events together: each is stored only after the one before it, or none that follows is."""
        waiting = [
            stream.publish(
                ".".join(("sda", each.feed, *map(str, each.objects))),
                each.data,
                headers={CURSOR: str(each.cursor), _EXPECTED: str(self._last + number)},
            )
            for number, each in enumerate(found)
        ]
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            if isinstance(outcome, BaseException):
                if getattr(outcome, "err_code", None) == _WRONG_LAST_SEQUENCE:
                    raise _Overtaken from outcome
                raise outcome
        self._last += len(found)

    async def _write_place(self, stream: "JetStreamContext") -> None:
        headers = {CURSOR: str(self._cursor), _EXPECTED: str(self._last)}
        self._last = (await stream.publish(PLACE, b"{}", headers=headers)).seq


async def _cursor_of(stream: "JetStreamContext", sequence: int) -> str | None:
    from nats.js.errors import NotFoundError

    try:
        message = await stream.get_msg(STREAM, sequence)
    except NotFoundError:
        return None
    headers: Mapping[str, str] = message.headers or {}
    return headers.get(CURSOR)
