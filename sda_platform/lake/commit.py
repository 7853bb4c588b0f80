"""Commits: the only module that writes tables.

Each write is one Delta commit with the plan's identity (``txnAppId``, ``txnVersion``) and manifest
(``userMetadata``). Delta skips a repeated identity *silently*. So after every write, also one that failed, the
transaction is read back from the log and its nonce is compared: this alone proves that *our* rows were committed.
Delta syncs no file, so the commit's files are synced here before the commit is reported.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sda_platform import failpoints
from sda_platform.lake.arrow_frames import frame_of
from sda_platform.lake.errors import CommitConflict, InvariantError, MissingLineage, SchemaMismatch
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import CHANGED_ROWS, CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.properties import table_properties
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

Mode = Literal["append", "overwrite"]

DATA_SOURCE = "org.apache.spark.sql.delta.sda.DeltaCommits"
"""The format of frames that are committed: Delta's write, which does not look up the log (`DeltaCommits.scala`)."""


@dataclass(frozen=True)
class WrittenRows:
    """Rows that data files of the table have already, for the engine to add to the log."""

    columns: DataFrame
    """A frame of the table's columns, without rows."""
    files: str
    """As `data_files.write` returns them."""


class CommitEngine(Protocol):
    """Prepares to write rows as a plan's commit; the result writes them under a manifest.

    ``rows`` are a frame of the engine's own kind or `WrittenRows`, each row with its ``commit_sequence``.
    """

    def __call__(
        self, log: TableLog, plan: Plan, rows: Any, mode: Mode, where: str | None = None, /
    ) -> Callable[[CommitManifest], None]:
        """``where``: an overwrite replaces the rows for which this SQL is true; without it, all rows."""


@dataclass(frozen=True)
class CommitReceipt:
    """Proof, read back from the log, that a plan's rows landed."""

    plan: Plan
    commit: Commit

    @property
    def rows_written(self) -> int:
        """Rows that the commit added or replaced."""
        return self.commit.rows_written


def new_nonce() -> str:
    """A random value that identifies one attempt of a commit."""
    return str(uuid.uuid4())


def stamped(plan: Plan, rows: Any) -> Any:
    """``rows``, Arrow's or a frame of Spark, each with the sequence of the plan's commit.

    In Arrow rows the sequence is data. In a frame it is a constant of the code that the engine generates: with each
    sequence, that code is new and is compiled again.
    """
    if isinstance(rows, pa.Table):
        content = rows.select(plan.table.content_schema.names)
        return content.append_column(COMMIT_SEQUENCE, pa.array(np.full(rows.num_rows, plan.sequence, np.int64)))
    return rows.withColumn(COMMIT_SEQUENCE, F.lit(plan.sequence).cast("long"))


def require_lineage(plan: Plan, *, is_required: bool) -> None:
    """Raise MissingLineage where the commit of ``plan`` would not name its lineage."""
    missing = plan.manifest("").missing_lineage() if is_required else []
    if missing:
        what = f"{plan.table.name}: commit {plan.sequence} would name no {' and no '.join(missing)}"
        raise MissingLineage(f"{what}: write from a run of the platform")


def append(
    log: TableLog,
    plan: Plan,
    rows: Any,
    *,
    is_stamped: bool = False,
    engine: CommitEngine | None = None,
    nonce: str | None = None,
    counts: Mapping[str, int] | None = None,
    watermarks: Mapping[str, int] | None = None,
) -> CommitReceipt:
    """Append ``rows`` as the plan's commit; the same commit adds columns that the table lacks.

    ``is_stamped``: they went through `stamped` already. ``engine`` is Spark by default; ``nonce`` is drawn by default.
    Raises CommitConflict when another writer took the sequence, SchemaMismatch when the columns are not the table's.
    """
    manifest = plan.manifest(nonce or new_nonce(), counts, watermarks)
    write = (engine or with_spark)(log, plan, rows if is_stamped else stamped(plan, rows), "append")
    return settle(log, plan, manifest, partial(write, manifest))


