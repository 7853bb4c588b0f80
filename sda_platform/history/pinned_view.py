"""SQL over one version vector, in this process: DuckDB reads the data files that Delta's log names, without a JVM.

Files of this machine DuckDB reads itself. Of other tables it gets the rows through Arrow, which takes two to four times
as long.

The rows of some tables stay as they were written. Of these, the rows up to the pinned commit are selected from the
newest version: compaction and VACUUM do not matter. A table whose rows are replaced is read as its old version.
"""

import re
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sda_platform.history.errors import QueryRefused
from sda_platform.history.pinned_files import PinnedFiles, Projection, pinned_files
from sda_platform.history.pruning import Predicate
from sda_platform.history.query_conditions import necessary_conditions
from sda_platform.history.query_text import parsed_query, refuse_files
from sda_platform.history.query_views import SCHEMAS, QueryView, views_in
from sda_platform.history.version_vector import VersionVector
from sda_platform.lake.correction_log import INSERT, CorrectionLogModel
from sda_platform.lake.lake import Lake
from sda_platform.lake.object_store import is_object_store
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.lake.version_leases import VersionLeases

BATCH_ROWS = 8_192
_OPTIONS = "allow_empty = true, union_by_name = true, hive_partitioning = false, can_have_nan = true"
"""Columns by name, since files of one table have not the same. The bounds of floating-point columns leave NaN out."""


_NOW = ("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp", "current_localtimestamp")
_TODAY = ("today", "current_date")
"""Functions of the present. They give timestamps without a zone, as the views have them, of which all are UTC."""


@dataclass(frozen=True)
class Limits:
    """What one query may use."""

    memory_mb: int = 1_024
    threads: int = 2
    timeout_s: float = 600.0


