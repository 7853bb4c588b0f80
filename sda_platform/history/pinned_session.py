"""SQL over one version vector in Spark: every table of the definitions is a view of one session, pinned to its version.

For joins and aggregates that are too large for one process; `PinnedView` needs no engine. Both have the same views.
In Spark the rows of correction logs that hold are ``active_NAME``, since a temporary view is in no schema; the views of
`query_views` likewise.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.pandas.types import to_arrow_schema

from sda_platform.history.errors import QueryRefused
from sda_platform.history.parsed_plan import PHYSICAL, refuse_foreign_parts
from sda_platform.history.pinned_files import Projection, pinned_files
from sda_platform.history.pinned_view import BATCH_ROWS
from sda_platform.history.query_plan import QueryPlan, plan_text, spilled_bytes
from sda_platform.history.query_views import views_in
from sda_platform.history.spark_query_text import at_mission_time, refuse_calls
from sda_platform.history.version_vector import VersionVector
from sda_platform.lake.correction_log import INSERT, CorrectionLogModel
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.lake.version_leases import VersionLeases

ACTIVE = "active_"
_BETWEEN_INTERRUPTIONS_S = 0.5
_SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",  # a query reads the views, and no other file
    "spark.sql.variable.substitute": "false",  # ${env:…} would be the environment of the engine, its token included
    "spark.sql.maxMetadataStringLength": "100000",  # a plan names all its filters
    "spark.sql.debug.maxToStringFields": "100000",
}


@dataclass(frozen=True)
class SqlLimits:
    """What one query may use: bytes of the files that it keeps, rows that it returns, and time, planning included."""

    read_gb: float = 50.0
    rows: int = 1_000_000
    timeout_s: float = 600.0


class PinnedSession:
    """The tables of ``vector`` as views of ``session``; made by `pinned_session`, which leases what they read.

    ``versions``: by table the Delta version whose files are read. Of a table whose rows stay as they were written, that
    is the newest, and the rows up to the vector's commit count. ``plan``: what the last query reads.
    """

    def __init__(
        self,
        session: SparkSession,
        lake: Lake,
        tables: Mapping[str, Table],
        vector: VersionVector,
        versions: Mapping[str, int],
        projection: Projection = "snapshot_time",
        limits: SqlLimits | None = None,
    ) -> None:
        self.vector = vector
        self._now_ns = lake.clock.now_ns() if vector.now_ns is None else vector.now_ns
        self.plan: QueryPlan | None = None
        self.session = session
        self._lake = lake
        self._tables = tables
        self._versions = versions
        self._projection = projection
        self._limits = limits or SqlLimits()
        self._sizes: dict[str, dict[str, int]] = {}
        self._whole: set[str] = set()

    def register(self, *names: str) -> None:
        """Make the views of these tables, or of all tables of the vector; a query makes the ones that it names."""
        for name in names or sorted(self.vector.snapshots):
            if name not in self._sizes:
                self._open(name)

    def sql(self, text: str) -> DataFrame:
        """Return the result of one query, not yet computed; ``plan`` has what it reads.

        Raises QueryRefused for what is no query of known tables, or keeps files of more bytes than the limit;
        VersionExpired for a table whose pinned version is gone.
        """
        refuse_calls(text)
        words = set(re.findall(r"\w+", text.lower()))
        views = views_in(words, self.vector.snapshots)
        read = {table.name for view in views for table in view.tables}
        named = sorted(n for n in self.vector.snapshots if n in words or f"{ACTIVE}{n}" in words or n in read)
        # A view names columns that came later than the moment, where they are null.
        for name in read - self._whole:
            self._sizes.pop(name, None)
        self._whole |= read
        if named:
            self.register(*named)
        for view in views:
            self.session.sql(view.in_spark(self._now_ns)).createOrReplaceTempView(view.name_in_spark)
        with _refusing():
            query = at_mission_time(text.strip().rstrip(";"), self._now_ns)
            rows = self.session.sql(f"SELECT * FROM (\n{query}\n)")
            self.plan = self._planned(rows, named)
        if self.plan.bytes_kept > self._limits.read_gb * 1e9:
            raise QueryRefused(
                f"the query would read {self.plan.bytes_kept / 1e9:,.3f} GB in {self.plan.files_kept:,} files, and may "
                f"read {self._limits.read_gb:g} GB: narrow its time window, or raise the limit"
            )
        return rows

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the result in batches, the first of which is empty; ``plan`` then has what it spilled. Raises as `sql`,
        and QueryRefused for a result that passes a limit.
        """
        with self._timed(), _refusing():
            rows = self.sql(sql).limit(self._limits.rows + 1)
            found = _fetched(rows)
        if self.plan is not None:
            self.plan = replace(self.plan, spill_bytes=spilled_bytes(rows))
        if found.num_rows > self._limits.rows:
            raise QueryRefused(f"the query returns more than {self._limits.rows:,} rows: aggregate, or raise the limit")
        yield pa.RecordBatch.from_pylist([], schema=found.schema)
        yield from found.to_batches(max_chunksize=BATCH_ROWS)

    def _open(self, name: str) -> None:
        table, snapshot, kept = self._tables[name], self.vector.snapshots[name], self.vector.kept.get(name)
        log, version = self._lake.log(table), self._versions.get(name)
        projection = "current" if name in self._whole else self._projection
        files = pinned_files(log, snapshot, projection, kept)
        self._sizes[name] = {}
        if snapshot.sequence == 0:
            rows = self.session.createDataFrame([], table.schema)
        elif kept is not None and table.replaces_rows:
            rows = self.session.read.parquet(*kept.files)
        else:
            rows = self.session.read.format("delta").option("versionAsOf", str(version)).load(log.uri)
            delta = log.open(version)
            if delta is not None:
                found = pa.table(delta.get_add_actions(flatten=True)).select(["path", "size_bytes"])
                paths, sizes = (column.to_pylist() for column in found.columns)
                self._sizes[name] = dict(zip(map(_file_name, paths), sizes, strict=True))
        if files.upto is not None:
            rows = rows.where(F.col(COMMIT_SEQUENCE) <= files.upto)
        stored, types = set(rows.columns), {field.name: field.dataType for field in table.schema}
        chosen = [F.col(n) if n in stored else F.lit(None).cast(types[n]).alias(n) for n in files.columns]
        rows.select(*chosen).createOrReplaceTempView(name)
        if issubclass(table.model, CorrectionLogModel):
            newest = (
                f"SELECT *, row_number() OVER (PARTITION BY {table.key[0]} ORDER BY sequence DESC, op DESC) AS newest "
                f"FROM {name}"
            )
            active = f"SELECT * EXCEPT (newest) FROM ({newest}) WHERE newest = 1 AND op = '{INSERT}'"
            self.session.sql(active).createOrReplaceTempView(f"{ACTIVE}{name}")

    def _planned(self, rows: DataFrame, named: list[str]) -> QueryPlan:
        sizes = {file: size for name in named for file, size in self._sizes[name].items()}
        read = {_file_name(file) for file in rows.inputFiles()}
        plans = plan_text(rows)
        refuse_foreign_parts(plans)
        kept = sum(sizes.get(file, 0) for file in read)
        return QueryPlan(plans.partition(PHYSICAL)[2], len(read), max(len(sizes), len(read)), kept)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Interrupt the session at the limit of time, and again until its query ends: jobs may still begin."""
        stopped, ended = threading.Event(), threading.Event()

        def stop() -> None:
            while not ended.wait(_BETWEEN_INTERRUPTIONS_S if stopped.is_set() else self._limits.timeout_s):
                stopped.set()
                self.session.interruptAll()

        watch = threading.Thread(target=stop, name="sql-timeout", daemon=True)
        watch.start()
        try:
            yield
        except QueryRefused:
            if not stopped.is_set():
                raise
            raise QueryRefused(f"the query took longer than {self._limits.timeout_s:g} s and was stopped") from None
        finally:
            ended.set()
            watch.join()


@contextmanager
def pinned_session(
    session: SparkSession, lake: Lake, tables: Mapping[str, Table], vector: VersionVector, **options: Any
) -> Iterator[PinnedSession]:
    """Open a `PinnedSession` with a lease on all that its views read; options: those of `PinnedSession`.

    A session in this process stays as it is: views and settings are those of a new one beside it. Through Spark
    Connect, ``session`` has to be the caller's own. Raises as `VersionLeases.held`.
    """
    read = {
        name: snapshot if tables[name].replaces_rows else replace(snapshot, version=lake.log(tables[name]).version())
        for name, snapshot in vector.snapshots.items()
        if snapshot.sequence and not (tables[name].replaces_rows and name in vector.kept)
    }
    versions = {name: snapshot.version for name, snapshot in read.items()}
    own = session if isinstance(cast("Any", session), ConnectSession) else session.newSession()
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    with VersionLeases(lake.uri).held(read.values(), "sda lake sql"):
        yield PinnedSession(own, lake, tables, vector, versions, **options)


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise QueryRefused with one line for what the engine reports of a query."""
    try:
        yield
    except Py4JJavaError as error:
        raise QueryRefused(_first_line(error.java_exception.getMessage())) from None
    except PySparkException as error:
        raise QueryRefused(_first_line(str(error))) from None


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _fetched(rows: DataFrame) -> pa.Table:
    """Return the rows as Arrow. A session in this process sends Arrow from a thread that does not end with its job."""
    if isinstance(rows, ConnectDataFrame):
        return rows.toArrow()
    collected, schema = rows.collect(), to_arrow_schema(rows.schema)
    columns = [pa.array([row[n] for row in collected], field.type) for n, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _file_name(path: str) -> str:
    return PurePosixPath(path).name
