"""Two sites on one object store, each a container: the standby takes over when the other dies, and when it is cut off.

The store and etcd are processes of this machine, the subscriber is a container of Postgres.
"""

import csv
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sda_platform.clock import MissionClock
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.formats.fleet import protected_fleet
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.lander import Lander
from sda_platform_tests.campaign import oracle
from sda_platform_tests.containers.engine import ROOT, build_platform, docker, docker_daemon, inspected, make_base
from sda_platform_tests.containers.landed import PASSWORD, START_S, own
from sda_platform_tests.support.etcd_server import etcd_binary, etcd_server
from sda_platform_tests.support.object_store_server import BUCKET, object_store
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.segments import START_NS, catalogue_of

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(etcd_binary() is None, reason="no etcd is installed"),
]
_TRUTH = Path(__file__).parents[1] / "data/screening/fleet_events_24h_5km_2024-11-01.csv"
_NETWORK, _IMAGE = "sda-test-sites", "sda-platform:s3"
_LAKE, _LANDING = f"s3://{BUCKET}/lake", f"s3://{BUCKET}/landing"
_UP = "the platform is up"
_AT_WORK = ("dagster-daemon", "run_workers", "watchdog")
"""In the commands of processes that a standby does not have."""
_LONGEST_TAKEOVER_S = 60.0


class Shared:
    """What both sites reach: lake, etcd and subscriber."""

    def __init__(self, work: Path, environment: dict[str, str], address_of_postgres: str) -> None:
        self.environment, self._work = environment, work
        self.subscriber = PostgresSubscriber(f"postgresql://sda@{address_of_postgres}/subscriber?sslmode=disable")
        self.lake = Lake(_LAKE, MissionClock.starting_at(START_NS), without_session)

    def delivered(self) -> set[str]:
        """The alerts that the subscriber holds."""
        return {entry.alert_id for entry in self.subscriber.held()}

    def land(self, name: str, objects: set[int]) -> None:
        """Land the element sets of ``objects``."""
        path = self._work / f"{name}.csv"
        path.write_bytes(catalogue_of(objects))
        assert Lander(_LANDING, self.lake.clock).land(path).records == len(objects)

    def await_alerts(self, before: set[str], site: "Site") -> set[str]:
        """Return the alerts once there are more than ``before``."""
        assert eventually(lambda: self.delivered() > before, START_S, 1.0), site.output[-4000:]
        return self.delivered()

    def problems(self) -> list[str]:
        """What was lost or doubled."""
        return oracle.lines({"log": oracle.log(self.lake), "deliveries": oracle.deliveries(self.lake, self.subscriber)})


class Site:
    """A container that runs `sda up` on the shared lake, with a home of its own."""

    def __init__(self, home: Path, shared: Shared) -> None:
        self.name, self.container = home.name, f"{_NETWORK}-{home.name}"
        home.mkdir()
        shared.lake.clock.save(home)
        own(home)
        variables = [part for name, value in shared.environment.items() for part in ("--env", f"{name}={value}")]
        docker(
            "run", "--detach", "--init", "--name", self.container, "--network", _NETWORK, *variables,
            "--env", f"SDA_SITE={self.name}", "--env", f"PGPASSWORD={PASSWORD}", "--volume", f"{home}:/data", _IMAGE,
        )  # fmt: skip

    @property
    def output(self) -> str:
        """What it has printed since its last start, as one line."""
        since = inspected(self.container)["State"]["StartedAt"]
        return re.sub(r"\s+", " ", docker("logs", "--since", since, self.container, check=False))

    def is_up(self, times: int = 1) -> bool:
        """Whether its platform has started ``times`` times."""
        return self.output.count(_UP) >= times

    def stands_by(self, other: str, times: int = 1) -> bool:
        """Whether it has found the lease with ``other`` so often, and its engine is warm."""
        *earlier, since = self.output.split(f"is held by site {other}")
        return len(earlier) >= times and "engine: warm" in since

    def processes(self) -> str:
        """The commands of its processes."""
        return docker("top", self.container, "-eo", "pid,args")


