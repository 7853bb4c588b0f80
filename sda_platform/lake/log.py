"""A table's log, read without a JVM through delta-rs: head, checkpoints, rows.

Sensors, checks, planning and the command line read here. Only `lake.commit` writes, through Spark.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyarrow import fs

from sda_platform.lake import delta_log
from sda_platform.lake.checkpoint import GENESIS, Checkpoint, Recovery, TableWindow
from sda_platform.lake.errors import IllegibleCheckpoint, InvariantError, VersionGone
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table

# How far back a head is searched: commits that are not ours (OPTIMIZE, VACUUM) lie between two of ours at most.
SEARCH_DEPTH = 100
_LIVE_FILES = pa.schema([("path", pa.string()), ("size_bytes", pa.int64()), ("num_records", pa.int64())])
_SMALL_BATCH_ROWS = 1_024
# Spark writes a checksum with each page; without this option Arrow returns a page that differs from it.
_VERIFIED = ds.ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)


@dataclass(frozen=True)
class Commit:
    """One commit of the platform as its table's log holds it."""

    version: int
    timestamp_ms: int
    rows_written: int
    checkpoint: Checkpoint

    @property
    def sequence(self) -> int:
        """Its place among the platform's commits to the table."""
        return self.checkpoint.sequence

    @property
    def checkpoint_sha256(self) -> str:
        """Hash of its checkpoint's text."""
        return self.checkpoint.sha256


@dataclass(frozen=True)
class IllegibleCommit:
    """A commit of the platform whose checkpoint was damaged; its transaction still tells its sequence."""

    version: int
    sequence: int
    checkpoint_sha256: str
    reason: str


@dataclass(frozen=True)
class Head:
    """Where a table stands. ``sequence`` 0 and ``version`` -1: nothing was ever committed.

    ``commit`` is the newest whose checkpoint can be read. Where that is not the newest of all, ``illegible`` is.
    """

    version: int = -1
    sequence: int = 0
    commit: Commit | None = None
    illegible: IllegibleCommit | None = None

    @property
    def checkpoint_sha256(self) -> str:
        """What the next checkpoint must name as its predecessor."""
        newest = self.illegible or self.commit
        return newest.checkpoint_sha256 if newest else GENESIS

    @property
    def commit_version(self) -> int:
        """The Delta version of the platform's newest commit; -1 where there is none."""
        newest = self.illegible or self.commit
        return newest.version if newest else -1

    @property
    def recovery(self) -> Recovery | None:
        """From where the next plan continues, unless from the newest commit."""
        if self.illegible is None:
            return None
        return Recovery(self.commit.sequence if self.commit else 0, self.sequence, self.illegible.reason)


