"""The rows of a table, read from its data files without an engine, through delta-rs or by the log's last texts."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from sda_platform.lake import delta_log
from sda_platform.lake.commit_spans import committed_in, files_of, narrowed
from sda_platform.lake.commit_texts import CommitTexts
from sda_platform.lake.errors import VersionGone
from sda_platform.lake.local_copies import LocalCopies, ReadableFiles
from sda_platform.lake.object_store import delta_options
from sda_platform.lake.read_errors import gone, reading
from sda_platform.lake.recent_files import files_with
from sda_platform.lake.storage import arrow_directory
from sda_platform.lake.table import Column, Table

_LIVE_FILES = pa.schema([("path", pa.string()), ("size_bytes", pa.int64()), ("num_records", pa.int64())])
_SMALL_BATCH_ROWS = 1_024
# A run asks for the newest version of a table a dozen times, and for the few at which its plans pinned it.
_KEPT_VERSIONS = 4
# Spark writes a checksum with each page; without this option Arrow returns a page that differs from it.
VERIFIED = ds.ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)


class TableRows:
    """The rows of one table at ``uri``; it keeps the versions that it opened last, which do not change."""

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

    def version(self) -> int:
        """Return the Delta version; -1 where the table does not exist yet."""
        return self._texts.newest_version()

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
    ) -> pa.Table:
        """Return rows as Arrow; ``where`` prunes files by their statistics. An absent table (version -1) has no rows,
        and a column that the table was not yet written with is null.

        Raises VersionGone if ``version`` cannot be read any more.
        """
        delta = None if version == -1 else self.open(version)
        files = None if delta is None else self._files(delta)
        return self._read(files, columns, where, version)

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
        chosen = narrowed(committed_in(sequences), where)
        seen, held = self._seen
        is_newest = seen == self._texts.newest_seen
        if version is None and is_newest and not self.table.replaces_rows and sequences[1] <= held:
            with suppress(VersionGone):
                return self._read(self._files_of(sequences, seen), columns, chosen, seen)
        return self._read(self._files_of(sequences, version), columns, chosen, version)

    def distinct(self, column: str, where: ds.Expression) -> set[Any]:
        """Return the values that a column has in the rows ``where`` selects; a batch of rows is held at a time."""
        delta = self.open()
        if delta is None:
            return set()
        scanner = self.dataset(delta).scanner([column], where, fragment_scan_options=VERIFIED)
        with reading(self.table.name):
            return {value for batch in scanner.to_batches() for value in batch.column(0).unique().to_pylist()}

    def some_rows_of(
        self,
        sequences: tuple[int, int],
        count: int,
        columns: Sequence[str] | None = None,
        where: ds.Expression | None = None,
    ) -> pa.Table:
        """At most ``count`` rows of the commits ``(after, upto]``, without reading the others."""
        names = self._names(columns)
        if (files := self._files_of(sequences, None)) is None:
            return self.table.arrow_schema.empty_table().select(names)
        chosen = narrowed(committed_in(sequences), where)
        # Without look-ahead; the default reads sixteen batches of a commit of any size for its first few rows.
        with reading(self.table.name):
            dataset = self._near(files, chosen)
            found = dataset.head(
                count,
                columns=stored_in(dataset, names),
                filter=chosen,
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

    def dataset_of(self, sizes: Mapping[str, int]) -> ds.Dataset:
        """Return the rows of some of the table's files, with these sizes; columns that they lack are null."""
        directory, form = arrow_directory(self.uri), ds.ParquetFileFormat()
        files = [form.make_fragment(name, directory, file_size=size) for name, size in sizes.items()]
        return ds.FileSystemDataset(files, self.table.arrow_schema, form, directory)

    def _names(self, columns: Sequence[str] | None) -> Sequence[str]:
        return [column.name for column in self.table.columns] if columns is None else columns

    def _files(self, delta: DeltaTable, where: str | None = None) -> ReadableFiles:
        return ReadableFiles(self.dataset(delta, where), partial(_sizes_in, delta))

    def _files_of(self, sequences: tuple[int, int], version: int | None) -> ReadableFiles | None:
        """Return the files that may hold rows of the commits ``(after, upto]``; None where there is no table yet."""
        number = self.version() if version is None else version
        if number < 0:
            return None
        sizes = files_with(self.table.app_id, sequences, self._texts.in_log(number))
        if sizes is not None:
            return ReadableFiles(self.dataset_of(sizes), lambda: sizes)
        delta = self.open(number)
        return None if delta is None else self._files(delta, files_of(sequences))

    def _near(self, files: ReadableFiles, where: ds.Expression | None) -> ds.Dataset:
        """Return the files that ``where`` may select, from the run's copies if it keeps any."""
        return files.dataset if self._copies is None else self._copies.near(self.uri, files, where)

    def _read(
        self,
        files: ReadableFiles | None,
        columns: Sequence[str] | None,
        where: ds.Expression | None,
        version: int | None,
    ) -> pa.Table:
        names = self._names(columns)
        if files is None:
            return self.table.arrow_schema.empty_table().select(names)
        with reading(self.table.name, version):
            dataset = self._near(files, where)
            scanner = dataset.scanner(stored_in(dataset, names), where, fragment_scan_options=VERIFIED)
            found = scanner.to_table()
        return self.filled(found, names)


def _sizes_in(delta: DeltaTable) -> dict[str, int]:
    live = pa.table(delta.get_add_actions(flatten=True))
    return dict(zip(live["path"].to_pylist(), live["size_bytes"].to_pylist(), strict=True))


def stored_in(dataset: ds.Dataset, names: Sequence[str]) -> list[str]:
    """Return those of ``names`` that are columns of the stored rows."""
    stored = set(dataset.schema.names)
    return [name for name in names if name in stored]