def _remove() -> None:
    """Remove both sites, their server and their network."""
    docker("rm", "--force", *(f"{_NETWORK}-{each}" for each in ("north", "south", "postgres")), check=False)
    docker("network", "rm", _NETWORK, check=False)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    with ExitStack() as ending:
        ending.enter_context(docker_daemon(tmp_path))
        make_base(tmp_path)
        build_platform(_IMAGE, "--build-arg", "JARS=--s3")
        _remove()  # of a run that was killed
        ending.callback(_remove)
        docker("network", "create", _NETWORK)
        (configured,) = json.loads(docker("network", "inspect", _NETWORK))[0]["IPAM"]["Config"]
        gateway = configured["Gateway"]
        store = ending.enter_context(object_store(tmp_path / "store", host=gateway))
        etcd = ending.enter_context(etcd_server(tmp_path, gateway))
        for name, value in {**store.environment, "PGPASSWORD": PASSWORD}.items():
            monkeypatch.setenv(name, value)
        postgres = f"{_NETWORK}-postgres"
        owner = {"POSTGRES_USER": "sda", "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": "dagster"}
        docker(
            "run", "--detach", "--name", postgres, "--network", _NETWORK, "--network-alias", "postgres",
            *(part for name, value in owner.items() for part in ("--env", f"{name}={value}")),
            "--volume", f"{ROOT / 'deploy/subscriber.sql'}:/docker-entrypoint-initdb.d/subscriber.sql:ro",
            "sda-test-postgres",
        )  # fmt: skip
        environment = {
            **store.environment,
            "SDA_LAKE": _LAKE,
            "SDA_LANDING": _LANDING,
            "SDA_ETCD": json.dumps([etcd]),
            "SDA_SUBSCRIBER": "postgresql://sda@postgres/subscriber?sslmode=disable",
            "SDA_WEBSERVER_HOST": "127.0.0.1",
            "SDA_DRIVER_MEMORY": "2g",
            "SDA_SERVING": "false",
            "SDA_SCREENING_HORIZON_H": "24",
            "SDA_ALERT_YELLOW_PC": "1e-7",
            "SDA_FUSION_REFRESH": "false",
            "SDA_TASKING": "false",
        }
        yield Shared(tmp_path, environment, inspected(postgres)["NetworkSettings"]["Networks"][_NETWORK]["IPAddress"])


def test_a_standby_takes_over_from_a_site_that_dies_and_from_one_that_is_cut_off(
    tmp_path: Path, shared: Shared
) -> None:
    with _TRUTH.open() as file:
        met = {int(event[name]) for event in csv.DictReader(file) for name in ("norad_lo", "norad_hi")}
    fleet = {member.norad_id for member in protected_fleet()}
    others = sorted(met - fleet)
    north = Site(tmp_path / "north", shared)
    assert eventually(north.is_up, START_S, 1.0), north.output
    south = Site(tmp_path / "south", shared)
    assert eventually(lambda: south.stands_by("north"), START_S, 1.0), south.output
    shared.land("first", {*fleet, *others[::3]})
    first = shared.await_alerts(set(), north)

    shared.land("second", set(others[1::3]))
    began_s = time.monotonic()
    docker("kill", north.container)
    assert eventually(south.is_up, START_S, 0.25), south.output
    _judge("dead", began_s)
    second = shared.await_alerts(first, south)

    docker("start", north.container)
    assert eventually(lambda: north.stands_by("south"), START_S, 1.0), north.output
    shared.land("third", set(others[2::3]))
    began_s = time.monotonic()
    docker("network", "disconnect", _NETWORK, south.container)
    assert eventually(north.is_up, START_S, 0.25), north.output
    _judge("cut off", began_s)
    shared.await_alerts(second, north)
    assert eventually(lambda: "this site has lost the lake's lease" in south.output, START_S, 1.0), south.output
    assert not [each for each in _AT_WORK if each in south.processes()]

    docker("network", "connect", _NETWORK, south.container)
    assert eventually(lambda: south.stands_by("north", times=2), START_S, 1.0), south.output
    docker("stop", "--time", "120", north.container)
    assert inspected(north.container)["State"]["ExitCode"] == 0
    assert eventually(lambda: south.is_up(times=2), START_S, 1.0), south.output
    assert shared.problems() == []


def _judge(what: str, began_s: float) -> None:
    took_s = time.monotonic() - began_s
    print(f"the other site is {what}: the standby works {took_s:.1f} s later")  # noqa: T201
    assert took_s < _LONGEST_TAKEOVER_S
