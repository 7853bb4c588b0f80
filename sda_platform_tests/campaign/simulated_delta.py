"""A Delta table on the simulated disk, read as delta-rs reads one.

An emptied commit is read as one without actions, a torn one is an error.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from sda_platform.lake import delta_log
from sda_platform.lake.log import TableLog
from sda_platform.lake.properties import REQUIRED
from sda_platform.lake.table import Table
from sda_platform_tests.campaign.disk import Disk, parent


class SimulatedDelta:
    """One version of a table, read from its files; has what the platform uses of ``deltalake.DeltaTable``."""

    def __init__(self, disk: Disk, path: str, upto: int | None = None, schema: Any = None) -> None:
        """An absent table has version -1. Raises DeltaError for a torn or incomplete log."""
        self._disk, self._path, self._schema = disk, path, schema
        self._transactions: dict[str, int] = {}
        self.files: dict[str, dict[str, Any]] = {}
        self.removed: set[str] = set()
        self._version = -1
        disk.step("list", path)
        log = f"{path}/_delta_log"
        names = sorted(p for p in disk.below(log) if parent(p) == log and p.endswith(".json"))
        for version, name in enumerate(names if upto is None else names[: upto + 1]):
            if name != f"{log}/{version:020d}.json":
                raise DeltaError(f"version {version} of {path} is missing")
            self._replay(disk.file(name).data)
            self._version = version

    def version(self) -> int:
        """The newest version."""
        return self._version

    def transaction_version(self, app_id: str) -> int | None:
        """The last transaction of this application."""
        return self._transactions.get(app_id)

    def metadata(self) -> SimpleNamespace:
        """Its properties are those that the platform sets."""
        return SimpleNamespace(configuration=REQUIRED)

    def create_checkpoint(self) -> None:
        """Nothing: histories are short, and their logs are read whole."""

    def get_add_actions(self, flatten: bool) -> pa.Table:
        """The live files, each with its size and how many rows it has by its statistics."""
        adds = self.files.values()
        counts = [json.loads(add["stats"])["numRecords"] for add in adds]
        sizes = [add["size"] for add in adds]
        columns = {"size_bytes": pa.array(sizes, pa.int64()), "num_records": pa.array(counts, pa.int64())}
        return pa.table({"path": pa.array(self.files, pa.string()), **columns})

    def rows(self) -> "LiveRows":
        """The rows of the live files. Raises FileNotFoundError or ArrowInvalid where one is gone or torn."""
        return rows_of(self._disk, self._path, self.files, self._schema)

    def _replay(self, data: bytes) -> None:
        try:
            actions = actions_in(data)
        except ValueError as error:
            raise DeltaError(f"a commit of {self._path} is torn: {error}") from error
        for kind, action in actions:
            if kind == "txn":
                self._transactions[action["appId"]] = action["version"]
            elif kind == "add":
                self.files[action["path"]] = action
            elif kind == "remove":
                self.files.pop(action["path"], None)
                self.removed.add(action["path"])


@dataclass(frozen=True)
class LiveRows:
    """Rows with what the platform uses of ``pyarrow.dataset.Dataset``, whose scans cost several times as much."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return self.table.schema

    def scanner(self, columns: Sequence[str], filter: Any, **_: Any) -> "LiveRows":  # noqa: A002
        """Some columns of the rows for which ``filter``, if any, holds."""
        return LiveRows((self.table if filter is None else _filtered(self.table, filter)).select(columns))

    def to_table(self) -> pa.Table:
        """All of them."""
        return self.table

    def to_batches(self) -> list[pa.RecordBatch]:
        """All of them, in batches."""
        return list(self.table.to_batches())

    def head(self, count: int, columns: Sequence[str], filter: Any, **_: Any) -> pa.Table:  # noqa: A002
        """The first ``count`` of those for which ``filter`` holds."""
        return self.scanner(columns, filter).table.slice(0, count)


class SimulatedLog(TableLog):
    """The platform's own reading of a log, which it opens on the simulated disk instead of through delta-rs."""

    def __init__(self, table: Table, uri: str, disk: Disk) -> None:
        super().__init__(table, uri)
        self._disk = disk

    def stored_columns(self, version: int | None = None) -> frozenset[str]:
        """Tables here are stored with all columns that they declare."""
        return frozenset(self.table.arrow_schema.names)

    def open(self, version: int | None = None) -> Any:
        path = delta_log.table_directory(self.uri).path
        delta = SimulatedDelta(self._disk, path, version, self.table.arrow_schema)
        return delta if delta.version() >= 0 else None

    def dataset(self, delta: Any, where: str | None = None) -> Any:  # the reader filters the rows
        return delta.rows()

    def dataset_of(self, sizes: Mapping[str, int]) -> Any:
        return rows_of(self._disk, delta_log.table_directory(self.uri).path, sizes, self.table.arrow_schema)


def rows_of(disk: Disk, path: str, names: Iterable[str], schema: pa.Schema) -> LiveRows:
    """The rows of some files of the table at ``path``. Raises FileNotFoundError or ArrowInvalid as they are."""
    tables = [rows_in(disk.file(f"{path}/{name}").data) for name in names]
    return LiveRows(pa.concat_tables(tables) if tables else schema.empty_table())


def _filtered(rows: pa.Table, where: Any) -> pa.Table:
    """As ``rows.filter(where)``, without threads, which a few rows are not worth."""
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
        acero.Declaration("filter", acero.FilterNodeOptions(where)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


# Most of what is read in a history was read in another one: it is unpacked once.


@lru_cache(maxsize=4096)
def rows_in(parquet: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(parquet), use_threads=False)


@lru_cache(maxsize=4096)
def actions_in(commit: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Raises ValueError where a line is torn."""
    return [action for line in commit.splitlines() for action in json.loads(line).items()]