class TableLog:
    """The log of one table at ``uri``."""

    def __init__(self, table: Table, uri: str) -> None:
        self.table = table
        self.uri = uri

    def head(self) -> Head:
        """Where the table stands. A checkpoint that was damaged is skipped to the one before.

        Raises InvariantError when the log lost a commit, or no checkpoint can be read.
        """
        version = self.version()
        if version < 0:
            return Head()
        entries = self.entries_from(version, SEARCH_DEPTH)
        newest = next(entries, None)
        if newest is None or newest.version != version:
            self._require_newest(newest.sequence if newest else 0, version)
        if newest is None:
            return Head(version)
        sequence = newest.sequence
        if isinstance(newest, Commit):
            return Head(version, sequence, newest)
        legible = next((entry for entry in entries if isinstance(entry, Commit)), None)
        if legible is None and version >= SEARCH_DEPTH:
            raise InvariantError(
                f"{self.table.name}: none of the newest {SEARCH_DEPTH} commits has a checkpoint that can be read: "
                "restore the table's log from a backup"
            )
        return Head(version, sequence, legible, newest)

    def _require_newest(self, sequence: int, version: int) -> None:
        """Raise InvariantError unless the table's newest transaction of ours up to ``version`` is ``sequence``.

        Asked where the newest version is not ours: it may be somebody else's, or emptied.
        """
        delta = self._open(version)
        known = delta.transaction_version(self.table.app_id) if delta else None
        if (known or 0) != sequence:
            raise InvariantError(
                f"{self.table.name}: the log says sequence {known} was committed, but its newest checkpoint is "
                f"{sequence or 'none'} within {SEARCH_DEPTH} commits: a commit was lost or emptied"
            )

    def commits(self, limit: int = SEARCH_DEPTH) -> list[Commit]:
        """Our commits among the newest ``limit`` of the log, newest first, without those that cannot be read."""
        return [e for e in self.entries_from(self.version(), limit) if isinstance(e, Commit)]

    def find(self, sequence: int) -> Commit | None:
        """The commit with this sequence number, if it is among the newest and can be read."""
        for entry in self.entries_from(self.version(), SEARCH_DEPTH):
            if entry.sequence <= sequence:
                return entry if isinstance(entry, Commit) and entry.sequence == sequence else None
        return None

    def end_of(self, window: TableWindow) -> Commit | None:
        """The commit at which ``window`` on this table ended; None before the first, or where it cannot be read."""
        entry = next(self.entries_from(window.upto_version, 1), None)
        return entry if isinstance(entry, Commit) else None

    def confirm(self, window: TableWindow) -> None:
        """Raise InvariantError unless the log still holds the commit at which ``window`` on this table ended.

        A commit that was lost and made again has another nonce, hence another hash.
        """
        if window.upto_sha256 is None:
            return
        entry = next(self.entries_from(window.upto_version, 1), None)
        if entry is None or entry.checkpoint_sha256 != window.upto_sha256:
            raise InvariantError(
                f"{self.table.name}: commit {window.upto_sequence} (version {window.upto_version}) is not the one that "
                "was consumed: it was lost, or the table was restored or replaced; what consumed it must be rebuilt"
            )

    def entries_from(self, version: int, limit: int) -> Iterator[Commit | IllegibleCommit]:
        """Our commits from ``version`` downwards, newest first, among ``limit`` versions.

        Read from the log's own files, one per version: delta-rs' ``history`` may return commits that came after the
        loaded version, and label them with its numbers.
        """
        for number in range(version, max(-1, version - limit), -1):
            file = delta_log.commit_file(self.uri, number)
            try:
                entry = commit_in(self.table, number, file.read_text(errors="replace"))
            except FileNotFoundError:
                return
            except ValueError as error:
                raise InvariantError(f"{file.parent}: version {number} is not readable: {error}") from error
            if entry is not None:
                yield entry

    def make_durable(self, first_version: int, last_version: int) -> None:
        """Return once these versions would survive a power loss; see `delta_log.make_durable`."""
        delta_log.make_durable(self.uri, first_version, last_version)

    def version(self) -> int:
        """The Delta version; -1 where the table does not exist yet."""
        return delta_log.newest_version(self.uri)

    def live_files(self) -> pa.Table:
        """The live data files, with ``path``, ``size_bytes`` and, by their statistics, ``num_records``."""
        delta = self._open()
        if delta is None:
            return _LIVE_FILES.empty_table()
        return pa.table(delta.get_add_actions(flatten=True)).select(_LIVE_FILES.names)

    def row_count(self) -> int:
        """Rows in the live files, by their statistics (cheap; an oracle reads columns instead)."""
        return int(pc.sum(self.live_files().column("num_records")).as_py() or 0)

    def rows(
        self, columns: Sequence[str] | None = None, where: ds.Expression | None = None, version: int | None = None
    ) -> pa.Table:
        """Rows as Arrow; ``where`` prunes files by their statistics. An absent table (version -1) has no rows, and a
        column that the table was not yet written with is null.

        Raises VersionGone when a ``version`` is asked for that cannot be read any more.
        """
        names = list(columns) if columns is not None else [c.name for c in self.table.columns]
        delta = None if version == -1 else self._open(version)
        if delta is None:
            return self.table.arrow_schema.empty_table().select(names)
        dataset = self._dataset(delta)
        with self._reading(version):
            found = dataset.to_table(columns=_stored(dataset, names), filter=where, fragment_scan_options=_VERIFIED)
        return self._filled(found, names)

    def rows_of(
        self, sequences: tuple[int, int], columns: Sequence[str] | None = None, version: int | None = None
    ) -> pa.Table:
        """Rows of the commits ``(after, upto]``."""
        return self.rows(columns, _committed_in(sequences), version)

    def some_rows_of(self, sequences: tuple[int, int], count: int) -> pa.Table:
        """At most ``count`` rows of the commits ``(after, upto]``, without reading the others."""
        delta = self._open()
        if delta is None:
            return self.table.arrow_schema.empty_table()
        names = [c.name for c in self.table.columns]
        # Without look-ahead; the default reads sixteen batches of a commit of any size for its first few rows.
        dataset = self._dataset(delta)
        with self._reading():
            found = dataset.head(
                count,
                columns=_stored(dataset, names),
                filter=_committed_in(sequences),
                batch_size=_SMALL_BATCH_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
                fragment_scan_options=_VERIFIED,
            )
        return self._filled(found, names)

    def stored_columns(self) -> frozenset[str]:
        """The names of the stored table's columns; where there is none yet, those that are declared."""
        delta = self._open()
        fields = delta.schema().fields if delta else self.table.columns
        return frozenset(field.name for field in fields)

    def absent_columns(self) -> list[Column]:
        """The declared columns that the stored table does not have yet: an earlier version of the platform wrote it."""
        stored = self.stored_columns()
        return [column for column in self.table.columns if column.name not in stored]

    def _filled(self, found: pa.Table, names: Sequence[str]) -> pa.Table:
        """``found`` with all of ``names``; a column that the table was not yet written with is null."""
        held = set(found.column_names)
        for name in (n for n in names if n not in held):
            found = found.append_column(name, pa.nulls(found.num_rows, self.table.arrow_schema.field(name).type))
        return found.select(list(names))

    def _open(self, version: int | None = None) -> DeltaTable | None:
        try:
            return DeltaTable(self.uri, version=version)
        except TableNotFoundError:
            if version is None:
                return None
            raise self._gone(version) from None

    def _dataset(self, delta: DeltaTable) -> ds.Dataset:
        # Not delta-rs's default, which is written in Python: Arrow's threads call it after the last read too, and a
        # process that is ending just then is aborted ("terminate called without an active exception").
        root, path = fs.FileSystem.from_uri(self.uri)
        return delta.to_pyarrow_dataset(filesystem=fs.SubTreeFileSystem(path, root))

    @contextmanager
    def _reading(self, version: int | None = None) -> Iterator[None]:
        """Raise VersionGone or InvariantError, with the remedy, for what a read of data files reports."""
        try:
            yield
        except FileNotFoundError as error:
            if version is None:
                raise
            raise self._gone(version) from error
        except OSError as error:
            if error.errno is not None:  # the system's, not the content's
                raise
            raise InvariantError(
                f"{self.table.name}: a data file is not as it was written ({error}); `sda verify --deep` names the "
                "file, and docs/exactly-once.md says what to do"
            ) from error

    def _gone(self, version: int) -> VersionGone:
        return VersionGone(
            f"{self.table.name}: version {version} cannot be read any more: VACUUM removed its files, or its log was "
            "cut; only later commits can be replayed"
        )


