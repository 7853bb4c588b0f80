"""A table's log, read without a JVM through delta-rs: head, manifests, rows.

Sensors, checks, planning and the command line read here. Only `lake.commit` writes, through Spark.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from sda_platform.lake import delta_log
from sda_platform.lake.commit_spans import committed_in, files_of
from sda_platform.lake.commit_texts import CommitTexts
from sda_platform.lake.errors import InvariantError, VersionGone
from sda_platform.lake.local_copies import LocalCopies
from sda_platform.lake.log_commits import Commit, Head, commit_in
from sda_platform.lake.manifest import GENESIS, TableWindow
from sda_platform.lake.object_store import delta_options
from sda_platform.lake.read_errors import gone, reading
from sda_platform.lake.storage import arrow_directory
from sda_platform.lake.table import Column, Table

# Default length of a list of commits.
NEWEST_COMMITS = 100
_LIVE_FILES = pa.schema([("path", pa.string()), ("size_bytes", pa.int64()), ("num_records", pa.int64())])
_SMALL_BATCH_ROWS = 1_024
# A run asks for the newest version of a table a dozen times, and for the few at which its plans pinned it.
_KEPT_VERSIONS = 4
# Spark writes a checksum with each page; without this option Arrow returns a page that differs from it.
VERIFIED = ds.ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)


class TableLog:
    """The log of one table at ``uri``; it keeps the versions and the commits that it read last, which do not change."""

    def __init__(self, table: Table, uri: str, copies: LocalCopies | None = None) -> None:
        """``copies``: those of the run's data files, where it keeps any."""
        self.table = table
        self.uri = uri
        self._copies = copies
        self._texts = CommitTexts(uri)
        self.kept = self._texts.kept
        # A version, and the newest commit of the platform that it has.
        self._seen = (-1, 0)
        self._opened = lru_cache(maxsize=_KEPT_VERSIONS)(self._open)
        # Each with its table, so that no other has its id.
        self._datasets: dict[tuple[int, str | None], tuple[DeltaTable, ds.Dataset]] = {}

    def head(self) -> Head:
        """The table's newest state, however many commits of others (OPTIMIZE, VACUUM) came after the platform's last.

        Raises InvariantError when the log lost a commit, UnreadableManifest when the newest manifest is damaged.
        """
        version, newest, is_emptied = self.version(), None, False
        for number, text in self._texts.from_version(version):
            newest = commit_in(self.table, number, text)
            if newest is not None:
                break
            is_emptied = is_emptied or not text.strip()
        if version >= 0 and (newest is None or is_emptied):
            self._require_newest(newest.sequence if newest else 0, version)
        self._seen = max(self._seen, (version, newest.sequence if newest else 0))
        return Head(version, newest.sequence if newest else 0, newest)

    def _require_newest(self, sequence: int, version: int) -> None:
        """Raise InvariantError unless the table's newest transaction of ours up to ``version`` is ``sequence``.

        Delta's own checkpoint keeps the transaction of a commit whose file was emptied or removed.
        """
        delta = self.open(version)
        known = delta.transaction_version(self.table.app_id) if delta else None
        if (known or 0) != sequence:
            raise InvariantError(
                f"{self.table.name}: the log records that sequence {known} was committed, but its newest manifest is "
                f"{sequence or 'none'}: a commit was lost or emptied; restore {self.uri} from a backup"
            )

    def commits(self, limit: int | None = NEWEST_COMMITS, *, after: int = 0) -> list[Commit]:
        """Return the platform's newest commits, newest first: at most ``limit``, of sequences above ``after``.

        Commits of others do not count. Where the log was cut, the list ends there.
        """
        newer = takewhile(lambda commit: commit.sequence > after, self.commits_from(self.version()))
        return list(islice(newer, limit))

    def find(self, sequence: int) -> Commit | None:
        """Return the commit with this sequence number, if the log holds it or it was kept."""
        found = _of_sequence(self.commits(after=sequence - 1), sequence)  # the newest ones stay in the log
        if found is None and (version := self.kept.version_of(sequence)) is not None:
            found = self.commit_at(version)
        return found or _of_sequence(self.commits(None, after=sequence - 1), sequence)

    def end_of(self, window: TableWindow) -> Commit | None:
        """Return the commit at which ``window`` on this table ended; None before the first."""
        return self.commit_at(window.upto_version)

    def commit_at(self, version: int) -> Commit | None:
        """The platform's commit with this Delta version; None where it is another's, or not in the log any more."""
        text = next(self._texts.from_version(version), None)
        return commit_in(self.table, *text) if text else None

    def confirm(self, window: TableWindow) -> None:
        """Raise InvariantError unless the log still holds the commit at which ``window`` on this table ended.

        A commit that was lost and made again has another nonce, hence another hash.
        """
        end = self.end_of(window)
        if (end.manifest_sha256 if end else GENESIS) != window.upto_sha256:
            raise InvariantError(
                f"{self.table.name}: commit {window.upto_sequence} (version {window.upto_version}) is not the one that "
                "was consumed: it was lost, or the table was restored or replaced; what consumed it must be rebuilt"
            )

    def commits_from(self, version: int) -> Iterator[Commit]:
        """The platform's commits from ``version`` downwards, newest first, down to sequence 1 or where the log was cut.

        Each is read on demand. Raises InvariantError, UnreadableManifest for what cannot be read.
        """
        for number, text in self._texts.from_version(version):
            commit = commit_in(self.table, number, text)
            if commit is not None:
                self._seen = max(self._seen, (version, commit.sequence))
                yield commit
                if commit.sequence == 1:
                    return

    def first_unproven(self, head: Head) -> int:
        """Return the oldest version that may be unsynced: the first after the commit before that of ``head``.

        The plan of the newest commit had synced everything up to the commit before. The run that wrote the newest
        commit syncs it together with versions of other tools in between, unless the run was killed first.
        """
        first = max(head.commit_version, 0)
        for number, text in self._texts.from_version(head.commit_version - 1):
            if any(txn["appId"] == self.table.app_id for _, txn in delta_log.actions(text, "txn")):
                break
            first = number
        return first

    def make_durable(self, first_version: int, last_version: int) -> None:
        """Return once these versions would survive a power loss; see `delta_log.make_durable`."""
        delta_log.make_durable(self.uri, first_version, last_version)

    def version(self) -> int:
        """Return the Delta version; -1 where the table does not exist yet."""
        return self._texts.newest_version()

    def properties(self) -> dict[str, str | None]:
        """Return the Delta properties of the stored table."""
        delta = self.open()
        return dict(delta.metadata().configuration) if delta else {}

    def operations(self) -> Iterator[tuple[str, int]]:
        """Operation and time (Unix time, ms) of each version of any writer, newest first."""
        for _, text in self.versions():
            for _, info in delta_log.actions(text, "commitInfo"):
                yield str(info.get("operation", "")), int(info.get("timestamp", 0))

    def versions(self) -> Iterator[tuple[int, str]]:
        """Number and text of each version of any writer, newest first, as far as the log reaches."""
        return self._texts.from_version(self.version())

    def live_files(self) -> pa.Table:
        """Return the live data files, with ``path``, ``size_bytes`` and, by their statistics, ``num_records``."""
        return self.file_bounds().select(_LIVE_FILES.names)

    def file_bounds(self) -> pa.Table:
        """As `live_files`, with the bounds that the log has: ``min.NAME``, ``max.NAME``, ``null_count.NAME``."""
        delta = self.open()
        return _LIVE_FILES.empty_table() if delta is None else pa.table(delta.get_add_actions(flatten=True))

    def row_count(self) -> int:
        """Return rows in the live files, by their statistics (cheap; an oracle reads columns instead)."""
        return int(pc.sum(self.live_files().column("num_records")).as_py() or 0)

    def rows(
        self,
        columns: Sequence[str] | None = None,
        where: ds.Expression | None = None,
        version: int | None = None,
        *,
        in_files: str | None = None,
    ) -> pa.Table:
        """Return rows as Arrow; ``where`` prunes files by their statistics. An absent table (version -1) has no rows,
        and a column that the table was not yet written with is null. ``in_files``: as `dataset` takes it.

        Raises VersionGone if ``version`` cannot be read any more.
        """
        names = list(columns) if columns is not None else [c.name for c in self.table.columns]
        delta = None if version == -1 else self.open(version)
        if delta is None:
            return self.table.arrow_schema.empty_table().select(names)
        dataset = self._near(delta, self.dataset(delta, in_files), where, version)
        scanner = dataset.scanner(_stored(dataset, names), where, fragment_scan_options=VERIFIED)
        with reading(self.table.name, version):
            found = scanner.to_table()
        return self.filled(found, names)

    def rows_of(
        self,
        sequences: tuple[int, int],
        columns: Sequence[str] | None = None,
        version: int | None = None,
        where: ds.Expression | None = None,
    ) -> pa.Table:
        """Return rows of the commits ``(after, upto]``, of those for which ``where`` is true.

        Where rows stay as they were written, any version with these commits has them. If the newest that was seen has,
        this does not look for a newer one.
        """
        chosen = committed_in(sequences)
        chosen = chosen if where is None else chosen & where
        seen, held = self._seen
        is_newest = seen == self._texts.newest_seen
        if version is None and is_newest and not self.table.replaces_rows and sequences[1] <= held:
            with suppress(VersionGone):
                return self.rows(columns, chosen, seen, in_files=files_of(sequences))
        return self.rows(columns, chosen, version, in_files=files_of(sequences))

    def distinct(self, column: str, where: ds.Expression) -> set[Any]:
        """Return the values that a column has in the rows ``where`` selects; a batch of rows is held at a time."""
        delta = self.open()
        if delta is None:
            return set()
        scanner = self.dataset(delta).scanner([column], where, fragment_scan_options=VERIFIED)
        with reading(self.table.name):
            return {value for batch in scanner.to_batches() for value in batch.column(0).unique().to_pylist()}

    def some_rows_of(self, sequences: tuple[int, int], count: int) -> pa.Table:
        """At most ``count`` rows of the commits ``(after, upto]``, without reading the others."""
        delta = self.open()
        if delta is None:
            return self.table.arrow_schema.empty_table()
        names = [c.name for c in self.table.columns]
        # Without look-ahead; the default reads sixteen batches of a commit of any size for its first few rows.
        dataset = self._near(delta, self.dataset(delta, files_of(sequences)), committed_in(sequences))
        with reading(self.table.name):
            found = dataset.head(
                count,
                columns=_stored(dataset, names),
                filter=committed_in(sequences),
                batch_size=_SMALL_BATCH_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
                fragment_scan_options=VERIFIED,
            )
        return self.filled(found, names)

    def stored_columns(self, version: int | None = None) -> frozenset[str]:
        """Return the names of the stored table's columns; where there is none yet (-1), those that are declared."""
        delta = None if version == -1 else self.open(version)
        fields = delta.schema().fields if delta else self.table.columns
        return frozenset(field.name for field in fields)

    def absent_columns(self, version: int | None = None) -> list[Column]:
        """The declared columns that the stored table does not have yet: an earlier version of the platform wrote it."""
        stored = self.stored_columns(version)
        return [column for column in self.table.columns if column.name not in stored]

    def filled(self, found: pa.Table, names: Sequence[str]) -> pa.Table:
        """Return ``found`` with all of ``names``; a column that the table was not yet written with is null."""
        held = set(found.column_names)
        for name in (n for n in names if n not in held):
            found = found.append_column(name, pa.nulls(found.num_rows, self.table.arrow_schema.field(name).type))
        return found.select(list(names))

    def open(self, version: int | None = None) -> DeltaTable | None:
        """The stored table at ``version`` (default: the newest); None where there is none yet. Raises VersionGone."""
        number = self.version() if version is None else version
        return None if version is None and number < 0 else self._opened(number, delta_log.identity(self.uri, number))

    def _open(self, version: int, _of: object) -> DeltaTable:
        try:
            return DeltaTable(self.uri, version=version, storage_options=delta_options(self.uri))
        except TableNotFoundError:
            raise gone(self.table.name, version) from None

    def dataset(self, delta: DeltaTable, where: str | None = None) -> ds.Dataset:
        """Return the rows of an opened table; its statistics decide which files a filter reads.

        ``where``: leave out files that surely hold no row for which this SQL is true. To describe all files of a long
        log to Arrow takes longer than to read one, so the last descriptions are kept.
        """
        kept = self._datasets.get((id(delta), where))
        if kept is None:
            # Not delta-rs's default filesystem, which is written in Python: Arrow's threads call it after the last read
            # too, and a process that is ending just then is aborted ("terminate called without an active exception").
            files = arrow_directory(self.uri)
            kept = delta, delta.to_pyarrow_dataset(filesystem=files, file_pruning_predicate=where)
            for oldest in list(self._datasets)[: 1 - _KEPT_VERSIONS]:
                self._datasets.pop(oldest, None)
            self._datasets[id(delta), where] = kept
        return kept[1]

    def _near(
        self, delta: DeltaTable, dataset: ds.Dataset, where: ds.Expression | None, version: int | None = None
    ) -> ds.Dataset:
        """Return the files of ``dataset`` that ``where`` may select, from the run's copies if it keeps any."""
        if self._copies is None:
            return dataset
        with reading(self.table.name, version):
            return self._copies.near(self.uri, delta, dataset, where)


def _stored(dataset: ds.Dataset, names: Sequence[str]) -> list[str]:
    stored = set(dataset.schema.names)
    return [name for name in names if name in stored]


def _of_sequence(commits: Iterable[Commit], sequence: int) -> Commit | None:
    return next((commit for commit in commits if commit.sequence == sequence), None)
