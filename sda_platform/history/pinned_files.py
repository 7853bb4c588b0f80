"""The files of one table at one snapshot, which `pinned_view` and `pinned_session` read.

The rows of some tables stay as they were written. Of these, the rows up to the pinned commit are selected from the
newest version: compaction and VACUUM do not matter. A table whose rows are replaced is read as its old version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from sda_platform.history.errors import VersionExpired
from sda_platform.history.pruning import Condition, Predicate, all_of
from sda_platform.history.table_files import TableFiles
from sda_platform.history.version_vector import KeptTable
from sda_platform.lake import delta_log
from sda_platform.lake.errors import VersionGone
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.read_errors import gone
from sda_platform.lake.storage import arrow_directory
from sda_platform.lake.table import COMMIT_SEQUENCE

Projection = Literal["snapshot_time", "current"]
"""The columns that a table had then, or those that it is declared with now; a column that came later is null."""


@dataclass(frozen=True)
class PinnedFiles:
    """``columns`` to select, and the last commit whose rows count (``upto``; None: all); files of a version, or copies.

    ``schema``: that of the rows, where it is not the stored one.
    """

    log: TableLog
    source: TableFiles | ds.Dataset
    columns: Sequence[str]
    upto: int | None = None
    schema: pa.Schema | None = None

    def dataset(self, condition: Predicate | None = None) -> ds.Dataset:
        """Return the rows of the files that may hold a row that counts and for which ``condition`` is true."""
        found = self.source.dataset(self._pinned(condition)) if isinstance(self.source, TableFiles) else self.source
        return found if self.schema is None else found.replace_schema(self.schema)

    def paths(self, condition: Predicate | None = None) -> list[str] | None:
        """List the same files by path, for DuckDB to read together with `no_rows`; None where it cannot."""
        return self.source.paths(self._pinned(condition)) if isinstance(self.source, TableFiles) else None

    def _pinned(self, condition: Predicate | None) -> Predicate:
        """Files of commits after the pinned one are passed over."""
        pinned = [] if self.upto is None else [Condition(COMMIT_SEQUENCE, "<=", self.upto)]
        return all_of(*pinned, *([] if condition is None else [condition]))

    @property
    def no_rows(self) -> pa.Table:
        """A table with the columns of the rows: a file that was written before a column came does not have it."""
        return (self.source.schema if self.schema is None else self.schema).empty_table()


def pinned_files(
    log: TableLog, snapshot: TableSnapshot, projection: Projection = "snapshot_time", kept: KeptTable | None = None
) -> PinnedFiles:
    """Find the files of a table at ``snapshot``; ``kept`` is what a tag keeps of it.

    Raises VersionExpired where the version, or the schema that it had, is gone.
    """
    declared = log.table.arrow_schema
    if snapshot.sequence == 0:
        return PinnedFiles(log, ds.dataset(declared.empty_table()), declared.names)
    source, columns, upto = _source(log, snapshot, kept)
    if projection == "current":
        return PinnedFiles(log, source, declared.names, upto, declared)
    return PinnedFiles(log, source, columns or _names_at(log, snapshot), upto)


def _source(
    log: TableLog, snapshot: TableSnapshot, kept: KeptTable | None
) -> tuple[TableFiles | ds.Dataset, Sequence[str], int | None]:
    """Return what to read, its columns where they are known, and the last commit whose rows count."""
    if log.table.replaces_rows:
        if kept is not None:
            copies = _copies(kept.files) if kept.rows is None else ds.dataset(kept.rows)
            return copies, kept.columns, None
        then = _old_version(log, snapshot)
        return TableFiles(log, then), _names(then), None
    newest = log.open()
    if newest is None:
        raise gone(log.table.name, snapshot.version)
    files = TableFiles(log, newest)
    if kept is not None:
        return files, kept.columns, snapshot.sequence
    return files, _names(newest) if newest.version() == snapshot.version else [], snapshot.sequence


def _copies(files: Sequence[str]) -> ds.Dataset:
    """Return the copies of a tag, which are in one directory."""
    if not files:
        return ds.dataset([])
    directory = files[0].rpartition("/")[0]
    return ds.dataset([file.rpartition("/")[2] for file in files], filesystem=arrow_directory(directory))


def is_readable(log: TableLog, snapshot: TableSnapshot) -> bool:
    """Return whether the rows of a table at ``snapshot`` can still be read as they were."""
    try:
        return not (log.table.replaces_rows and snapshot.sequence) or bool(_old_version(log, snapshot))
    except VersionExpired:
        return False


def _old_version(log: TableLog, snapshot: TableSnapshot) -> DeltaTable:
    then = _opened(log, snapshot)
    if not _all_exist(log, then):
        raise _expired(log, snapshot, "data files of it were removed")
    return then


def _names_at(log: TableLog, snapshot: TableSnapshot) -> Sequence[str]:
    return log.kept.columns_at(snapshot.version) or _names(_opened(log, snapshot))


def _names(delta: DeltaTable) -> list[str]:
    return [field.name for field in delta.schema().fields]


def _opened(log: TableLog, snapshot: TableSnapshot) -> DeltaTable:
    try:
        delta = log.open(snapshot.version)
    except VersionGone:
        delta = None
    if delta is None:
        raise _expired(log, snapshot, "its log was cut")
    return delta


def _all_exist(log: TableLog, delta: DeltaTable) -> bool:
    return all(file.exists() for file in delta_log.data_files(log.uri, delta))


def _expired(log: TableLog, snapshot: TableSnapshot, reason: str) -> VersionExpired:
    """Return the error, with the oldest commit of the platform after the snapshot that can still be read."""
    if not log.table.replaces_rows:
        reason += "; its rows can be read with the columns of today (--columns current)"
    for commit in log.commits(None)[::-1]:
        if commit.version <= snapshot.version:
            continue
        try:
            delta = log.open(commit.version)
        except VersionGone:
            continue
        if not log.table.replaces_rows or (delta is not None and _all_exist(log, delta)):
            return VersionExpired(
                log.table.name, f"version {snapshot.version}", reason, commit.version, commit.timestamp_ms
            )
    return VersionExpired(log.table.name, f"version {snapshot.version}", reason)
