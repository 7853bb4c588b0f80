"""Dagster's Postgres storage, with check evaluations in the order in which they were made.

Services that start at once on an empty database make its tables one after the other. Dagster takes a table that another
process has made meanwhile for made, but not the type of its rows, which Postgres may report instead.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as db
from dagster._serdes import ConfigurableClassData
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.storage import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config, retry_pg_connection_fn
from sqlalchemy.pool import NullPool

from sda_platform.runtime.check_order import OrderedEvaluations

CREATION: Final = 0x5DA
"""The advisory lock under which a process makes what is missing."""
_MAIN_TABLES: Final = ("runs", "event_logs", "jobs")
"""Dagster makes tables where one of these is missing."""
_MADE: Final = db.text(
    "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename IN :names"
).bindparams(db.bindparam("names", _MAIN_TABLES, expanding=True))


class PostgresStorage(DagsterPostgresStorage):
    """The storage that the home's ``dagster.yaml`` names; ``postgres_url`` is the address of the database."""

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None) -> None:
        with _alone_where_tables_are_missing(postgres_url):
            super().__init__(postgres_url, inst_data=inst_data)
            self._event_log_storage = _EventLog(postgres_url, should_autocreate_tables=True)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "PostgresStorage":
        """Make it from the home's ``dagster.yaml``."""
        return cls(pg_url_from_config(config_value), inst_data)


class _EventLog(OrderedEvaluations, PostgresEventLogStorage):
    pass


@contextmanager
def _alone_where_tables_are_missing(postgres_url: str) -> Iterator[None]:
    """Wait until no other process is within the block, unless nothing is left to make in it.

    Raises DagsterPostgresException without a server.
    """
    engine = db.create_engine(postgres_url, poolclass=NullPool)
    with retry_pg_connection_fn(engine.connect) as connection, connection.begin():
        if connection.execute(_MADE).scalar_one() < len(_MAIN_TABLES):
            connection.execute(db.select(db.func.pg_advisory_xact_lock(CREATION)))
        yield
