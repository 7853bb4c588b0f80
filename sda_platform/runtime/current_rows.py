"""Rows of correction logs as the endpoint answers them: those that are current now, or were at a mission time."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow.dataset as ds
from pyspark.sql import types as T

from sda_platform.clock import iso
from sda_platform.history.errors import VersionExpired
from sda_platform.history.version_vector import vector_at
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table
from sda_platform.recovery.verification import current_keys
from sda_platform.serving.answers import an_object
from sda_platform.serving.kept_views import NotKept
from sda_platform.serving.source import Rows
from sda_platform.tasking.tables import PASS_SCHEDULE, SCHEDULED

_LEFT_OUT: Final = {"sequence", "op", COMMIT_SEQUENCE, "state_1", "state_2", "covariance_1", "covariance_2"}
_JSON_TYPES: Final[Mapping[type[T.DataType], str]] = {
    T.StringType: "string", T.LongType: "integer", T.DoubleType: "number", T.BooleanType: "boolean",
}  # fmt: skip


def scheduled_observations(lake: Lake, as_of_ns: int | None = None) -> Rows:
    """Return the scheduled observations of `pass_schedule`, by their beginning; of now, or as of a mission time."""
    rows = current_rows(lake, PASS_SCHEDULE, "start_time_ns", as_of_ns)
    return [row for row in rows if row["status"] == SCHEDULED]


def _answered(table: Table) -> list[Column]:
    return [column for column in table.columns if column.name not in _LEFT_OUT]


def row_schema(table: Table) -> dict[str, Any]:
    """Return the JSON schema of a row as `current_rows` gives it; a number that is none, or infinite, is null."""
    columns = {
        column.name: {"type": [_JSON_TYPES[type(column.data_type)], "null"], "description": column.description}
        for column in _answered(table)
    }
    return an_object(columns, [table.key[0]])


def current_rows(
    lake: Lake, table: Table, by: str, as_of_ns: int | None = None, where: ds.Expression | None = None
) -> Rows:
    """Return the rows of a correction log by a column, current now or at a mission time. Raises NotKept."""
    if lake.log(table).version() < 0:
        return []
    version = None if as_of_ns is None else version_at(lake, table, as_of_ns)
    if version is not None and version < 0:
        return []
    columns = [column.name for column in _answered(table) if column.name != table.key[0]]
    found = current_keys(lake.log(table), columns, version, where).drop_columns("op")
    rows: Rows = found.sort_by([(by, "ascending"), (table.key[0], "ascending")]).to_pylist()
    return rows


def version_at(lake: Lake, table: Table, as_of_ns: int) -> int:
    """Return the newest version at a mission time, -1 before the first."""
    try:
        vector = vector_at(
            lake, {table.name: table}, iso(as_of_ns), lambda commit: commit.manifest.as_of_ns <= as_of_ns
        )
    except VersionExpired as error:
        raise NotKept(str(error)) from error
    return vector.snapshots[table.name].version
