"""A Postgres database as the subscriber."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection, PreparedStatement

from sda_platform.delivery.sql_subscriber import SqlSubscriber, Transaction, migration
from sda_platform.delivery.subscriber import DIGEST_MASK, SubscriberUnavailable
from sda_platform.lake.retention import RETENTION
from sda_platform.orchestration.postgres_tls import tls_of

_ANSWER_WITHIN_S = 10
_CONTENT = "encode(sha256(convert_to(body, 'UTF8')), 'hex')"
_DIGEST = (
    f"('x' || substr(md5(alert_id || ':0:' || sequence || ':' || op || ':' || {_CONTENT}), 1, 15))::bit(60)::bigint"
)
_TRIGGERS = (
    f"""CREATE OR REPLACE FUNCTION sda_keep_marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP <> 'INSERT' THEN
            UPDATE marks SET count = count - 1, digest = (digest - OLD.digest) & {DIGEST_MASK}
            WHERE leaf = substr(OLD.alert_id, 1, 3);
        END IF;
        IF TG_OP <> 'DELETE' THEN
            INSERT INTO marks AS m VALUES (substr(NEW.alert_id, 1, 3), 1, NEW.digest)
            ON CONFLICT (leaf) DO UPDATE SET count = m.count + 1, digest = (m.digest + NEW.digest) & {DIGEST_MASK};
        END IF;
        RETURN NULL; END $$""",
    """CREATE TRIGGER marks_kept AFTER INSERT OR UPDATE OR DELETE ON alerts
        FOR EACH ROW EXECUTE FUNCTION sda_keep_marks()""",
    # An alert that is altered by hand has no digest, so the mark differs and reconciliation looks at it.
    """CREATE OR REPLACE FUNCTION sda_drop_digest() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (OLD.epoch, OLD.sequence, OLD.op, OLD.body) <> (NEW.epoch, NEW.sequence, NEW.op, NEW.body)
            AND OLD.digest = NEW.digest THEN
            NEW.digest := 0;
        END IF;
        RETURN NEW; END $$""",
    "CREATE TRIGGER digest_dropped BEFORE UPDATE ON alerts FOR EACH ROW EXECUTE FUNCTION sda_drop_digest()",
)
_SCHEMA_LOCK = 0x5DA_A1E27

_PASSWORD = "PGPASSWORD"  # noqa: S105 - the name of libpq's variable


class PostgresSubscriber(SqlSubscriber):
    """The database at ``postgresql://user:password@host:port/database?sslmode=…&sslrootcert=…``.

    Beyond this machine the connection has TLS and the server is verified (``verify-full``), unless ``sslmode`` says
    otherwise: ``disable`` for a network that is trusted, ``verify-ca`` for a certificate of another name. ``require``
    verifies as ``verify-full`` does. ``sslrootcert`` is a file of authorities instead of the system's. Without a
    password in the address, that in the variable ``PGPASSWORD`` is used, unchanged.
    """

    def __init__(self, url: str, receipt_days: int = RETENTION.operations_days) -> None:
        """Open nothing. Raises Misconfigured for another ``sslmode`` or parameter, or an unusable file;
        ValueError for what is no URL."""
        parts = urlsplit(url)
        if "@" in parts.path:
            raise ValueError("a part of the password is where the name of the database is")
        super().__init__(f"postgresql://{parts.hostname}:{parts.port or 5432}{parts.path}", receipt_days)
        self._options: dict[str, Any] = {
            "user": unquote(parts.username or "postgres"),
            "password": unquote(parts.password) if parts.password else os.environ.get(_PASSWORD),
            "host": parts.hostname or "localhost",
            "port": parts.port or 5432,
            "database": parts.path.lstrip("/") or "postgres",
            "timeout": _ANSWER_WITHIN_S,
            "application_name": "sda-platform",
        }
        self._options["ssl_context"] = tls_of(self._options["host"], parts.query, "SDA_SUBSCRIBER")

    def _exists(self) -> bool:
        return True

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Transaction]:
        try:
            connection = Connection(**self._options)
        except (DatabaseError, InterfaceError, OSError) as error:
            raise self._unavailable(error) from error
        try:
            _prepare_schema(connection)
            connection.run("BEGIN" if writes else "BEGIN READ ONLY")
            yield _PostgresTransaction(connection)
            connection.run("COMMIT")
        except (DatabaseError, InterfaceError, OSError) as error:
            raise self._unavailable(error) from error
        finally:
            _close(connection)  # what was not committed is rolled back

    def _unavailable(self, error: Exception) -> SubscriberUnavailable:
        """Whatever the server reports, also a refused login: it is mended there, and alerts wait until then."""
        facts = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
        return SubscriberUnavailable(f"{self.name}: {facts.get('M', error)}")


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
    """Create the tables where they are missing; looking first spares a lock on every batch.

    IF NOT EXISTS does not protect against another sender that creates them at the same time; the lock does. Alerts
    that an earlier version of the platform wrote are taken over.
    """
    if _has_epochs(connection):
        return
    connection.run("BEGIN")
    connection.run(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
    if not _has_epochs(connection):
        for statement in migration(partial(_has, connection), _TRIGGERS, _DIGEST):
            connection.run(statement)
    connection.run("COMMIT")


def _has_epochs(connection: Connection) -> bool:
    """Reads the system catalogue, as `_has` does."""
    query = """SELECT 1 FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid JOIN pg_namespace ON
        relnamespace = pg_namespace.oid WHERE nspname = current_schema() AND relname = 'alerts' AND attname = 'epoch'"""
    return bool(connection.run(query))


def _has(connection: Connection, table: str) -> bool:
    """Reads the system catalogue: to_regclass may return a cached result from before the lock was granted."""
    query = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = :name"
    return bool(connection.run(query, name=table))


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except (DatabaseError, InterfaceError, OSError):
        return  # it is gone already
