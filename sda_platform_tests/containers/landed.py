"""A home that containers work on, what was landed there, and what the oracle of the fault campaign has against it."""

import os
import signal
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import dagster as dg

from sda_platform.clock import MissionClock
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.lake.lake import Lake, without_session
from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.jobs import JOBS
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.platform import standing_clock, work_left
from sda_platform_tests.campaign.world import Delivery, World
from sda_platform_tests.containers.engine import inspected
from sda_platform_tests.support.running_platform import eventually

PASSWORD: Final = "p@ss/w:rd#%41?&=+ \"$x'é"
UPLOAD_TOKEN: Final = "token-of-the-uploads-of-the-test"
UPLOAD_PORT: Final = 9101
START_S: Final = 900.0
"""Bound for a start of all services on a machine that is busy with other work."""
_SDA: Final = 10001


class LandedHome(ABC):
    """The home of a platform in containers, a directory of this machine.

    Args:
        home: the directory that is their volume.
    """

    def __init__(self, home: Path) -> None:
        self.home, self.world = home, World(seed=33)
        standing_clock(home)
        own(home)

    @abstractmethod
    def containers(self) -> Mapping[str, str]:
        """Return the id of each container, by service."""

    @abstractmethod
    def await_healthy(self) -> None:
        """Return once every container runs and answers its check."""

    @abstractmethod
    def address_of_postgres(self) -> str:
        """Return the address of the container of Postgres."""

    @abstractmethod
    def address_of_collector(self) -> str:
        """Return the address at which the collector takes files."""

    @abstractmethod
    def logs(self, *services: str) -> str:
        """The last lines of services."""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Put files into the landing zones, as a process of the platform's user."""
        self.world.deliver(deliveries, self._landing)
        own(Path(self._landing))

    def drain(self) -> None:
        """Wait until nothing is left to do."""
        left = [""]

        def is_done() -> bool:
            with self.instance as instance:
                left[0] = work_left(self._landing, instance, self.lake)
            return not left[0]

        assert eventually(is_done, START_S, 1.0), f"{left[0]}\n{self.logs('daemon', 'run-workers')}"

    def problems(self) -> list[str]:
        """What was lost, doubled or left over, in tables, zones and at the subscriber."""
        with self.instance as instance:
            rest = oracle.come_to_rest(instance, self._landing, START_S)
        found = oracle.stored(self.lake, self._landing, self.subscriber, self.world.written)
        return oracle.lines({**found, "O8": rest})

    @contextmanager
    def sound(self) -> Iterator[Self]:
        """Judge it after the block: all services answer, and nothing was lost or doubled."""
        yield self
        self.await_healthy()
        self.drain()
        found = self.problems()
        assert not found, "\n".join(found)

    def take(self, delivery: Delivery) -> None:
        """Have the collector take a file, and enter it into the account."""
        assert self.upload(delivery) == 201
        self.world.written.update(delivery.records())

    def upload(self, delivery: Delivery) -> int:
        """The status with which the collector answers a file."""
        url = f"http://{self.address_of_collector()}:{UPLOAD_PORT}/land/{delivery.feed}?name={delivery.name}"
        return status_of(urllib.request.Request(url, delivery.data, {"Authorization": f"Bearer {UPLOAD_TOKEN}"}))

    def await_run(self) -> None:
        """Return once a run is under way."""
        with self.instance as instance:
            assert eventually(lambda: unfinished_run_of(instance, *JOBS) is not None, START_S, 0.5)

    def kill_each(self) -> None:
        """Kill one container after the other while a run is under way; each is started again."""
        for name in self.containers():
            self.deliver([self.world.new_element_sets()])
            self.await_run()
            container = self.containers()[name]
            earlier = _restarts(container)
            # As a crash: `docker kill` counts as the wish of an operator, after which Docker starts nothing.
            os.kill(inspected(container)["State"]["Pid"], signal.SIGKILL)
            assert eventually(partial(_is_restarted, container, earlier), 120.0), name

    @property
    def lake(self) -> Lake:
        return Lake(str(self.home / "lake"), MissionClock.load(self.home), without_session)

    @property
    def subscriber(self) -> PostgresSubscriber:
        return PostgresSubscriber(f"postgresql://sda@{self.address_of_postgres()}/subscriber?sslmode=disable")

    @property
    def instance(self) -> dg.DagsterInstance:
        """Dagster's records in the Postgres container, to be used as a context manager."""
        os.environ["SDA_DAGSTER_POSTGRES_URL"] = f"postgresql+psycopg2://sda@{self.address_of_postgres()}/dagster"
        return dg.DagsterInstance.from_config(str(self.home / "dagster"))

    @property
    def _landing(self) -> str:
        return str(self.home / "landing")


def status_of(request: urllib.request.Request, **options: Any) -> int:
    """The status with which a server answers."""
    try:
        with urllib.request.urlopen(request, timeout=60, **options) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def _is_restarted(container: str, earlier: int) -> bool:
    return _restarts(container) > earlier


def _restarts(container: str) -> int:
    return int(inspected(container)["RestartCount"])


def own(directory: Path) -> None:
    """Give a directory, with all in it, to the user of the platform's containers."""
    for path in (directory, *directory.rglob("*")):
        os.chown(path, _SDA, _SDA, follow_symlinks=False)
