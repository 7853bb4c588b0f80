"""A home that containers work on, what was landed there, and what the oracle of the fault campaign has against it."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import dagster as dg

from sda_platform.clock import MissionClock
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.lake.lake import Lake, without_session
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.platform import standing_clock, work_left
from sda_platform_tests.campaign.world import Delivery, World
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
    def address_of_postgres(self) -> str:
        """Return the address of the container of Postgres."""

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
        lake = self.lake
        with self.instance as instance:
            eventually(lambda: not oracle.at_rest(instance, self._landing), START_S)
            return [
                *oracle.identity(lake, self.world.written),
                *oracle.content(lake, self.world.written),
                *oracle.log(lake),
                *oracle.files(lake),
                *oracle.deliveries(lake, self.subscriber),
                *oracle.acknowledged(lake, self._landing),
                *oracle.at_rest(instance, self._landing),
            ]

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


def own(directory: Path) -> None:
    """Give a directory, with all in it, to the user of the platform's containers."""
    for path in (directory, *directory.rglob("*")):
        os.chown(path, _SDA, _SDA, follow_symlinks=False)
