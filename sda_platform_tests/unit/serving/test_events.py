"""Events: whatever was committed reaches a client, however often it is cut off, and whatever it had seen by then."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.recovery.review import review
from sda_platform.serving.events import LOOK_S, Changes, FeedCursor
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.source import FEEDS
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.small_catalogue import committed, sets_of
from sda_platform_tests.unit.serving.client import Client
from sda_platform_tests.unit.serving.endpoint import endpoint_over
from sda_platform_tests.unit.serving.source import MemorySource

_SIZES = st.lists(st.tuples(st.sampled_from(FEEDS[:2]), st.sampled_from([0, 1, 2, 3, 501])), max_size=8)


class CutOff(Exception):
    """The connection of a client ends here."""


def add(source: MemorySource, feed: str, size: int) -> None:
    number = len(source.commits[feed]) + 1
    source.commits[feed].append([{"key": f"{feed}:{number}:{row}"} for row in range(size)])


def verify(lake: Lake, *tables: Table) -> None:
    for table in tables:
        verdict = review(lake, table)
        assert not verdict.red, verdict


def look_again(client: Client) -> None:
    client.app.state.changes = Changes(client.app.state.live.source)


def expected(source: MemorySource) -> list[str]:
    """The id of each row of all commits."""
    return [row["key"] for feed in FEEDS for rows in source.commits[feed] for row in rows]


class Reader:
    """A client of the stream, as a browser's EventSource: keeps the last id, and what it has received."""

    def __init__(self, source: MemorySource) -> None:
        self._source = source
        self.last_id = "first"
        self.received: list[dict[str, Any]] = []

    def read(self, later: Iterator[tuple[str, int]], most: int) -> None:
        """Connect, and read until ``most`` events have come, or nothing is left; commits arrive while it waits."""
        now_s = 0.0

        async def pause(seconds: float) -> None:
            nonlocal now_s
            now_s += seconds
            following = next(later, None)
            if following is None:
                raise CutOff
            add(self._source, *following)

        async def follow() -> None:
            left = most
            cursor = FeedCursor.parsed(self.last_id, FEEDS)
            stream = Changes(self._source, pause, lambda: now_s).stream(cursor)
            async for piece in stream:
                for text in piece.decode().split("\n\n"):
                    fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
                    self.last_id = fields.get("id", self.last_id)
                    if fields.get("event") in FEEDS:
                        self.received.append(json.loads(fields["data"]))
                        left -= 1
                        if left <= 0:
                            raise CutOff

        with pytest.raises(CutOff):
            asyncio.run(follow())


@given(_SIZES, _SIZES, st.lists(st.integers(1, 600), max_size=6))
def test_a_client_that_is_cut_off_anywhere_receives_every_row__44_7(
    before: Sequence[tuple[str, int]], later: Sequence[tuple[str, int]], cuts: Sequence[int]
) -> None:
    source = MemorySource()
    for each in before:
        add(source, *each)
    arriving, reader = iter(later), Reader(source)
    for most in [*cuts, 100_000]:
        reader.read(arriving, most)
    ids = [each["id"] for each in reader.received]
    assert set(ids) == set(expected(source))
    for event in reader.received:
        assert (event["row"], event["feed"]) == ({"key": event["id"]}, event["id"].split(":")[0])
    assert len(ids) == len(set(ids)), "each id states how far the client is, to the row"
    assert FeedCursor.parsed(reader.last_id, FEEDS).commits.keys() == set(FEEDS)


@given(_SIZES, st.integers(1, 600))
def test_pages_hold_every_row_once__44_7(commits: Sequence[tuple[str, int]], limit: int) -> None:
    source = MemorySource()
    for each in commits:
        add(source, *each)
    changes = Changes(source)

    # In one event loop: a loop for each of thousands of pages takes longer than the pages.
    async def read() -> None:
        cursor, found = "first", list[list[str]]()
        while True:
            page = json.loads(await changes.page(FeedCursor.parsed(cursor, FEEDS), limit))
            found.append([each["id"] for each in page["events"]])
            cursor = page["cursor"]
            if page["is_complete"]:
                break
            assert len(found[-1]) == limit, "a page that is not the last is full, however large its commits are"
        assert [name for names in found for name in names] == expected(source)
        assert json.loads(await changes.page(FeedCursor.parsed(cursor, FEEDS), limit))["events"] == []

    asyncio.run(read())


