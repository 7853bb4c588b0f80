"""Dagster's SQLite storage, with engines and connections that stay, and without a disk sync for each event.

For every event, Dagster makes an engine, compiles its SQL, opens a connection, commits and closes. With SQLite's
defaults, the commit syncs, and closing the last connection writes the whole log back and syncs twice more. Here each
database keeps its engine and its connections, and a commit does not wait for the disk.

After a power loss the databases are sound, but the last moments of the history may be missing. They hold no progress:
that is in the logs of the tables.

Source: https://www.sqlite.org/pragma.html#pragma_synchronous, https://www.sqlite.org/wal.html.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dagster._core.storage import sqlite_storage
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import QueuePool

from sda_platform.runtime.check_order import OrderedEvaluations

MOST_OPEN: Final = 8
"""Databases of runs, and their index, that keep an engine; those used last."""
_FILES: Final = ("", "-wal", "-shm")


class SqliteStorage(sqlite_storage.DagsterSqliteStorage):
    """The storage that the home's ``dagster.yaml`` names; ``base_dir`` is the directory of the databases."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = _Runs.from_local(sqlite_storage._runs_directory(base_dir))
        self._event_log_storage = _EventLog(sqlite_storage._event_logs_directory(base_dir))
        self._schedule_storage = _Schedules.from_local(sqlite_storage._schedule_directory(base_dir))
        # Not the parent's, which makes Dagster's own three.
        DagsterStorage.__init__(self)  # type: ignore[no-untyped-call, arg-type]

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "SqliteStorage":
        """Make it from the home's ``dagster.yaml``."""
        return cls.from_local(inst_data=inst_data, **config_value)


class _OneDatabase:
    """A storage of Dagster's with one database, whose engine stays."""

    _conn_string: str

    @cached_property
    def _engine(self) -> Engine:
        return _engine(self._conn_string)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        self._engine.dispose()


class _Runs(_OneDatabase, SqliteRunStorage):
    pass


class _Schedules(_OneDatabase, SqliteScheduleStorage):
    pass


class _EventLog(OrderedEvaluations, SqliteEventLogStorage):
    """One database for each run, and the index of all."""

    def __init__(self, base_dir: str) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._engines_lock = threading.Lock()
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine_of(shard).begin() as connection:
            yield connection

    def _engine_of(self, shard: str) -> Engine:
        with self._engines_lock:
            engine = self._engines.pop(shard, None)
            if engine is None:
                engine = _engine(self.conn_string_for_shard(shard))
                self._initdb(engine)
            self._engines[shard] = engine
            while len(self._engines) > MOST_OPEN:
                self._engines.popitem(last=False)[1].dispose()
            return engine

    def delete_events(self, run_id: str) -> None:
        """Delete a run's events and the files of its database, which Dagster leaves."""
        super().delete_events(run_id)
        with self._engines_lock:
            engine = self._engines.pop(run_id, None)
            if engine is not None:  # another thread may have used many databases since
                engine.dispose()
            for suffix in _FILES:
                Path(f"{self.path_for_shard(run_id)}{suffix}").unlink(missing_ok=True)

    def dispose(self) -> None:
        super().dispose()
        with self._engines_lock:
            while self._engines:
                self._engines.popitem()[1].dispose()


def _engine(address: str) -> Engine:
    """An engine whose pool keeps up to five connections open, and opens more where more are needed at once."""
    engine = create_engine(
        address,
        poolclass=QueuePool,
        max_overflow=-1,
        connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _without_sync)
    return engine


def _without_sync(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
