"""SQL over one version vector, in this process: DuckDB reads the data files that Delta's log names, without a JVM.

The rows of some tables stay as they were written. Of these, the rows up to the pinned commit are selected from the
newest version: compaction and VACUUM do not matter. A table whose rows are replaced is read as its old version.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from sda_platform.archive.errors import QueryRefused
from sda_platform.archive.pinned_files import PinnedFiles, Projection, pinned_files
from sda_platform.archive.pruning import Predicate
from sda_platform.archive.query_conditions import necessary_conditions
from sda_platform.archive.version_vector import VersionVector
from sda_platform.lake.correction_log import INSERT, CorrectionLogModel
from sda_platform.lake.holds import VersionLeases
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

BATCH_ROWS = 8_192


@dataclass(frozen=True)
class Limits:
    """What one query may use."""

    memory_mb: int = 1_024
    threads: int = 2
    timeout_s: float = 600.0


class PinnedView:
    """The tables of ``vector`` as SQL views, and in schema ``active`` the rows of correction logs that hold.

    A table is opened when a query names it, and only the files that the query's conditions keep are looked at. A query
    reads; it can change neither files nor this view's settings.
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
        self._lake = lake
        self._tables = tables
        self._projection = projection
        self._limits = limits or Limits()
        self._files: dict[str, PinnedFiles] = {}
        self._conditions: dict[str, Predicate | None] = {}

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        # After the tables are opened, not beside it in a thread: that took as long, because each slowed the other down.
        return _connect(self._limits)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """The result of ``sql`` as a whole; raises as `batches`."""
        begun_s = time.monotonic()
        with self._leased(sql):
            named = self._open(sql)
            with self._running(begun_s):
                return self._result(sql, parameters, named).to_arrow_table()

    def batches(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[pa.RecordBatch]:
        """The result of ``sql`` in batches, at least one; what is in memory does not depend on its size.

        Raises QueryRefused for what is not one SELECT of known tables or passes a limit, VersionExpired for a table
        whose pinned version is gone.
        """
        begun_s = time.monotonic()
        with self._leased(sql):
            named = self._open(sql)
            with self._running(begun_s):
                reader = self._result(sql, parameters, named).to_arrow_reader(BATCH_ROWS)
                yield _no_rows(reader.schema)
                yield from reader

    def register(self, name: str, rows: pa.Table) -> None:
        """Let queries read ``rows`` under ``name``."""
        self._connection.register(name, rows)

    def _result(self, sql: str, parameters: Sequence[Any], named: Sequence[str]) -> duckdb.DuckDBPyRelation:
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryRefused("a query is one SELECT statement; nothing can be changed here")
        necessary = necessary_conditions(self._connection, sql, self._tables)
        for name in named:
            self._show(name, necessary.get(name))
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
            and re.search(rf"\b{name}\b", sql)
            and snapshot.version < self._lake.log(self._tables[name]).version()
        ]
        return VersionLeases(self._lake.uri).held(old, "query") if old else nullcontext()

    def _open(self, sql: str) -> Sequence[str]:
        """Open the tables that ``sql`` names, and return their names."""
        named = sorted(_words(sql) & self.vector.snapshots.keys())
        for name in named:
            if name not in self._files:
                log, snapshot = self._lake.log(self._tables[name]), self.vector.snapshots[name]
                self._files[name] = pinned_files(log, snapshot, self._projection, self.vector.kept.get(name))
        return named

    def _show(self, name: str, condition: Predicate | None) -> None:
        """Give the views of a table the files that may hold rows for which ``condition`` is true; make new views."""
        files, is_new = self._files[name], name not in self._conditions
        if is_new or condition != self._conditions[name]:
            self._connection.register(f"files_of_{name}", files.dataset(condition))
            self._conditions[name] = condition
        if is_new:
            self._make_views(name, files)

    def _make_views(self, name: str, files: PinnedFiles) -> None:
        selected = ", ".join(f'"{each}"' for each in files.columns)
        where = f" WHERE {COMMIT_SEQUENCE} <= {files.upto}" if files.upto is not None else ""
        self._connection.execute(f'CREATE VIEW "{name}" AS SELECT {selected} FROM files_of_{name}{where}')
        if issubclass(self._tables[name].model, CorrectionLogModel):
            key = self._tables[name].key[0]
            self._connection.execute(
                f'CREATE VIEW active."{name}" AS SELECT * FROM (SELECT * FROM main."{name}" QUALIFY row_number() OVER '
                f"(PARTITION BY {key} ORDER BY sequence DESC, op DESC) = 1) WHERE op = '{INSERT}'"
            )

    @contextmanager
    def _running(self, begun_s: float) -> Iterator[None]:
        """Refuse what DuckDB refuses, and stop it at the limit of time of a query that began at ``begun_s``."""
        try:
            with self._interrupted_at(begun_s + self._limits.timeout_s):
                yield
        except duckdb.InterruptException:
            raise self._too_long() from None
        except duckdb.OutOfMemoryException:
            raise QueryRefused(f"the query needs more than {self._limits.memory_mb} MB; select less") from None
        except duckdb.Error as error:
            raise QueryRefused(str(error)) from None

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
    return set(re.findall(r"\w+", sql))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _connect(limits: Limits) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "python_enable_replacements": "false",
            "memory_limit": f"{limits.memory_mb}MB",
            "threads": str(limits.threads),
        },
    )
    connection.execute("CREATE SCHEMA active; SET lock_configuration = true")
    return connection
