"""The lake as an asset uses it: plan what is new, read it, commit what follows.

An asset's body is these verbs in this order. The class joins the pieces of the kernel (`planning`, `log`,
`commit`) for one place, one clock and one run; it decides nothing itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.lake import commit, compilation, data_files, delta_checkpoints, delta_log, merging
from sda_platform.lake.admission import admit, admitted
from sda_platform.lake.arrow_frames import frame_of
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.commit_spans import narrowed
from sda_platform.lake.compilation import COMPILED, INTERPRETED
from sda_platform.lake.fencing import with_token
from sda_platform.lake.gate import Readable, readable_of, refuse_red
from sda_platform.lake.local_copies import LocalCopies
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.lake.lost_tables import require_new, require_no_lost_commit, shown_by_consumers
from sda_platform.lake.manifest import NO_RUN, CommitManifest, SegmentRef, Settings
from sda_platform.lake.planning import Plan, plan_segments, plan_windows
from sda_platform.lake.replacement import replaced_where, with_changes
from sda_platform.lake.staging import Staging
from sda_platform.lake.storage import location
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.lake.verdicts import Verdicts

# From this size on, files are the faster way to the engine, and into the table (`benchmarks/ingest.py`).
_STAGED_FROM_BYTES = 4 * 2**20
# Up to this many rows, a second task costs more than it saves.
_ONE_FILE_ROWS = 10_000


def without_session() -> SparkSession:
    """For those who only read logs: asking for a session is then a mistake."""
    raise RuntimeError("this process reads logs only and has no Spark session")


class Lake:
    """The tables below ``uri``, seen from one run."""

    # The engine that writes, and the nonces of its attempts; both can be replaced together.
    engine: commit.CommitEngine = staticmethod(commit.with_spark)
    new_nonce: Callable[[], str] = staticmethod(commit.new_nonce)
    merge: merging.Merge = staticmethod(merging.in_own_process)
    # The token of the lease under which this run writes; see `fencing`.
    fencing_token: int | None = None
    # What started the run, and who: `CommitManifest.origin`.
    origin: Mapping[str, str] | None = None
    # Only for assets that run without their checks, in tests and simulations.
    reads_unverified: bool = False
    # Only where a test writes without a run.
    requires_lineage: bool = True

    def __init__(
        self,
        uri: str,
        clock: MissionClock,
        session: Callable[[], SparkSession],
        run_id: str = NO_RUN,
        logs: dict[str, TableLog] | None = None,
        copies: LocalCopies | None = None,
    ) -> None:
        """``logs``: those that other lakes of the same run use, by table, with the versions that they keep.

        ``copies``: the run's copies of data files.
        """
        self.uri = uri
        self.clock = clock
        self.run_id = run_id
        self._session = session
        self._staging = Staging(uri)
        self._logs = {} if logs is None else logs
        self._copies = copies
        self.verdicts = Verdicts(uri)

    @property
    def session(self) -> SparkSession:
        """The pool's Spark session; the first use attaches to the engine."""
        return self._session()

    def log(self, table: Table) -> TableLog:
        """Return the table's log, which keeps the versions that it opened last."""
        known = self._logs.get(table.name)
        if known is None or known.table is not table:
            known = self._logs[table.name] = TableLog(table, f"{self.uri}/{table.name}", self._copies)
        return known

    def head(self, table: Table) -> Head:
        """Return the newest state of the table; it is synced, so decisions that are based on it survive a power loss.

        A run may have been killed between a commit and its sync. Then that commit, and commits of other tools since the
        commit before, are synced here. This precedes any reader, and the archiving of their input.
        """
        log = self.log(table)
        head = log.head()
        if head.version >= 0:
            log.make_durable(log.first_unproven(head), head.version)
        return head

    def plan(self, table: Table, *, settings: Settings | None = None) -> Plan:
        """Plan to consume the new commits of the tables that ``table`` consumes; those that it reads are pinned.

        Of both only what was verified is read; see `readable`. ``settings`` are those that the rows depend on, by the
        name of their resource in the definitions. Raises TableIsRed where nothing is left to consume but commits behind
        a finding.
        """
        head = self.head(table)
        previous = head.commit.manifest if head.commit else None
        for source in table.consumed:
            for window in previous.windows if previous else ():
                if window.table == source.name:
                    self.log(source).confirm(window)
        inputs = {source.name: self.readable(source, previous) for source in table.inputs}
        plan = plan_windows(
            table,
            head,
            [(source, inputs[source.name].head) for source in table.consumed],
            observed=[(source, inputs[source.name].head) for source in table.reads],
            now_ns=self.clock.now_ns(),
            run_id=self.run_id,
            settings=settings,
        )
        if plan.is_empty:
            refuse_red(table, [inputs[source.name] for source in table.consumed])
        return self._planned(plan)

    def readable(self, source: Table, previous: CommitManifest | None = None) -> Readable:
        """Up to where ``source`` may be read: its verified commits, and what a commit ``previous`` had read already."""
        head = self.head(source)
        if self.reads_unverified:
            return Readable(source, head, head)
        return readable_of(self.log(source), self.verdicts.read(self.log(source), head.version), head, previous)

    def plan_landing(
        self, table: Table, head: Head, segments: Sequence[SegmentRef], observed: Sequence[tuple[Table, Head]] = ()
    ) -> Plan:
        """Plan to consume these segments, taken when the table stood at ``head`` and read with those ``observed``."""
        now_ns, run_id = self.clock.now_ns(), self.run_id
        return self._planned(plan_segments(table, head, segments, now_ns=now_ns, run_id=run_id, observed=observed))

    def _planned(self, plan: Plan) -> Plan:
        """``plan``, before anything of it is carried out; the failpoint is only hit by one with work.

        Raises TableLost where it would create a table that another one has consumed before, and StaleToken where the
        table's lease has gone to another holder. Raises InvariantError where the table's last commit was lost.
        """
        plan = with_token(replace(plan, origin=self.origin), self.fencing_token)
        if plan.is_empty:
            return plan
        require_no_lost_commit(self.log(plan.table), plan.base_version + 1)
        if plan.base_version < 0:
            log = self.log(plan.table)
            lost = shown_by_consumers(plan.table, self._stored_logs(plan.table)) or self.verdicts.shows_lost(log)
            require_new(log, lost)
        failpoints.hit("lake.planned", plan.table.name)
        return plan

    def _stored_logs(self, table: Table) -> Iterator[TableLog]:
        """The logs of all other tables in the lake, found by their directories; only the head of each may be read."""
        root = location(self.uri)
        for directory in root.iterdir() if root.exists() else ():
            if directory.name != table.name and delta_log.log_directory(str(directory)).exists():
                yield TableLog(replace(table, name=directory.name), str(directory))

    def window(self, plan: Plan, source: Table) -> DataFrame:
        """Return the rows of the plan's window on ``source``."""
        return self.snapshot(plan, source).where(F.col(COMMIT_SEQUENCE) > plan.window(source).after_sequence)

    def snapshot(self, plan: Plan, source: Table) -> DataFrame:
        """``source``, an append-only table, as the plan pins it: up to its window's end, or (the target) its own head.

        Rows carry the sequence that wrote them, so this is a filter, which prunes files. Time travel would have Delta
        rebuild an old state of its log for every read, and ends with VACUUM.
        """
        upto = plan.sequence - 1 if source.name == plan.table.name else plan.window(source).upto_sequence
        if upto == 0:
            return self.session.createDataFrame([], source.schema)
        log = self.log(source)
        rows = compilation.choose(self.session, COMPILED).read.format("delta").load(log.uri)
        absent = {c.name: F.lit(None).cast(c.data_type) for c in log.absent_columns()}
        return (rows.withColumns(absent) if absent else rows).where(F.col(COMMIT_SEQUENCE) <= upto)

    def new_rows(
        self, plan: Plan, source: Table, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pa.Table:
        """Rows of the plan's window on ``source`` as Arrow, without the engine; none is read of an empty window."""
        window = plan.window(source)
        span = (window.after_sequence, window.upto_sequence)
        # Where rows stay as they were written, the sequence selects them, whatever became of the version's files.
        version = -1 if window.is_empty else window.upto_version if source.replaces_rows else None
        return self.log(source).rows_of(span, columns, version, where)

    def earlier_rows(
        self, plan: Plan, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pa.Table:
        """Return rows that the plan's own table, an append-only one, held before, as Arrow and without the engine."""
        return self.log(plan.table).rows(columns, narrowed(ds.field(COMMIT_SEQUENCE) < plan.sequence, where))

    def snapshot_rows(
        self, plan: Plan, source: Table, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pa.Table:
        """Return the rows of `snapshot` as Arrow, without the engine; ``where`` prunes files by their statistics."""
        if source.name == plan.table.name:
            return self.earlier_rows(plan, columns, where)
        pinned = ds.field(COMMIT_SEQUENCE) <= plan.window(source).upto_sequence
        return self.log(source).rows(columns, narrowed(pinned, where))

    def current_rows(self, plan: Plan) -> pa.Table:
        """Return the plan's own table, one whose rows are replaced, as the plan pins it; Arrow, without the engine."""
        return self.log(plan.table).rows(version=plan.base_version)

    def written_rows(self, receipt: CommitReceipt, columns: Sequence[str]) -> pa.Table:
        """Some columns of the rows that a commit wrote, as Arrow, without the engine."""
        return self.log(receipt.plan.table).rows_of((receipt.plan.sequence - 1, receipt.plan.sequence), columns)

    def frame(self, table: Table, rows: pa.Table, *, stamped: bool = False) -> DataFrame:
        """Arrow rows in the columns of ``table`` as a DataFrame; with their ``commit_sequence`` only if ``stamped``."""
        fields = [f for f in table.schema.fields if stamped or f.name != COMMIT_SEQUENCE]
        content = rows.select([f.name for f in fields])
        if content.nbytes >= _STAGED_FROM_BYTES:
            session = compilation.choose(self.session, COMPILED)
            return session.read.schema(T.StructType(fields)).parquet(self._staging.put(content))
        session = compilation.choose(self.session, INTERPRETED)
        frame = frame_of(session, content, T.StructType(fields))
        return frame.coalesce(1) if rows.num_rows <= _ONE_FILE_ROWS else frame

    def _committable(self, plan: Plan, rows: pa.Table, nonce: str) -> Any:
        """Arrow rows, each with its sequence, as the engine takes them for a commit: few as a frame, many in files."""
        if not self._goes_by_files(plan, rows):
            return self.frame(plan.table, rows, stamped=True)
        # First, because an engine that does not answer would leave the files of each attempt.
        columns = self.frame(plan.table, plan.table.arrow_schema.empty_table(), stamped=True)
        files = data_files.write(plan.table, self.log(plan.table).uri, rows, nonce)
        failpoints.hit("lake.files_written", plan.table.name)
        return commit.WrittenRows(columns, files)

    def _goes_by_files(self, _plan: Plan, rows: pa.Table) -> bool:
        """Return whether Arrow writes the data files of these rows, and the engine only adds them to the log."""
        return bool(rows.nbytes >= _STAGED_FROM_BYTES)

    def clear_staging(self) -> None:
        """Remove the files that `frame` left for the engine; its frames cannot be read afterwards."""
        self._staging.clear()

    def append(
        self,
        plan: Plan,
        rows: DataFrame | pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        watermarks: Mapping[str, int] | None = None,
    ) -> CommitReceipt:
        """Commit ``rows`` as an append; see `admission` and `lake.commit.append`. Raises MissingLineage."""
        commit.require_lineage(plan, is_required=self.requires_lineage)
        failpoints.hit("lake.transformed", plan.table.name)
        log, nonce, is_arrow = self.log(plan.table), self.new_nonce(), isinstance(rows, pa.Table)
        content = commit.stamped(plan, rows) if is_arrow else rows
        try:
            with admitted(log, content, nonce, counts) as (content, counts):
                receipt = commit.append(
                    log,
                    plan,
                    self._committable(plan, content, nonce) if is_arrow else content,
                    is_stamped=is_arrow,
                    engine=self.engine,
                    nonce=nonce,
                    counts=counts,
                    watermarks=watermarks,
                )
        finally:
            self.clear_staging()
        return self._committed(receipt)

    def replace(
        self,
        plan: Plan,
        changed: pa.Table,
        *,
        removed: pa.Table | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> CommitReceipt:
        """Commit ``changed`` rows (Arrow, one per key) in the place of the rows with their keys.

        Rows with the keys of ``removed`` are left out; an earlier version of the table has them. All other rows stay as
        they were, with the sequence that wrote them; see `lake.commit.overwrite`. Raises MissingLineage.
        """
        commit.require_lineage(plan, is_required=self.requires_lineage)
        table, log, nonce = plan.table, self.log(plan.table), self.new_nonce()
        changed, counts = admit(log, commit.stamped(plan, changed), nonce, counts)
        in_part = table.keeps_other_files and plan.base_version >= 0
        where = replaced_where(table, changed, plan.sequence, removed) if in_part else None
        others = table.arrow_schema.empty_table() if in_part else self.current_rows(plan)
        content = with_changes(table, others, changed, plan.sequence, removed)
        failpoints.hit("lake.transformed", table.name)
        try:
            rows = self.frame(table, content, stamped=True) if in_part else self._committable(plan, content, nonce)
            receipt = commit.overwrite(
                log, plan, rows, changed=changed.num_rows, where=where, engine=self.engine, nonce=nonce, counts=counts
            )
        finally:
            self.clear_staging()
        return self._committed(receipt)

    def _committed(self, receipt: CommitReceipt) -> CommitReceipt:
        table = receipt.plan.table
        failpoints.hit("lake.committed", table.name)
        delta_checkpoints.write_if_due(self.log(table), receipt.commit.version)
        return receipt
