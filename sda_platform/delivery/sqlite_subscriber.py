"""The default subscriber: one SQLite file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sda_platform.delivery.sql_subscriber import SqlSubscriber, Transaction, migration
from sda_platform.delivery.subscriber import DIGEST_MASK, AlertEntry, SubscriberUnavailable, entry_digest
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.retention import RETENTION

_LOCK_WAIT_S = 30
_SYNCHRONOUS_FULL = 2
_LEAF_OF = "leaf = substr({row}.alert_id, 1, 3)"
_NEW, _OLD = _LEAF_OF.format(row="NEW"), _LEAF_OF.format(row="OLD")
_TRIGGERS = (
    f"""CREATE TRIGGER alert_inserted AFTER INSERT ON alerts BEGIN
        INSERT INTO marks SELECT substr(NEW.alert_id, 1, 3), 0, 0 WHERE NOT EXISTS (SELECT 1 FROM marks WHERE {_NEW});
        UPDATE marks SET count = count + 1, digest = (digest + NEW.digest) & {DIGEST_MASK} WHERE {_NEW}; END""",
    f"""CREATE TRIGGER alert_deleted AFTER DELETE ON alerts BEGIN
        UPDATE marks SET count = count - 1, digest = (digest - OLD.digest) & {DIGEST_MASK} WHERE {_OLD}; END""",
    f"""CREATE TRIGGER alert_updated AFTER UPDATE OF digest ON alerts BEGIN
        UPDATE marks SET digest = (digest - OLD.digest + NEW.digest) & {DIGEST_MASK} WHERE {_NEW}; END""",
    # An alert that is altered by hand has no digest, so the mark differs and reconciliation looks at it.
    """CREATE TRIGGER alert_altered AFTER UPDATE OF epoch, sequence, op, body ON alerts
        WHEN (OLD.epoch, OLD.sequence, OLD.op, OLD.body) <> (NEW.epoch, NEW.sequence, NEW.op, NEW.body)
        AND OLD.digest = NEW.digest BEGIN
        UPDATE alerts SET digest = 0 WHERE alert_id = NEW.alert_id; END""",
)


class SqliteSubscriber(SqlSubscriber):
    """The SQLite file at ``path``; made when the first batch arrives."""

    def __init__(self, path: Path, receipt_days: int = RETENTION.operations_days) -> None:
        super().__init__(f"sqlite:{path.name}", receipt_days)
        self.path = path

    def _exists(self) -> bool:
        return self.path.exists()

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Transaction]:
        try:
            with closing(self._connect()) as database, database:
                database.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield _SqliteTransaction(database)
        except sqlite3.OperationalError as error:  # locked for too long, a full or read-only disk
            raise SubscriberUnavailable(f"{self.name}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=_LOCK_WAIT_S, isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        require_durable(database, self.name)
        if not _has_epochs(database):
            _prepare_schema(database)
        return database


def require_durable(database: sqlite3.Connection, name: str) -> None:
    """Raise Misconfigured unless what is committed through this connection survives a power loss.

    In WAL mode that takes ``synchronous`` FULL: the log is synced with each commit.
    """
    mode, level = (database.execute(f"PRAGMA {pragma}").fetchone()[0] for pragma in ("journal_mode", "synchronous"))
    if mode != "wal" or level < _SYNCHRONOUS_FULL:
        raise Misconfigured(
            f"{name}: SQLite would not keep alerts over a power loss there (journal_mode {mode}, synchronous {level}): "
            "choose a file on a local disk with SDA_SUBSCRIBER"
        )


def _has(database: sqlite3.Connection, table: str) -> bool:
    return bool(database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone())


def _has_epochs(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT 1 FROM pragma_table_info('alerts') WHERE name = 'epoch'").fetchone())


def _prepare_schema(database: sqlite3.Connection) -> None:
    """Create the tables; alerts that an earlier version of the platform wrote are taken over."""
    database.create_function("digest_of", 4, _digest_of, deterministic=True)
    with database:
        database.execute("BEGIN IMMEDIATE")
        if _has_epochs(database):
            return
        for statement in migration(partial(_has, database), _TRIGGERS, "digest_of(alert_id, sequence, op, body)"):
            database.execute(statement)


def _digest_of(alert_id: str, sequence: int, op: str, body: str) -> int:
    return entry_digest(*AlertEntry(alert_id, sequence, op, body).stamp)


class _SqliteTransaction:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def run(self, statement: str, **values: Any) -> Sequence[Sequence[Any]]:
        return self._database.execute(statement, values).fetchall()
