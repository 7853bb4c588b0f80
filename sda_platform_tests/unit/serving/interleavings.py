"""Reads of the endpoint with a write between any two of their lines, and writes with a read between any two of theirs.

A client keeps every answer under its address and tag, as a cache does. It never sees an old body under a new tag, nor
two bodies under one; it is never told that what it has is current while it is not; and a read that begins after an
acknowledgement shows what was acknowledged.
"""

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

from starlette.applications import Starlette

from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides
from sda_platform.serving import events, kept_views, requests
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import application
from sda_platform.serving.source import Rows
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row, table
from sda_platform_tests.unit.serving.source import MemorySource

PATHS = (
    "/objects/7",
    "/objects?id=7,8",
    "/objects?name=object",
    "/objects?limit=1&after=6",
    "/objects/7/history",
    "/objects/7/states?at=2024-11-01T00:00:00Z",
    "/NORAD/elements/gp.php?CATNR=7&FORMAT=json",
    "/basicspacedata/query/class/gp/NORAD_CAT_ID/7/format/csv",
    "/alerts",
)
WRITES = ("put", "commit", "consume", "alert")
_OF_ONE_WORLD = 20
SECOND_S = 0.3
"""Each look at the clock is so much later."""


@dataclass
class Answer:
    """What the endpoint answered."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def asked(app: Starlette, path: str, headers: Mapping[str, str] | None = None) -> Answer:
    """The answer to a GET, in this thread and without an event loop."""
    answer, (where, _, query) = Answer(), path.partition("?")
    where = unquote(where)
    lines = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in (headers or {}).items()]
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": where, "raw_path": where.encode(), "query_string": query.encode(),
        "headers": lines, "scheme": "http", "server": ("127.0.0.1", 80), "http_version": "1.1", "root_path": "",
    }  # fmt: skip

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            assert len(answer.headers) == len(message["headers"]), f"{path}: a header twice in {message['headers']}"
        else:
            answer.body += message.get("body", b"")

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    for waited in app(scope, receive, send).__await__():
        assert waited is None, f"{path} waits for {waited}, and not only for its turn"
    return answer


@dataclass
class World:
    """An endpoint, what a client has seen of it, and the newest set of object 7 that is acknowledged."""

    app: Starlette
    live: LiveCatalogue
    source: MemorySource
    seen: dict[tuple[str, str], bytes] = field(default_factory=dict)
    number: int = 0

    def write(self, kind: str) -> None:
        """Acknowledge a newer set of object 7: put, committed, or consumed from what was put; or raise an alert."""
        self.number += 1
        if kind == "alert":
            self.source.approaches = [{**each, "number": self.number} for each in ALERTS]
            return
        sha256 = f"{self.number:064x}"
        newer = {"epoch_time_ns": EPOCH_NS + self.number * 10**9, "record_number": self.number % 10**6}
        changed = row(7, object_name=f"OBJECT {self.number}", segment_sha256=sha256, received_time_ns=NOW_NS, **newer)
        if kind == "commit":
            self.source.sets = self.source.sets[-4:]
            self.source.commit(changed)
            self.live.refresh()
            return
        self.live.take(sha256, table([changed]))
        if kind == "consume":
            self.source.commit(changed)
            self.live.refresh()

    def read(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a client, judged by what it has seen before."""
        answer = asked(self.app, path, headers)
        assert answer.status in (200, 304), (path, answer)
        if answer.status == 200:
            known = self.seen.setdefault((path, answer.headers["etag"]), answer.body)
            assert known == answer.body, f"{path}: two bodies under {answer.headers['etag']}"
        return answer

    def judge(self, path: str, before: Answer) -> None:
        """Ask for what was answered ``before``, in every way that a cache does."""
        now = self.read(path)
        validators = {"If-None-Match": before.headers["etag"]}
        if "last-modified" in before.headers:
            dated = {"If-Modified-Since": before.headers["last-modified"]}
            assert self.read(path, dated).status == 200 or now.body == before.body, f"{path}: an old body by its date"
        status = self.read(path, validators).status
        assert status == 200 or now.body == before.body, f"{path}: an old body under a new tag"
        assert self.read(path, {"If-None-Match": now.headers["etag"]}).status == 304
        if "7" in path:
            assert f"OBJECT {self.shown}".encode() in now.body or "states" in path, f"{path}: no {self.shown}"

    @property
    def shown(self) -> int:
        """The number in the name of the set in force."""
        found = self.live.get(7)
        assert found is not None and found.object_name is not None
        return int(found.object_name.split()[1])


