"""Dagster's SQLite storage without a disk sync for each event.

Dagster opens a connection for every event, commits and closes it. With SQLite's defaults, the commit syncs, and closing
the last connection writes the whole log back and syncs twice more. On a busy disk that took 11 ms an event, and takes
3 ms here: a commit does not wait for the disk, and one more connection stays open.

After a power loss the databases are sound, but the last moments of the history may be missing. They hold no progress:
that is in the logs of the tables.

Source: https://www.sqlite.org/pragma.html#pragma_synchronous, https://www.sqlite.org/wal.html.
"""

import sqlite3
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import event
from sqlalchemy.engine import Engine

_MOST_OPEN = 8
_WITHOUT_SYNC = "PRAGMA synchronous=NORMAL"


class SqliteStorage(DagsterSqliteStorage):
    """The storage that the home's ``dagster.yaml`` names; ``base_dir`` is the directory of the databases."""

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "SqliteStorage":
        """Make it, and set up every connection to a database below its directory from now on."""
        _opened_below(config_value["base_dir"])
        return cls.from_local(inst_data=inst_data, **config_value)


class _KeptOpen:
    """A connection to each of the databases used last; as long as one is open, closing another writes nothing back."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: OrderedDict[str, sqlite3.Connection] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, connection: Any) -> None:
        """Set up a new connection, and keep one more of its database."""
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        if not Path(path).is_relative_to(self._directory):
            return
        connection.execute(_WITHOUT_SYNC)
        with self._lock:
            kept = self._open.pop(path, None) or sqlite3.connect(path, check_same_thread=False)
            self._open[path] = kept
            with suppress(sqlite3.Error):  # such as a database that is being created: the next connection tries again
                kept.execute("SELECT count(*) FROM sqlite_master").fetchall()  # joins those that use the log
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1].close()


_DIRECTORIES: dict[str, _KeptOpen] = {}


def _opened_below(directory: str) -> None:
    if directory in _DIRECTORIES:
        return
    kept = _DIRECTORIES[directory] = _KeptOpen(Path(directory).absolute())

    def opened(connection: Any, _record: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            kept.use(connection)

    event.listen(Engine, "connect", opened)
