"""Two sites share an object store, an etcd and a subscriber: one works, and the other takes over when it is lost."""

import csv
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.clock import MissionClock
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.formats.fleet import protected_fleet
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.lander import Lander
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.campaign import oracle
from sda_platform_tests.support.etcd_server import etcd_binary, etcd_server
from sda_platform_tests.support.object_store_server import BUCKET, object_store
from sda_platform_tests.support.running_platform import RunningPlatform, eventually
from sda_platform_tests.support.segments import START_NS, catalogue_of

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif("SERVICES" not in os.environ, reason="takes minutes; see `make soak SERVICES=1`"),
    pytest.mark.skipif(etcd_binary() is None, reason="no etcd is installed"),
]
TRUTH = Path(__file__).parents[1] / "data/screening/fleet_events_24h_5km_2024-11-01.csv"
LAKE, LANDING = f"s3://{BUCKET}/lake", f"s3://{BUCKET}/landing"
TIMEOUT_S = 600.0


class Site:
    """A site whose platform starts by its own thread: the processes of a platform end with the thread that started
    them."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self.platform: RunningPlatform | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(environment,), daemon=True)
        self._thread.start()

    @property
    def output(self) -> str:
        """What its terminal shows."""
        path = self.home.with_suffix(".out")
        return path.read_text() if path.exists() else ""

    def is_up(self) -> bool:
        return self.platform is not None

    def lose(self) -> None:
        """End all of its processes at once, as a loss of power does."""
        assert self.platform is not None
        self.platform.kill()
        self._is_over.set()
        self._thread.join()

    def _run(self, environment: dict[str, str]) -> None:
        self.platform = RunningPlatform(self.home, START_NS, {**environment, "SDA_SITE": self.home.name})
        self._is_over.wait()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """What the settings of both sites name."""
    try:
        jar_paths(with_s3=True)
    except JarsMissing as missing:
        pytest.skip(str(missing))
    with object_store(tmp_path / "store") as store, etcd_server(tmp_path) as etcd:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield {
            "SDA_LAKE": LAKE,
            "SDA_LANDING": LANDING,
            "SDA_ETCD": json.dumps([etcd]),
            "SDA_SUBSCRIBER": str(tmp_path / "subscriber.sqlite"),
        }


def test_a_standby_takes_over_and_no_alert_is_lost_or_doubled(tmp_path: Path, shared: dict[str, str]) -> None:
    with TRUTH.open() as file:
        met = {int(event[name]) for event in csv.DictReader(file) for name in ("norad_lo", "norad_hi")}
    fleet = {member.norad_id for member in protected_fleet()}
    others = sorted(met - fleet)
    subscriber = SqliteSubscriber(Path(shared["SDA_SUBSCRIBER"]))
    north = Site(tmp_path / "north", shared)
    assert eventually(north.is_up, TIMEOUT_S), north.output
    south = Site(tmp_path / "south", shared)
    assert eventually(lambda: "is held by site north" in south.output, TIMEOUT_S), south.output
    landed(tmp_path, "first", {*fleet, *others[::2]})
    assert eventually(lambda: len(subscriber.held()) > 0, TIMEOUT_S), north.output
    before = {entry.alert_id for entry in subscriber.held()}

    landed(tmp_path, "second", set(others[1::2]))
    began_s = time.monotonic()
    north.lose()
    assert eventually(south.is_up, TIMEOUT_S), south.output
    print(f"the standby works {time.monotonic() - began_s:.1f} s after the loss")  # noqa: T201 - of the drill
    assert south.platform is not None
    platform = south.platform
    assert eventually(lambda: {entry.alert_id for entry in subscriber.held()} > before, TIMEOUT_S), south.output
    print(f"its first alert came {time.monotonic() - began_s:.1f} s after the loss")  # noqa: T201
    assert eventually(platform.is_idle, TIMEOUT_S)

    lake = Lake(LAKE, MissionClock.load(south.home), without_session)
    assert oracle.lines({"log": oracle.log(lake), "deliveries": oracle.deliveries(lake, subscriber)}) == []
    assert platform.interrupt(within_s=60) == 0
    south.lose()


def landed(tmp_path: Path, name: str, objects: set[int]) -> None:
    path = tmp_path / f"{name}.csv"
    path.write_bytes(catalogue_of(objects))
    assert Lander(LANDING, MissionClock.load(tmp_path / "north")).land(path).records == len(objects)
