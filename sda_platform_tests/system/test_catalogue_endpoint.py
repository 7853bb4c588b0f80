"""`sda catalog serve` as a process: kill -9 at every point of a put, and what it serves after the restart."""

import json
import signal
import threading
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.recovery.review import review
from sda_platform.runtime.liveness import catalogue_answers
from sda_platform.runtime.processes import free_port
from sda_platform_tests.support import injections
from sda_platform_tests.support.catalogue_endpoint import ENDPOINT_TIMEOUT_S, Endpoint, endpoint
from sda_platform_tests.support.certificates import make_certificates
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import small_catalogue

_SETS = 3


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    small_catalogue(tmp_path, [5, 11, 25544])
    return tmp_path


def test_no_acknowledged_put_is_lost_by_kill_9_at_any_point__WL3_WL8_WL9(home: Path) -> None:
    every = ["serving.gathered", "landing.data_written", "landing.sealed", "serving.sealed", "serving.shown"]
    points = sampled(every, "landing.data_written", "landing.sealed", "serving.shown")
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
            assert running.process.wait(ENDPOINT_TIMEOUT_S) == -signal.SIGKILL
            assert point in injections.hits(running.injection_file)
    with endpoint(home) as running:
        second = CliRunner().invoke(main, ["--home", str(home), "catalog", "serve", "--port", str(free_port(0))])
        assert second.exit_code == 1 and "is served already at http://127.0.0.1" in second.output
        assert "3 objects, up to date" in CliRunner().invoke(main, ["--home", str(home), "status"]).output
        assert all(running.served(number) for number in acknowledged)
        sealed = {point: running.served(80_000 + number) is not None for number, point in enumerate(points)}
        assert sealed == {point: every.index(point) >= every.index("landing.sealed") for point in points}, (
            "what was sealed is served, though it was not acknowledged"
        )
        assert [each["NORAD_CAT_ID"] for each in running.client.get("/objects?id_max=30000").json()] == [5, 11, 25544]


def test_beyond_loopback_it_speaks_tls_and_readers_log_in__44(home: Path) -> None:
    make_certificates(home)
    certificate, key = home / "right.crt", home / "right.key"
    key.chmod(0o600)
    tls = {"SDA_SERVING_CERTIFICATE": str(certificate), "SDA_SERVING_KEY": str(key)}
    with endpoint(home, {**tls, "SDA_SERVING_HOST": "0.0.0.0"}) as running:
        assert running.client.get("/objects/5").status_code == 401, "no clients are declared: none may read"
        plain = str(running.client.base_url).replace("https", "http")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{plain}/health")
        status = CliRunner().invoke(main, ["--home", str(home), "status"]).output
        assert "catalogue at https://0.0.0.0" in status and "3 objects, up to date" in status
        assert catalogue_answers(home)(5.0)
    for file, mode, reason in (
        (certificate, 0o600, "SDA_SERVING_CERTIFICATE and SDA_SERVING_KEY cannot be used"),
        (key, 0o644, f"SDA_SERVING_KEY: others may use {key}"),
    ):
        file.chmod(mode)
        wrong = CliRunner().invoke(
            main, ["--home", str(home), "catalog", "serve"], env={**tls, "SDA_SERVING_KEY": str(file)}
        )
        assert wrong.exit_code == 1 and reason in wrong.output.replace("\n", " ")


def test_an_open_stream_of_events_does_not_hold_up_the_end__44_7(home: Path) -> None:
    review(lake_at(home / "lake", reads_unverified=False), ELEMENT_SETS)
    client = EventClient()
    with endpoint(home) as running:
        watching = threading.Thread(target=client.read, args=(running,))
        watching.start()
        assert client.is_open.wait(ENDPOINT_TIMEOUT_S)
        running.process.terminate()
        assert running.process.wait(ENDPOINT_TIMEOUT_S) in (0, -signal.SIGTERM), (
            "an open stream does not hold up the end"
        )
        watching.join(ENDPOINT_TIMEOUT_S)
    assert client.received == [f"element_sets:1:{row}" for row in range(_SETS)]


class EventClient:
    """Reads the stream of events from its begin to its end."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.is_open = threading.Event()

    def read(self, running: Endpoint) -> None:
        """Read until the endpoint ends the stream."""
        with running.client.stream("GET", "/events?since=first", headers={"Accept": "text/event-stream"}) as answer:
            for line in answer.iter_lines():
                if line.startswith('data: {"id"'):
                    self.received.append(json.loads(line.removeprefix("data: "))["id"])
                if len(self.received) == _SETS:
                    self.is_open.set()
