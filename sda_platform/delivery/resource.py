"""The subscriber as a Dagster resource."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from sda_platform.delivery.subscriber import SqliteSubscriber, Subscriber


class SubscriberResource(dg.ConfigurableResource[Subscriber]):
    """Where alerts are delivered: the SQLite file at ``path``."""

    path: str = Field(description="The subscriber's SQLite file.")

    def open(self) -> Subscriber:
        """The subscriber; opens nothing until it is used."""
        return SqliteSubscriber(Path(self.path))
