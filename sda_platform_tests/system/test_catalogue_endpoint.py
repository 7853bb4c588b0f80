"""`sda catalog serve` as a process: kill -9 at every point of a put, and what it serves after the restart."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.recovery.review import review
from sda_platform.runtime.processes import free_port
from sda_platform_tests.support import injections
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import committed, sets_of, small_catalogue

_TIMEOUT_S = 60.0


class Endpoint:
    """A running `sda catalog serve` of ``home``."""

    def __init__(self, home: Path) -> None:
        self.injection_file = home / "injection"
        port = free_port(0)
        serve = ("catalog", "serve", "--port", str(port))
        command = [sys.executable, "-m", "sda_platform.cli.main", "--home", str(home), *serve]
        environment = {**os.environ, **injections.armed(self.injection_file)}
        self._log = (home / "serve.log").open("ab")
        self.process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        deadline = time.monotonic() + _TIMEOUT_S
        while not self._answers():
            assert self.process.poll() is None, (home / "serve.log").read_text()
            assert time.monotonic() < deadline, "the endpoint did not answer"
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            return self.client.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def put(self, norad_id: int) -> bool:
        """Put a set of an object; whether it was acknowledged."""
        omm = {
            "NORAD_CAT_ID": norad_id, "EPOCH": "2024-10-31T12:00:00", "MEAN_MOTION": 15.5, "ECCENTRICITY": 0.001,
            "INCLINATION": 51.6, "RA_OF_ASC_NODE": 1.0, "ARG_OF_PERICENTER": 2.0, "MEAN_ANOMALY": 3.0,
            "BSTAR": 0.0001, "OBJECT_NAME": f"PUT {norad_id}",
        }  # fmt: skip
        try:
            answer = self.client.post("/elements", json=omm)
        except httpx.TransportError:
            return False
        assert answer.json() == {"accepted": 1, "refused": []}
        return True

    def served(self, norad_id: int) -> Any:
        """The object as it is served, None where it is not."""
        answer = self.client.get(f"/objects/{norad_id}")
        return answer.json()[0] if answer.status_code == 200 else None


@contextmanager
def endpoint(home: Path) -> Iterator[Endpoint]:
    """An endpoint that is ended at the end of the block."""
    running = Endpoint(home)
    try:
        yield running
    finally:
        running.client.close()
        running.process.terminate()
        running.process.wait(_TIMEOUT_S)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    small_catalogue(tmp_path, [5, 11, 25544])
    return tmp_path


def test_no_acknowledged_put_is_lost_by_kill_9_at_any_point__WL3_WL8_WL9(home: Path) -> None:
    points = ["serving.gathered", "landing.data_written", "landing.sealed", "serving.sealed", "serving.shown"]
    acknowledged: list[int] = []
    for number, point in enumerate(points):
        with endpoint(home) as running:
            for earlier in acknowledged:
                assert running.served(earlier)["OBJECT_NAME"] == f"PUT {earlier}"
            assert running.put(70_000 + number)
            acknowledged.append(70_000 + number)
            assert running.served(70_000 + number) is not None, "served when it is acknowledged"
            injections.Injection(point, "kill").arm(running.injection_file)
            assert not running.put(80_000 + number), "a put that was killed is not acknowledged"
            assert running.process.wait(_TIMEOUT_S) == -signal.SIGKILL
            assert point in injections.hits(running.injection_file)
    with endpoint(home) as running:
        second = CliRunner().invoke(main, ["--home", str(home), "catalog", "serve", "--port", str(free_port(0))])
        assert second.exit_code == 1 and "is served already at http://127.0.0.1" in second.output
        assert "3 objects, up to date" in CliRunner().invoke(main, ["--home", str(home), "status"]).output
        assert all(running.served(number) for number in acknowledged)
        sealed = [running.served(80_000 + number) is not None for number in range(len(points))]
        assert sealed == [False, False, True, True, True], "what was sealed is served, though it was not acknowledged"
        assert [each["NORAD_CAT_ID"] for each in running.client.get("/objects?id_max=30000").json()] == [5, 11, 25544]


def test_a_client_of_events_misses_nothing_when_both_ends_are_killed__44_7(home: Path) -> None:
    lake, chance, client = lake_at(home / "lake", reads_unverified=False), random.Random(7), EventClient()
    review(lake, ELEMENT_SETS)
    for number in range(1, 4):
        with endpoint(home) as running:
            later = sets_of([5, 11, 25544], segment_sha256=f"{number:064x}")
            committed(lake, [{**each, "epoch_time_ns": START_NS + number + n} for n, each in enumerate(later)])
            review(lake, ELEMENT_SETS)
            client.read(running, most=chance.randint(1, 2))
            running.process.kill()
            assert running.process.wait(_TIMEOUT_S) == -signal.SIGKILL
    with endpoint(home) as running:
        client.read(running, until="element_sets:4")
        assert set(client.received) == {f"element_sets:{commit}:{row}" for commit in range(1, 5) for row in range(3)}
        watching = threading.Thread(target=client.read, args=(running,))
        watching.start()
        assert client.is_open.wait(_TIMEOUT_S)
        running.process.terminate()
        assert running.process.wait(_TIMEOUT_S) in (0, -signal.SIGTERM), "an open stream does not hold up the end"
        watching.join(_TIMEOUT_S)


class EventClient:
    """Reads the stream of events as a browser does: it connects with the id of the last event."""

    def __init__(self) -> None:
        self.last_id = "first"
        self.received: list[str] = []
        self.is_open = threading.Event()

    def read(self, running: Endpoint, *, most: int = sys.maxsize, until: str = "") -> None:
        """Read at most so many events, until the cursor ``until``, or the end of the stream."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": self.last_id}
        self.is_open.clear()
        with running.client.stream("GET", "/events?feeds=element_sets", headers=headers) as answer:
            self.is_open.set()
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    self.last_id = value
                elif name == "data" and value != "{}":
                    self.received.append(json.loads(value)["id"])
                    most -= 1
                    if most == 0 or self.last_id == until:
                        return
