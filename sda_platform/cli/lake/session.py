"""The Spark session of a command. A module of its own: what a command replays takes seconds to import."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from sda_platform.runtime.platform_home import running_platform
from sda_platform.settings import Settings
from sda_platform.spark.session import IN_PROCESS, attach


@contextmanager
def session_of(settings: Settings) -> Iterator[Callable[[], SparkSession]]:
    """Open a session at first use: on the configured or running engine, or in this process."""
    platform = running_platform(settings.home.absolute())
    remote = settings.spark_remote or (platform["addresses"]["engine"] if platform else IN_PROCESS)
    opened: list[SparkSession] = []

    def session() -> SparkSession:
        if not opened:
            opened.append(attach(remote, f"replay-{uuid.uuid4().hex}", lake_uri=settings.lake_uri))
        return opened[0]

    try:
        yield session
    finally:
        for each in opened:
            each.stop()
