"""Events over real processes that are killed: the endpoint, a NATS server, and a client of each."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.recovery.review import review
from sda_platform.runtime.nats_server import connect_to
from sda_platform.runtime.processes import free_port
from sda_platform.serving.event_stream import CURSOR, PLACE, EventPublisher
from sda_platform.serving.events import Changes
from sda_platform.serving.source import FEEDS
from sda_platform_tests.support.catalogue_endpoint import Endpoint
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.event_reader import ids
from sda_platform_tests.support.nats_server import NatsServer
from sda_platform_tests.support.programs import program
from sda_platform_tests.support.sampling import number
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import committed, sets_of, small_catalogue
from sda_platform_tests.unit.serving.source import MemorySource

pytestmark = pytest.mark.skipif(program("nats-server") is None, reason="no nats-server is installed")
_TIMEOUT_S = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    running = NatsServer(tmp_path / "nats").start()
    yield running
    running.process.kill()
    running.process.wait()


async def stored(server: NatsServer) -> list[tuple[str, str, str]]:
    """Subject, event id and cursor of each message of the stream; of a place, no id."""
    client = await connect_to(server.url)()
    stream = client.jetstream()
    state = (await stream.stream_info("SDA")).state
    found = [await stream.get_msg("SDA", sequence) for sequence in range(state.first_seq, state.last_seq + 1)]
    await client.close()
    return [
        (str(each.subject), json.loads(each.data or b"{}").get("id", ""), (each.headers or {})[CURSOR])
        for each in found
    ]


def add(source: MemorySource, feed: str, rows: int) -> None:
    commits = source.commits[feed]
    commits.append([{"norad_id": 5, "row": f"{feed}:{len(commits) + 1}:{row}"} for row in range(rows)])


@pytest.mark.parametrize("seed", range(number(in_soak=40, in_suite=2)))
def test_each_event_is_stored_once_in_order_however_publisher_and_server_end__44_7(
    server: NatsServer, seed: int
) -> None:
    chance, source, feeds = random.Random(seed), MemorySource(), [each for each in FEEDS if each != "element_sets"]
    looks = 0

    async def pause(_: float) -> None:
        await asyncio.sleep(0.001)

    def clock_s() -> float:
        nonlocal looks
        looks += 1
        return float(looks)

    def publisher() -> EventPublisher:
        return EventPublisher(Changes(source, pause, clock_s), connect_to(server.url), pause)

    async def campaign() -> None:
        add(source, "tracks", 3)  # before the stream: not in it
        await until_published(publisher())
        for _ in range(6):
            for _ in range(chance.randint(1, 4)):
                add(source, chance.choice(feeds), chance.choice([0, 1, 3, 250]))
            racing = [asyncio.create_task(publisher().run()) for _ in range(2)]
            await asyncio.sleep(chance.random() * 0.15)
            if chance.random() < 0.4:
                server.kill()
                server.start()
            for task in racing:
                await cancelled(task)
        await until_published(publisher())

    asyncio.run(campaign())
    found = asyncio.run(stored(server))
    assert found[0] == (PLACE, "", "alerts:0,conjunctions:0,element_sets:0,tracks:1")
    for feed in feeds:
        of_feed = [(event, subject) for subject, event, _ in found if subject.split(".")[1] == feed]
        expected = [row["row"] for commit in source.commits[feed] for row in commit]
        assert of_feed == [(each, f"sda.{feed}.5") for each in expected[3 if feed == "tracks" else 0 :]]


async def until_published(publisher: EventPublisher) -> None:
    running = asyncio.create_task(publisher.run())
    async with asyncio.timeout(_TIMEOUT_S):
        while (await publisher.health()) != {"problem": None, "behind_commits": 0}:
            assert not running.done(), running
            await asyncio.sleep(0.01)
    await cancelled(running)


async def cancelled(task: asyncio.Task[None]) -> None:
    """End a task; `asyncio.wait_for` may take a cancellation that meets its own end for none."""
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.01)


def test_commits_count_as_waiting_though_no_server_has_ever_answered__44_7(tmp_path: Path) -> None:
    away, source, looks = NatsServer(tmp_path / "nats"), MemorySource(), 0

    def clock_s() -> float:
        nonlocal looks
        looks += 1
        return float(looks)

    async def pause(_: float) -> None:
        await asyncio.sleep(0.001)

    async def waiting() -> list[int]:
        changes = Changes(source, pause, clock_s)
        publisher = EventPublisher(changes, connect_to(away.url), pause)
        running, found = asyncio.create_task(publisher.run()), []
        async with asyncio.timeout(_TIMEOUT_S):
            for number in range(3):
                while publisher.behind_commits != number or not changes.known_heads:
                    await asyncio.sleep(0.01)
                found.append(publisher.behind_commits)
                add(source, "alerts", 1)
        assert "does not take it" in str((await publisher.health())["problem"])
        await cancelled(running)
        return found

    assert asyncio.run(waiting()) == [0, 1, 2]


def test_a_lake_that_was_built_anew_is_published_from_the_first_event_on__44_7(server: NatsServer) -> None:
    before, after = MemorySource(), MemorySource()

    async def campaign() -> None:
        await until_published(EventPublisher(Changes(before), connect_to(server.url)))
        for _ in range(3):
            add(before, "alerts", 1)
        add(before, "tracks", 1)
        await until_published(EventPublisher(Changes(before), connect_to(server.url)))
        add(after, "alerts", 2)
        add(after, "tracks", 1)
        await until_published(EventPublisher(Changes(after), connect_to(server.url)))

    asyncio.run(campaign())
    assert [event for _, event, _ in asyncio.run(stored(server)) if event] == [
        "alerts:1:0", "alerts:2:0", "alerts:3:0", "tracks:1:0", "alerts:1:0", "alerts:1:1",
    ]  # fmt: skip


class Reader:
    """A client as a process."""

    def __init__(self, kind: str, address: str, file: Path) -> None:
        self.file = file
        self._command = [sys.executable, "-m", "sda_platform_tests.support.event_reader", kind, address, str(file)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command)

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL


class Killed:
    """Everything that takes part, each of which is killed and started again."""

    def __init__(self, home: Path, server: NatsServer) -> None:
        self._home, self._server, self._port = home, server, free_port(0)
        self._endpoint = self._serve()
        self.readers = [
            Reader("sse", f"http://127.0.0.1:{self._port}", home / "sse"),
            Reader("nats", server.url, home / "from_nats"),
        ]

    def _serve(self) -> Endpoint:
        return Endpoint(self._home, self._port, {"SDA_EVENT_STREAM": self._server.url})

    def strike(self, chosen: int) -> None:
        """Kill one of the four, and start it again."""
        match chosen:
            case 0:
                self._endpoint.kill()
                self._endpoint = self._serve()
            case 1:
                self._server.kill()
                self._server.start()
            case _:
                self.readers[chosen - 2].kill()
                self.readers[chosen - 2].start()

    def health(self) -> Any:
        """What the endpoint reports of the stream."""
        return self._endpoint.client.get("/health").json()["event_stream"]

    def end(self) -> None:
        """Kill them all."""
        self._endpoint.kill()
        for reader in self.readers:
            reader.kill()


@contextmanager
def all_running(home: Path, server: NatsServer) -> Iterator[Killed]:
    running = Killed(home, server)
    try:
        yield running
    finally:
        running.end()


def commit_some(lake: Lake, moment: int) -> list[str]:
    """Commit to every feed; returns the ids of the events."""
    event = {"event_id": "e", "op": "insert", "sequence": moment, "norad_id_1": 5, "norad_id_2": 11, "tca_time_ns": 1}
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**event, "risk": "green", "miss_distance_km": 1.5}])
    commit(lake, CONJUNCTION_ALERTS, [{**event, "status": "open"}, {**event, "event_id": "f", "status": "open"}])
    commit(lake, TRACKS, [{"norad_id": moment, "epoch_time_ns": moment, "x_km": 7000.0, "state": "confirmed"}])
    later = sets_of([5, 11, 25544], segment_sha256=f"{moment:064x}")
    committed(lake, [{**each, "epoch_time_ns": START_NS + moment + n} for n, each in enumerate(later)])
    for table in (CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS, TRACKS, ELEMENT_SETS):
        assert not review(lake, table).red
    rows = {"alerts": 2, "conjunctions": 1, "element_sets": 3, "tracks": 1}
    later_by_one = {"element_sets": 1}  # the catalogue begins with a commit
    return [
        f"{feed}:{moment + later_by_one.get(feed, 0)}:{row}" for feed, count in rows.items() for row in range(count)
    ]


def eventually(holds: Any) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_clients_miss_nothing_whoever_is_killed__44_7(tmp_path: Path, server: NatsServer) -> None:
    home, chance = tmp_path / "home", random.Random(7)
    home.mkdir()
    MissionClock(START_NS, 0, 0.0).save(home)
    small_catalogue(home, [5, 11, 25544])
    lake = lake_at(home / "lake", reads_unverified=False)
    review(lake, ELEMENT_SETS)
    first = [f"element_sets:1:{row}" for row in range(3)]
    with all_running(home, server) as running:
        eventually(lambda: running.health() == {"problem": None, "behind_commits": 0})
        sent: list[str] = []
        rounds = number(in_soak=60, in_suite=4)  # each of the four is killed
        victims = [n % 4 for n in range(rounds)]
        chance.shuffle(victims)
        for moment, victim in enumerate(victims, 1):
            sent += commit_some(lake, moment)
            time.sleep(chance.random())  # so that some are sent
            running.strike(victim)
        by_sse, from_nats = running.readers
        eventually(lambda: set(ids(by_sse.file)) >= {*first, *sent})
        eventually(lambda: set(ids(from_nats.file)) >= set(sent))
        assert set(ids(by_sse.file)) == {*first, *sent}
        assert set(ids(from_nats.file)) == set(sent)
    found = asyncio.run(stored(server))
    assert sorted(event for _, event, _ in found if event) == sorted(sent), "each is in the stream once"
    assert {subject for subject, _, _ in found} == {
        PLACE, "sda.alerts.5.11", "sda.conjunctions.5.11", *(f"sda.tracks.{each}" for each in range(1, rounds + 1)),
        *(f"sda.element_sets.{each}" for each in (5, 11, 25544)),
    }  # fmt: skip
