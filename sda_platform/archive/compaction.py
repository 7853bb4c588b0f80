"""Compaction of a table by Delta's OPTIMIZE, one file at a time, which stops for alerts.

Each merged file is committed by itself, so what was merged before a stop stays merged.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from pyspark.errors import PySparkException

from sda_platform.archive.footers import HEALTHY_BYTES
from sda_platform.archive.lifecycle import POLICY
from sda_platform.archive.parquet_profile import writer_settings
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table

_OPTIMIZE = "spark.databricks.delta.optimize"
_TAG = "compaction"
_POLL_S = 0.25


class StoppedForAlerts(Exception):
    """A run that leads to alerts came; the compaction is to be repeated after it."""


def compact(lake: Lake, table: Table, alerts_wait: Callable[[], bool] | None = None) -> int:
    """Compact one table into files of its Parquet profile; returns how many files were replaced.

    The result is on disk on return. Delta's own bounds (1 GiB both) would rewrite healthy files every time, into files
    that are too large. Raises StoppedForAlerts once ``alerts_wait`` returns True; without it nothing stops it.
    """
    session = lake.session
    session.conf.set(f"{_OPTIMIZE}.minFileSize", HEALTHY_BYTES[0])
    session.conf.set(f"{_OPTIMIZE}.maxFileSize", POLICY.target_file_bytes)
    session.conf.set(f"{_OPTIMIZE}.batchSize", POLICY.target_file_bytes)
    session.conf.set(f"{_OPTIMIZE}.maxThreads", 1)
    for name, value in writer_settings(table).items():
        session.conf.set(name, value)
    with _stopping(session, alerts_wait) if alerts_wait else nullcontext():
        metrics = session.sql(f"OPTIMIZE delta.`{lake.log(table).uri}`").collect()[0]["metrics"]
    lake.head(table)
    return int(metrics["numFilesRemoved"])


@contextmanager
def _stopping(session: Any, alerts_wait: Callable[[], bool]) -> Iterator[None]:
    """Interrupt the statement within as soon as alerts wait."""
    ended, stopped = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(_POLL_S):
            if stopped.is_set() or alerts_wait():
                stopped.set()  # and again while the statement plans: an interrupt ends jobs
                session.interruptTag(_TAG)

    watcher = threading.Thread(target=watch, name="alerts-watcher", daemon=True)
    session.addTag(_TAG)
    watcher.start()
    try:
        yield
    except PySparkException as error:
        if stopped.is_set():
            raise StoppedForAlerts from error
        raise
    finally:
        ended.set()
        watcher.join()
        session.removeTag(_TAG)