def _stored(dataset: ds.Dataset, names: Sequence[str]) -> list[str]:
    stored = set(dataset.schema.names)
    return [name for name in names if name in stored]


def commit_in(table: Table, version: int, text: str) -> Commit | IllegibleCommit | None:
    """What a version's file tells of a commit of ours; None where it is another's, or emptied.

    Raises ValueError where a line of it is torn.
    """
    info: dict[str, Any] = {}
    sequence = None
    for kind, action in delta_log.actions(text, "commitInfo", "txn"):
        if kind == "commitInfo":
            info = action
        elif action["appId"] == table.app_id:
            sequence = int(action["version"])
    if sequence is None:
        return None
    told = str(info.get("userMetadata", ""))
    try:
        checkpoint = Checkpoint.from_json(told)
        if checkpoint.sequence != sequence:
            raise IllegibleCheckpoint(f"its checkpoint says sequence {checkpoint.sequence}")
    except IllegibleCheckpoint as error:
        sha256 = hashlib.sha256(told.encode()).hexdigest()
        return IllegibleCommit(version, sequence, sha256, f"commit {sequence} (version {version}): {error}")
    if checkpoint.table != table.name:
        raise InvariantError(f"a commit of {checkpoint.table} lies in the log of {table.name}")
    return Commit(version, int(info["timestamp"]), _rows_written(info), checkpoint)


def _rows_written(entry: dict[str, Any]) -> int:
    metrics = entry.get("operationMetrics") or {}
    names = (
        ("numTargetRowsInserted", "numTargetRowsUpdated") if entry.get("operation") == "MERGE" else ("numOutputRows",)
    )
    return sum(int(metrics.get(name) or 0) for name in names)


def _committed_in(sequences: tuple[int, int]) -> ds.Expression:
    after, upto = sequences
    return (ds.field(COMMIT_SEQUENCE) > after) & (ds.field(COMMIT_SEQUENCE) <= upto)
