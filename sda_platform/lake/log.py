"""A table's log, read without a JVM through delta-rs: head, checkpoints, rows.

Sensors, checks, planning and the command line read here. Only `lake.commit` writes, through Spark.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from upath import UPath

from sda_platform.lake.checkpoint import GENESIS, Checkpoint
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

# How far back a head is searched: commits that are not ours (OPTIMIZE, VACUUM) lie between two of ours at most.
_SEARCH_DEPTH = 100


@dataclass(frozen=True)
class Commit:
    """One commit of the platform as its table's log holds it."""

    version: int
    timestamp_ms: int
    rows_written: int
    checkpoint: Checkpoint


@dataclass(frozen=True)
class Head:
    """Where a table stands. ``sequence`` 0 and ``version`` -1: nothing was ever committed."""

    version: int = -1
    sequence: int = 0
    commit: Commit | None = None

    @property
    def checkpoint_sha256(self) -> str:
        """What the next checkpoint must name as its predecessor."""
        return self.commit.checkpoint.sha256 if self.commit else GENESIS


class TableLog:
    """The log of one table at ``uri``."""

    def __init__(self, table: Table, uri: str) -> None:
        self.table = table
        self.uri = uri

    def head(self) -> Head:
        """The newest commit of ours. Raises InvariantError when the log lost its checkpoint."""
        delta = self._open()
        if delta is None:
            return Head()
        sequence = delta.transaction_version(self.table.app_id) or 0
        if sequence == 0:
            return Head(version=delta.version())
        newest = next(_commits(delta, self.uri, self.table.app_id, _SEARCH_DEPTH), None)
        if newest is None or newest.checkpoint.sequence != sequence:
            found = newest.checkpoint.sequence if newest else "none"
            raise InvariantError(
                f"{self.table.name}: the log says sequence {sequence} was committed, but its newest checkpoint is "
                f"{found} within {_SEARCH_DEPTH} commits: a commit was lost or emptied"
            )
        return Head(delta.version(), sequence, newest)

    def commits(self, limit: int = _SEARCH_DEPTH) -> list[Commit]:
        """Our commits among the newest ``limit`` of the log, newest first."""
        delta = self._open()
        return [] if delta is None else list(_commits(delta, self.uri, self.table.app_id, limit))

    def find(self, sequence: int) -> Commit | None:
        """The commit with this sequence number, if it is among the newest."""
        return next((c for c in self.commits() if c.checkpoint.sequence == sequence), None)

    def version(self) -> int:
        """The Delta version; -1 where the table does not exist yet."""
        delta = self._open()
        return -1 if delta is None else delta.version()

    def row_count(self) -> int:
        """Rows in the live files, by their statistics (cheap; an oracle reads columns instead)."""
        delta = self._open()
        if delta is None:
            return 0
        counts = pa.table(delta.get_add_actions(flatten=True)).column("num_records")
        return int(pc.sum(counts).as_py() or 0)

    def rows(
        self, columns: Sequence[str] | None = None, where: ds.Expression | None = None, version: int | None = None
    ) -> pa.Table:
        """Rows as Arrow; ``where`` prunes files by their statistics. An absent table has no rows."""
        delta = self._open(version)
        names = list(columns) if columns is not None else [c.name for c in self.table.columns]
        if delta is None or version == -1:
            return self.table.arrow_schema.empty_table().select(names)
        return delta.to_pyarrow_dataset().to_table(columns=names, filter=where)

    def rows_of(
        self, sequences: tuple[int, int], columns: Sequence[str] | None = None, version: int | None = None
    ) -> pa.Table:
        """Rows of the commits ``(after, upto]``."""
        after, upto = sequences
        chosen = (ds.field(COMMIT_SEQUENCE) > after) & (ds.field(COMMIT_SEQUENCE) <= upto)
        return self.rows(columns, chosen, version)

    def _open(self, version: int | None = None) -> DeltaTable | None:
        try:
            return DeltaTable(self.uri, version=version if version != -1 else None)
        except TableNotFoundError:
            return None


def _commits(delta: DeltaTable, uri: str, app_id: str, limit: int) -> Iterator[Commit]:
    """Our commits from the version that ``delta`` has loaded downwards, newest first.

    Read from the log's own files, one per version: delta-rs' ``history`` may return commits that came after the
    loaded version, and label them with its numbers.
    """
    log = UPath(uri) / "_delta_log"
    for version in range(delta.version(), max(-1, delta.version() - limit), -1):
        try:
            info = _commit_info((log / f"{version:020d}.json").read_text())
        except FileNotFoundError:
            return
        except ValueError as error:
            raise InvariantError(f"{log}: version {version} is not readable: {error}") from error
        text = info.get("userMetadata")
        if not text:
            continue
        checkpoint = Checkpoint.from_json(text)
        if f"sda.{checkpoint.table}" != app_id:
            raise InvariantError(f"a commit of {checkpoint.table} lies in the log of {app_id}")
        yield Commit(version, int(info["timestamp"]), _rows_written(info), checkpoint)


def _commit_info(text: str) -> dict[str, Any]:
    """The commitInfo action of a version; empty where it has none (as an emptied file has)."""
    lines = (line for line in text.splitlines() if line.startswith('{"commitInfo"'))
    return next((dict(json.loads(line)["commitInfo"]) for line in lines), {})


def _rows_written(entry: dict[str, Any]) -> int:
    metrics = entry.get("operationMetrics") or {}
    names = (
        ("numTargetRowsInserted", "numTargetRowsUpdated") if entry.get("operation") == "MERGE" else ("numOutputRows",)
    )
    return sum(int(metrics.get(name) or 0) for name in names)
