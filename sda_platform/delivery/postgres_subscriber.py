"""A Postgres database as the subscriber."""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection, PreparedStatement

from sda_platform.delivery.sql_subscriber import SCHEMA, SqlSubscriber, Transaction
from sda_platform.delivery.subscriber import SubscriberMisconfigured, SubscriberUnavailable

_ANSWER_WITHIN_S = 10
# SQLSTATE classes that pass by themselves: connection lost, transaction rolled back, resources, operator, system.
_PASSING = ("08", "40", "53", "55", "57", "58")


class PostgresSubscriber(SqlSubscriber):
    """The database at ``postgresql://user:password@host:port/database``; ``?sslmode=require`` asks for TLS."""

    _mark_columns: ClassVar[str] = (
        "count(*), sum(('x' || substr(md5(alert_id || ':' || sequence || ':' || op), 1, 15))::bit(60)::bigint)"
    )

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = f"postgresql://{parts.hostname}:{parts.port or 5432}{parts.path}"
        self._options: dict[str, Any] = {
            "user": unquote(parts.username or "postgres"),
            "password": unquote(parts.password) if parts.password else None,
            "host": parts.hostname or "localhost",
            "port": parts.port or 5432,
            "database": parts.path.lstrip("/") or "postgres",
            "timeout": _ANSWER_WITHIN_S,
            "application_name": "sda-platform",
        }
        if parse_qs(parts.query).get("sslmode", ["disable"])[0] in ("require", "verify-ca", "verify-full"):
            self._options["ssl_context"] = ssl.create_default_context()

    def _exists(self) -> bool:
        return True

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        try:
            connection = Connection(**self._options)
        except (DatabaseError, InterfaceError, OSError) as error:
            raise self._told(error) from error
        try:
            _prepare_schema(connection)
            connection.run("BEGIN")
            yield _PostgresTransaction(connection)
            connection.run("COMMIT")
        except (DatabaseError, InterfaceError, OSError) as error:
            raise self._told(error) from error
        finally:
            _close(connection)  # what was not committed is rolled back

    def _told(self, error: Exception) -> SubscriberMisconfigured | SubscriberUnavailable:
        facts = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        text = f"{self.name}: {facts.get('M', error)}"
        passes = not facts or str(facts.get("C", "")).startswith(_PASSING)
        return SubscriberUnavailable(text) if passes else SubscriberMisconfigured(text)


class _PostgresTransaction:
    """Statements are prepared once: a batch repeats two of them for each entry."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prepared: dict[str, PreparedStatement] = {}

    def run(self, statement: str, **values: Any) -> Sequence[Sequence[Any]]:
        if statement not in self._prepared:
            self._prepared[statement] = self._connection.prepare(statement)
        return list(self._prepared[statement].run(**values) or ())


def _prepare_schema(connection: Connection) -> None:
    """Make the tables where they are missing; looking first spares a notice and a lock on every batch."""
    if connection.run("SELECT to_regclass('batches')") == [[None]]:
        for statement in SCHEMA:
            connection.run(statement)


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except (DatabaseError, InterfaceError, OSError):
        return  # it is gone already