def overwrite(
    log: TableLog,
    plan: Plan,
    rows: Any,
    *,
    changed: int,
    where: str | None = None,
    engine: CommitEngine | None = None,
    nonce: str | None = None,
    counts: Mapping[str, int] | None = None,
) -> CommitReceipt:
    """Write ``rows`` in the place of the table's rows for which the SQL ``where`` is true, as the plan's commit.

    Without ``where`` they are the whole new content. Each row has a ``commit_sequence``: the plan's own in ``changed``
    of them, which the manifest counts, and the one that it had before in the others. Raises as `append` does.
    """
    manifest = plan.manifest(nonce or new_nonce(), {**(counts or {}), CHANGED_ROWS: changed})
    write = (engine or with_spark)(log, plan, rows, "overwrite", where)
    return settle(log, plan, manifest, partial(write, manifest))


def with_spark(
    log: TableLog, plan: Plan, rows: DataFrame | WrittenRows, mode: Mode, where: str | None = None, /
) -> Callable[[CommitManifest], None]:
    """Prepare Spark's write of ``rows``. Raises SchemaMismatch.

    Transaction id and manifest are options of this one write. In the session's configuration they would be those of
    whichever statement set them last: a statement outlives its client, and commits with what it then finds there.
    """
    adds_columns = _adds_columns(log, plan)
    frame, files = (rows.columns, rows.files) if isinstance(rows, WrittenRows) else (rows, None)
    declared = _as_declared(plan.table, frame, is_described=plan.base_version < 0 or adds_columns)

    def write(manifest: CommitManifest) -> None:
        writer = declared.write.format(DATA_SOURCE).mode(mode)
        writer = writer.option("txnAppId", plan.table.app_id).option("txnVersion", plan.sequence)
        writer = writer.option("userMetadata", manifest.to_json()).option("mergeSchema", adds_columns)
        writer = writer if where is None else writer.option("replaceWhere", where)
        writer = writer if files is None else writer.option("writtenFiles", files)
        writer.options(**(table_properties(plan.table) if plan.base_version < 0 else {})).save(log.uri)

    return write


def copy(session: SparkSession, target: TableLog, rows: pa.Table) -> None:
    """Begin a shadow table with these rows of another, each with the sequence that wrote it there."""
    content = frame_of(session, rows, target.table.schema)
    content.write.format("delta").options(**table_properties(target.table)).save(target.uri)


def settle(log: TableLog, plan: Plan, manifest: CommitManifest, write: Callable[[], None]) -> CommitReceipt:
    """Run ``write`` and decide from the log, not from its outcome, whether the plan's rows landed.

    An engine that lost its client may still be at work, and commit after this has read the log in vain. That is safe:
    the next plan has the same sequence and another nonce. Of the two commits Delta takes one, and the log shows which.
    A receipt means that the rows are on disk.
    """
    failure: Exception | None = None
    failpoints.hit("commit.planned", plan.table.name)
    try:
        write()
    except Exception as error:  # the outcome of a failed commit is only in the log
        failure = error
    failpoints.hit("commit.sent", plan.table.name)
    landed = log.find(plan.sequence)
    if landed is not None and landed.manifest.nonce == manifest.nonce:
        failpoints.hit("commit.landed", plan.table.name)
        # What others committed in between (OPTIMIZE) is beneath ours.
        log.make_durable(plan.base_version + 1, landed.version)
        failpoints.hit("commit.synced", plan.table.name)
        return CommitReceipt(plan, landed)
    if landed is not None:
        raise CommitConflict(
            f"{plan.table.name}: run {landed.manifest.run_id} committed sequence {plan.sequence} first; plan again"
        ) from failure
    if failure is not None:
        raise failure
    raise InvariantError(
        f"{plan.table.name}: the engine reported success for sequence {plan.sequence}, but the log does not have it"
    )


def _adds_columns(log: TableLog, plan: Plan) -> bool:
    """Return whether the commit must add columns to the stored table. Raises SchemaMismatch where old rows would break
    it.
    """
    absent = log.absent_columns(plan.base_version)
    required = [column.name for column in absent if not column.nullable]
    if required:
        raise SchemaMismatch(
            f"{log.table.name}: its rows so far have no {', '.join(required)}, which must not be null; "
            "only columns that may be null can be added to a table"
        )
    return bool(absent)


def _as_declared(table: Table, rows: DataFrame, *, is_described: bool) -> DataFrame:
    """``rows`` in the columns of ``table``, with their descriptions where the commit gives them to the stored table."""
    table.check_schema(rows.schema)
    if not is_described:
        return rows.select(*(column.name for column in table.columns))
    return rows.select(*[F.col(c.name).alias(c.name, metadata={"comment": c.description}) for c in table.columns])