class PinnedView:
    """The tables of ``vector`` as SQL views, in schema ``active`` the rows of correction logs that hold, and the views
    of `query_views`.

    A table is opened when a query names it, and only the files that the query's conditions keep are looked at. A query
    reads; it can change neither files nor this view's settings. `now()` and its like are the mission time.
    """

    def __init__(
        self,
        lake: Lake,
        tables: Mapping[str, Table],
        vector: VersionVector,
        projection: Projection = "snapshot_time",
        limits: Limits | None = None,
    ) -> None:
        self.vector = vector
        self._now_ns = lake.clock.now_ns() if vector.now_ns is None else vector.now_ns
        self._lake = lake
        self._tables = tables
        self._projection = projection
        self._limits = limits or Limits()
        self._files: dict[str, PinnedFiles] = {}
        self._conditions: dict[str, Predicate | None] = {}
        self._whole: set[str] = set()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        directories = [] if is_object_store(self._lake.uri) else [self._lake.uri]
        return _connect(self._limits, directories, self._now_ns)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Return the result of ``sql`` as a whole; raises as `batches`."""
        begun_s = time.monotonic()
        with self._leased(sql):
            named = self._open(sql)
            with self._running(begun_s):
                return self._result(sql, parameters, named).to_arrow_table()

    def batches(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the result of ``sql`` in batches, at least one; what is in memory does not depend on its size.

        Raises QueryRefused for what is not one SELECT of known tables or passes a limit, VersionExpired for a table
        whose pinned version is gone.
        """
        with self.reading(sql, parameters) as reader:
            yield _no_rows(reader.schema)
            yield from reader

    @contextmanager
    def reading(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[pa.RecordBatchReader]:
        """Give the result of ``sql`` to be read once, while the context is open; raises as `batches`."""
        begun_s = time.monotonic()
        with self._leased(sql):
            named = self._open(sql)
            with self._running(begun_s):
                yield self._result(sql, parameters, named).to_arrow_reader(BATCH_ROWS)

    def register(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Let queries read ``rows`` under ``name``; a reader can be read by one query."""
        self._connection.register(name, rows)

    def _result(self, sql: str, parameters: Sequence[Any], named: Sequence[str]) -> duckdb.DuckDBPyRelation:
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryRefused("a query is one SELECT statement; nothing can be changed here")
        parsed = parsed_query(self._connection, sql)
        refuse_files(parsed)
        necessary = necessary_conditions(parsed, self._tables)
        views = self._views(sql)
        whole = {table.name for view in views for table in view.tables}
        for name in named:
            self._show(name, None if name in whole else necessary.get(name))
        for view in views:
            self._connection.execute(
                f'CREATE OR REPLACE VIEW {view.schema}."{view.name}" AS {view.in_duckdb(self._now_ns)}'
            )
        try:
            return self._connection.sql(sql, params=list(parameters))
        except duckdb.CatalogException:
            if missing := sorted((_words(sql) & self._tables.keys()) - self._files.keys()):
                has = ", ".join(sorted(self.vector.snapshots))
                raise QueryRefused(
                    f"{', '.join(missing)} is not part of {self.vector.moment}, which has {has}"
                ) from None
            raise

    def _leased(self, sql: str) -> AbstractContextManager[object]:
        """A lease on the old versions that a query reads: what can be removed are files of replaced rows only."""
        old = [
            snapshot
            for name, snapshot in self.vector.snapshots.items()
            if name not in self.vector.kept
            and self._tables[name].replaces_rows
            and name in self._named(sql)
            and snapshot.version < self._lake.log(self._tables[name]).version()
        ]
        return VersionLeases(self._lake.uri).held(old, "query") if old else nullcontext()

    def _open(self, sql: str) -> Sequence[str]:
        """Open the tables that ``sql`` names beside each other and the start of DuckDB, and return their names."""
        named = sorted(self._named(sql))
        # A view names columns that came later than the moment, where they are null.
        whole = {table.name for view in self._views(sql) for table in view.tables} - self._whole
        self._whole |= whole
        for name in whole & self._files.keys():
            del self._files[name]
            self._conditions.pop(name, None)
        if missing := [name for name in named if name not in self._files]:
            with ThreadPoolExecutor(len(missing)) as pool:
                opened = pool.map(self._opened, missing)
                _ = self._connection
                self._files.update(zip(missing, opened, strict=True))
        return named

    def _views(self, sql: str) -> list[QueryView]:
        return views_in(_words(sql), self.vector.snapshots)

    def _named(self, sql: str) -> set[str]:
        """Return the tables that a query names, or reads through a view."""
        read = {table.name for view in self._views(sql) for table in view.tables}
        return (_words(sql) | read) & self.vector.snapshots.keys()

    def _opened(self, name: str) -> PinnedFiles:
        log, snapshot = self._lake.log(self._tables[name]), self.vector.snapshots[name]
        projection = "current" if name in self._whole else self._projection
        return pinned_files(log, snapshot, projection, self.vector.kept.get(name))

    def _show(self, name: str, condition: Predicate | None) -> None:
        """Let the views of a table read the files that may hold rows for which ``condition`` is true."""
        if name in self._conditions and condition == self._conditions[name]:
            return
        files = self._files[name]
        if (paths := files.paths(condition)) is None:
            self._connection.register(f"rows_of_{name}", files.dataset(condition))
            rows = f"FROM rows_of_{name}"
        else:
            self._connection.register(f"columns_of_{name}", files.no_rows)
            rows = f"FROM read_parquet({_literals(paths)}, {_OPTIONS}) UNION ALL BY NAME FROM columns_of_{name}"
        selected = ", ".join(f'"{each}"' for each in files.columns)
        where = f" WHERE {COMMIT_SEQUENCE} <= {files.upto}" if files.upto is not None else ""
        self._connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {selected} FROM ({rows}){where}')
        if name not in self._conditions and issubclass(self._tables[name].model, CorrectionLogModel):
            key = self._tables[name].key[0]
            self._connection.execute(
                f'CREATE OR REPLACE VIEW active."{name}" AS SELECT * FROM (SELECT * FROM main."{name}" QUALIFY '
                f"row_number() OVER (PARTITION BY {key} ORDER BY sequence DESC, op DESC) = 1) WHERE op = '{INSERT}'"
            )
        self._conditions[name] = condition

    @contextmanager
    def _running(self, begun_s: float) -> Iterator[None]:
        """Refuse what DuckDB refuses, and stop it at the limit of time of a query that began at ``begun_s``."""
        try:
            with self._interrupted_at(begun_s + self._limits.timeout_s):
                yield
        except (duckdb.Error, OSError) as error:
            raise self._refusal(error) from None

    def _refusal(self, error: duckdb.Error | OSError) -> Exception:
        """What DuckDB refuses while its rows are read, Arrow passes on as OSError with DuckDB's own text."""
        if isinstance(error, duckdb.InterruptException) or str(error).startswith("INTERRUPT Error"):
            return self._too_long()
        if isinstance(error, duckdb.OutOfMemoryException) or str(error).startswith("Out of Memory Error"):
            return QueryRefused(f"the query needs more than {self._limits.memory_mb} MB; select less")
        return QueryRefused(str(error)) if isinstance(error, duckdb.Error) else error

    @contextmanager
    def _interrupted_at(self, limit_s: float) -> Iterator[None]:
        connection = self._connection
        if (left_s := limit_s - time.monotonic()) <= 0:
            raise self._too_long()
        timer = threading.Timer(left_s, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # a thread that still held the connection at the end of the process would abort it

    def _too_long(self) -> QueryRefused:
        return QueryRefused(f"the query took longer than {self._limits.timeout_s:g} s and was stopped")


def _words(sql: str) -> set[str]:
    """Return the words of a query in lower case, as names of tables are: SQL does not distinguish cases."""
    return set(re.findall(r"\w+", sql.lower()))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _connect(limits: Limits, directories: Sequence[str], now_ns: int) -> duckdb.DuckDBPyConnection:
    """A connection that can read the files below ``directories``, its own temporary ones, and no other."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "python_enable_replacements": "false",
        "memory_limit": f"{limits.memory_mb}MB",
        "threads": str(limits.threads),
        # Made by the first query that needs it, and removed with the connection. Not the default: `.tmp` where the
        # process was started, which it shares with every other query there.
        "temp_directory": str(Path(tempfile.gettempdir(), f"sda-query-{uuid.uuid4()}")),
    }
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute(
        f"SET allowed_directories = {_literals(directories)}; SET enable_external_access = false; "
        "SET parquet_metadata_cache = true; "
        + "".join(f"CREATE SCHEMA {schema}; " for schema in SCHEMAS)
        + "SET lock_configuration = true"
    )
    now, today = f"make_timestamp({now_ns // 1000})", f"make_timestamp({now_ns // 1000})::DATE"
    for names, value in ((_NOW, now), (_TODAY, today)):
        for name in names:
            connection.execute(f"CREATE MACRO {name}() AS {value}")
    connection.execute(
        f"CREATE MACRO age(since) AS system.main.age({today}::TIMESTAMP, since::TIMESTAMP), "
        "(till, since) AS system.main.age(till, since)"
    )
    return connection


def _literals(texts: Sequence[str]) -> str:
    """A list of texts in SQL."""
    quoted = ("'" + text.replace("'", "''") + "'" for text in texts)
    return f"[{', '.join(quoted)}]"