NOW_NS = EPOCH_NS + 2 * DAY_NS
ALERTS: Rows = [{"norad_id_1": 7, "norad_id_2": 8, "risk": "red", "tca_time_ns": NOW_NS, "name": "OBJECT 1"}]


class HeldLock:
    """A lock that counts itself while it is held. What comes in between would wait for it; one thread cannot."""

    held = 0

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()
        HeldLock.held += 1

    def __exit__(self, *_: object) -> None:
        HeldLock.held -= 1
        self._lock.release()


async def _here(run: Callable[..., Any], *arguments: Any) -> Any:
    return run(*arguments)


@contextmanager
def world(*, in_threads: bool = False) -> Iterator[World]:
    """An endpoint over objects 1 to 8, whose handlers run in the thread that asks, unless ``in_threads``."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as patched:
        if not in_threads:  # the one lock that both reads and writes take
            patched.enter_context(patch.object(kept_views, "Lock", HeldLock))
        source = MemorySource()
        source.commit(*(row(number) for number in range(1, 9)))
        clock = itertools.count()
        live = LiveCatalogue(source, IndexStore(Path(home)), lambda: NOW_NS, lambda: 1e9 + SECOND_S * next(clock))
        live.start()
        puts = Puts(live, lambda name, data, origins: NOW_NS)
        app = application(live, puts, SubmittedEphemerides(lake_at(Path(home) / "lake"), f"{home}/landing"))
        for module in () if in_threads else (requests, events):
            patched.enter_context(patch.object(module, "run_in_threadpool", _here))
        yield World(app, live, source)
        puts.close()
        live.close()


def with_at(line: int, run: Callable[[], Any], between: Callable[[], Any]) -> int:
    """Call ``between`` before line ``line`` of the endpoint's code that ``run`` executes; how many lines it has.

    Where a lock is held there, it comes before the first line after that.
    """
    lines, is_done = 0, False

    def each(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines, is_done
        if event == "line":
            lines += 1
            if lines >= line and not is_done and not HeldLock.held:
                is_done = True
                between()
        return each

    def begin(frame: FrameType, event: str, argument: Any) -> Any:
        return each if "/sda_platform/serving/" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


def interleave(place: World, path: str, write: str, line: int, *, is_read_inside: bool) -> int:
    """One interleaving, judged; the number of lines of what was interrupted."""
    answers = [place.read(path)]
    read, change = lambda: answers.append(place.read(path)), lambda: place.write(write)
    lines = with_at(line, change, read) if is_read_inside else with_at(line, read, change)
    validators = [(each.headers["etag"], each.headers.get("last-modified")) for each in answers]
    for answer in dict(zip(validators, answers, strict=True)).values():  # `read` has compared the bodies of a tag
        place.judge(path, answer)
    return lines


def explored(step: int = 1, first: int = 1, paths: Sequence[str] = PATHS) -> int:
    """Every ``step``-th interleaving of each read and write; how many."""
    count = 0
    for path, write, is_read_inside in itertools.product(paths, WRITES, (False, True)):
        lines, line = first, first
        while line <= lines:
            with world() as place:  # a long history would have more lines each time
                for _ in range(min(_OF_ONE_WORLD, (lines - line) // step + 1)):
                    lines = interleave(place, path, write, line, is_read_inside=is_read_inside)
                    line, count = line + step, count + 1
    return count
