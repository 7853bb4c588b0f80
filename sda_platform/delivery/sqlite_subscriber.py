"""The default subscriber: one SQLite file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sda_platform.delivery.sql_subscriber import SCHEMA, SqlSubscriber, Transaction
from sda_platform.delivery.subscriber import SubscriberUnavailable, key_digest

_LOCK_WAIT_S = 30


class SqliteSubscriber(SqlSubscriber):
    """The SQLite file at ``path``; made when the first batch arrives."""

    _mark_columns: ClassVar[str] = "count(*), digest_sum(alert_id, sequence, op)"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"sqlite:{path.name}"

    def _exists(self) -> bool:
        return self.path.exists()

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        try:
            with closing(self._connect()) as database, database:
                database.execute("BEGIN IMMEDIATE")
                yield _SqliteTransaction(database)
        except sqlite3.OperationalError as error:  # locked for too long, a full or read-only disk
            raise SubscriberUnavailable(f"{self.name}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=_LOCK_WAIT_S, isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        for statement in SCHEMA:
            database.execute(statement)
        database.create_aggregate("digest_sum", 3, _DigestSum)  # type: ignore[arg-type]
        return database


class _SqliteTransaction:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def run(self, statement: str, **values: Any) -> Sequence[Sequence[Any]]:
        return self._database.execute(statement, values).fetchall()


class _DigestSum:
    """SQL aggregate; SQLite's integers have 64 bits, so the sum is returned as text."""

    def __init__(self) -> None:
        self._sum = 0

    def step(self, alert_id: str, sequence: int, op: str) -> None:
        self._sum += key_digest(alert_id, sequence, op)

    def finalize(self) -> str:
        return str(self._sum)
