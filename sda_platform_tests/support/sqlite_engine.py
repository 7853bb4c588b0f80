"""SQLite as an engine: one table ordered by its key, in a file with a write-ahead log that is synced."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sda_platform.serving.engine import Engine, Pair, Reader, ascending_only
from sda_platform.serving.errors import DamagedIndex

_BATCH_ROWS = 1_000


class SqliteEngine(Engine):
    """See `serving.engine.Engine`. Pages carry no checksums; each thread reads by a connection of its own."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / "index.sqlite"
        self._own, self._opened = threading.local(), list[sqlite3.Connection]()
        try:
            self._connection().execute(
                "CREATE TABLE IF NOT EXISTS pairs (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            raise DamagedIndex(f"{directory}: SQLite cannot open the index ({error}); rebuild it") from error

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        connection = self._connect()
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM pairs LIMIT 1")  # the state is chosen by the first read
        try:
            yield _Snapshot(connection)
        finally:
            connection.close()

    def get(self, key: bytes) -> bytes | None:
        return _Snapshot(self._connection()).get(key)

    def write(self, puts: Iterable[Pair], deletes: Iterable[bytes] = ()) -> None:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM pairs WHERE key = ?", ((key,) for key in deletes))
            connection.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?)", puts)

    def bulk_load(self, runs: Iterable[Iterable[Pair]]) -> None:
        for run in runs:
            self.write(ascending_only(run))

    def examine(self) -> None:
        """Nothing to do: SQLite finds damage when it reads."""

    def compact(self) -> None:
        self._connection().execute("VACUUM")

    def statistics(self) -> dict[str, int]:
        ((entries,),) = self._connection().execute("SELECT count(*) FROM pairs").fetchall()
        return {"entries": int(entries), "bytes": self._file.stat().st_size}

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = self._connect()
            self._opened.append(found)
        return found

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        return connection


class _Snapshot:
    """One state of the map: a transaction that reads."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, key: bytes) -> bytes | None:
        found = self._connection.execute("SELECT value FROM pairs WHERE key = ?", (key,)).fetchone()
        return None if found is None else bytes(found[0])

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def scan(self, first: bytes, last: bytes, *, descending: bool = False) -> Iterator[Pair]:
        order = "DESC" if descending else "ASC"
        found = self._connection.execute(
            f"SELECT key, value FROM pairs WHERE key BETWEEN ? AND ? ORDER BY key {order}", (first, last)
        )
        while batch := found.fetchmany(_BATCH_ROWS):
            yield from batch
