"""Dagster's Postgres storage, with check evaluations in the order in which they were made."""

from typing import Any

from dagster._serdes import ConfigurableClassData
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.storage import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config

from sda_platform.runtime.check_order import OrderedEvaluations


class PostgresStorage(DagsterPostgresStorage):
    """The storage that the home's ``dagster.yaml`` names; ``postgres_url`` is the address of the database."""

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(postgres_url, inst_data=inst_data)
        self._event_log_storage = _EventLog(postgres_url, should_autocreate_tables=True)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "PostgresStorage":
        """Make it from the home's ``dagster.yaml``."""
        return cls(pg_url_from_config(config_value), inst_data)


class _EventLog(OrderedEvaluations, PostgresEventLogStorage):
    pass