def test_streams_end_with_the_server_and_are_bounded__44_7() -> None:
    now_s = [0.0]

    async def pause(seconds: float) -> None:
        now_s[0] += seconds

    async def follow() -> list[bytes]:
        changes = Changes(MemorySource(), pause, lambda: now_s[0], most_streams=3)
        changes.is_over = lambda: now_s[0] >= 40 * LOOK_S
        first = changes.stream(FeedCursor.parsed("first", FEEDS), "192.0.2.1")
        pieces = [await anext(first)]
        with pytest.raises(Busy, match="1 streams of events are open"):
            changes.require_room("192.0.2.1")
        changes.require_room("192.0.2.7")
        pieces += [each async for each in first]
        changes.require_room("")
        return pieces

    begin, *quiet = asyncio.run(follow())
    assert begin.startswith(b"retry: 2000\nid: alerts:0,conjunctions:0,element_sets:0,tracks:0\n")
    assert quiet == [b": nothing new\n\n"] * 2, "every 15 s, so that nobody takes the connection for dead"


def test_the_events_of_a_lake_are_its_commits__44_7(tmp_path: Path) -> None:
    with endpoint_over(tmp_path) as (client, lake):
        assert client.get("/events?since=first").json()["events"] == [], "the commit is not verified yet"
        verify(lake, ELEMENT_SETS)
        look_again(client)
        sets = client.get("/events?since=first&feeds=element_sets").json()
        assert [each["row"]["NORAD_CAT_ID"] for each in sets["events"]] == [5, 11, 25544]
        assert [each["id"] for each in sets["events"]] == [f"element_sets:1:{row}" for row in range(3)]
        assert client.get("/events").json()["events"] == [], "from now on"
        cursor = client.get("/events").json()["cursor"]
        assert cursor == "alerts:0,conjunctions:0,element_sets:1,tracks:0"
        event = {"event_id": "e", "op": "insert", "sequence": 1, "norad_id_1": 5, "tca_time_ns": 1}
        commit(lake, CONJUNCTION_ASSESSMENTS, [{**event, "risk": "green", "miss_distance_km": 1.5}])
        commit(lake, CONJUNCTION_ALERTS, [{**event, "status": "open"}])
        commit(lake, CONJUNCTION_ALERTS, [{**event, "op": "retract", "sequence": 2}, {**event, "sequence": 3}])
        commit(lake, TRACKS, [{"norad_id": 5, "epoch_time_ns": 1, "x_km": 7000.0, "state": "confirmed"}])
        committed(lake, sets_of([11], epoch_time_ns=9, segment_sha256="cd" * 32))
        verify(lake, CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS, TRACKS, ELEMENT_SETS)
        look_again(client)
        page = client.get(f"/events?since={cursor}").json()
        assert [each["id"] for each in page["events"]] == [
            "alerts:1:0", "alerts:2:0", "alerts:2:1", "conjunctions:1:0", "element_sets:2:0", "tracks:1:0",
        ]  # fmt: skip
        rows = [each["row"] for each in page["events"]]
        assert [row["op"] for row in rows[:4]] == ["insert", "retract", "insert", "insert"]
        assert (rows[3]["miss_distance_km"], rows[5]["x_km"]) == (1.5, 7000.0)
        assert "joint_covariance" not in rows[5] and "commit_sequence" not in rows[0]


@pytest.mark.parametrize(
    ("path", "headers", "status", "error"),
    [
        ("/events?since=x", {}, 400, "is none that an event has, nor first"),
        ("/events?since=alerts:1,alerts", {}, 400, "is none that an event has"),
        ("/events?feeds=alerts,nothing", {}, 400, "no feed is named 'nothing'; there are alerts, conjunctions"),
        ("/events?since=alerts:7", {}, 410, "has commit 7 of alerts, whose newest is 0"),
        ("/events?since=alerts:0.5", {}, 410, "has commit 0 of alerts, whose newest is 0"),
        ("/events", {"Last-Event-ID": "tracks:9"}, 410, "has commit 9 of tracks"),
        ("/events?since=first", {"Last-Event-ID": "<b>"}, 400, "the cursor '<b>' is none"),
        ("/events", {"Accept": "text/html"}, 406, "names none of application/json, text/event-stream"),
    ],
)
def test_a_cursor_or_feed_that_does_not_exist_is_refused__44_7(
    tmp_path: Path, path: str, headers: dict[str, str], status: int, error: str
) -> None:
    with endpoint_over(tmp_path) as (client, _):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, error in answer.json()["error"]) == (status, True), answer.text
