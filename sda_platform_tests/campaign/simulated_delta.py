"""Delta as the kernel meets it, on the simulated disk: an engine that commits, and the log as delta-rs reads it.

The engine keeps Delta's rules and its faults: a transaction id that is not above the last is skipped *silently*, of
two that began on one state the later fails, any other rival makes it try the next version; it syncs nothing; it goes
on when its client dies. An emptied commit is read as one without actions, a torn one is an error.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from sda_platform.lake import delta_log
from sda_platform.lake.checkpoint import Checkpoint
from sda_platform.lake.commit import Mode
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import Table
from sda_platform_tests.campaign.disk import Disk, mount, parent

_HELD = "/held"


class ConcurrentTransaction(Exception):
    """What Delta raises where two writers with one transaction id began on the same state."""


@dataclass(frozen=True)
class Transaction:
    """The identity of a write, as the options of the platform's writer give it."""

    app_id: str
    version: int
    user_metadata: str


class SimulatedDelta:
    """One version of a table, read from its files; has what the platform uses of ``deltalake.DeltaTable``."""

    def __init__(self, disk: Disk, path: str, upto: int | None = None, schema: Any = None) -> None:
        """An absent table has version -1. Raises DeltaError for a torn or incomplete log."""
        self._disk, self._path, self._schema = disk, path, schema
        self._transactions: dict[str, int] = {}
        self._files: dict[str, dict[str, Any]] = {}
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

    @property
    def files(self) -> tuple[str, ...]:
        """The live files."""
        return tuple(self._files)

    def transaction_version(self, app_id: str) -> int | None:
        """The last transaction of this application."""
        return self._transactions.get(app_id)

    def get_add_actions(self, flatten: bool) -> pa.Table:
        """The live files, each with its size and how many rows it has by its statistics."""
        adds = self._files.values()
        counts = [json.loads(add["stats"])["numRecords"] for add in adds]
        sizes = [add["size"] for add in adds]
        columns = {"size_bytes": pa.array(sizes, pa.int64()), "num_records": pa.array(counts, pa.int64())}
        return pa.table({"path": pa.array(self._files, pa.string()), **columns})

    def rows(self) -> "LiveRows":
        """The rows of the live files. Raises FileNotFoundError or ArrowInvalid where one is gone or torn."""
        tables = [_rows_in(self._disk.file(f"{self._path}/{name}").data) for name in self._files]
        return LiveRows(pa.concat_tables(tables) if tables else self._schema.empty_table())

    def _replay(self, data: bytes) -> None:
        try:
            actions = _actions_in(data)
        except ValueError as error:
            raise DeltaError(f"a commit of {self._path} is torn: {error}") from error
        for kind, action in actions:
            if kind == "txn":
                self._transactions[action["appId"]] = action["version"]
            elif kind == "add":
                self._files[action["path"]] = action
            elif kind == "remove":
                del self._files[action["path"]]


@dataclass(frozen=True)
class LiveRows:
    """Rows with what the platform uses of ``pyarrow.dataset.Dataset``, whose scans cost several times as much."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return self.table.schema

    def to_table(self, columns: Sequence[str], filter: Any, **_: Any) -> pa.Table:  # noqa: A002
        """Some columns of the rows for which ``filter``, if any, holds."""
        return (self.table if filter is None else _filtered(self.table, filter)).select(columns)

    def head(self, count: int, columns: Sequence[str], filter: Any, **_: Any) -> pa.Table:  # noqa: A002
        """The first ``count`` of them."""
        return self.to_table(columns, filter).slice(0, count)


class SimulatedLog(TableLog):
    """The platform's own reading of a log, which it opens on the simulated disk instead of through delta-rs."""

    def __init__(self, table: Table, uri: str, disk: Disk) -> None:
        super().__init__(table, uri)
        self._disk = disk

    def _open(self, version: int | None = None) -> Any:
        path = delta_log.table_directory(self.uri).path
        delta = SimulatedDelta(self._disk, path, version, self.table.arrow_schema)
        return delta if delta.version() >= 0 else None

    def stored_columns(self) -> frozenset[str]:
        """The columns of the simulated files: all that are declared."""
        return frozenset(self.table.arrow_schema.names)

    def _dataset(self, delta: Any) -> Any:
        return delta.rows()


@dataclass
class SimulatedEngine:
    """The engine's side of a commit; a job of it is a process of its own, and outlives the client that asked."""

    disk: Disk
    jobs: int = 0

    def write(
        self,
        path: str,
        transaction: Transaction,
        rows: pa.Table,
        mode: Mode = "append",
        began: SimulatedDelta | None = None,
    ) -> None:
        """Commit ``rows``; ``began`` is the state that was seen at its beginning, unless that is now.

        Raises ConcurrentTransaction.
        """
        self.jobs += 1
        job = self.jobs  # files are named after it, and another may begin meanwhile
        began = began or SimulatedDelta(self.disk, path)
        if (began.transaction_version(transaction.app_id) or 0) >= transaction.version:
            return
        for directory in (path, f"{path}/_delta_log"):
            self._ensure_directory(directory)
        name, data = f"part-{job:05d}.parquet", _as_parquet(rows)
        self.disk.write(f"{path}/{name}", data)
        partial = f"{path}/_delta_log/.{job}.tmp"
        removed = began.files if mode == "overwrite" else ()
        self.disk.write(partial, "\n".join(_actions(transaction, name, len(data), rows.num_rows, removed)).encode())
        version = began.version() + 1
        while not self._publish(partial, f"{path}/_delta_log/{version:020d}.json"):
            now = SimulatedDelta(self.disk, path)
            if not set(removed) <= set(now.files):
                raise ConcurrentTransaction(f"{path}: files that the commit removes were removed meanwhile")
            if (now.transaction_version(transaction.app_id) or 0) >= transaction.version:
                raise ConcurrentTransaction(f"{transaction.app_id} {transaction.version} was committed meanwhile")
            version += 1

    def _publish(self, partial: str, target: str) -> bool:
        try:
            self.disk.rename(partial, target, replace=False)
        except FileExistsError:
            return False
        return True

    def _ensure_directory(self, path: str) -> None:
        if path not in self.disk.names:
            if parent(path) not in self.disk.names:
                self._ensure_directory(parent(path))
            self.disk.make_directory(path)


class HeldTable(SimulatedLog):
    """One table on a disk of its own, whose engine a test holds in its hand; its disk is the mounted one."""

    def __init__(self, table: Table) -> None:
        disk = Disk()
        mount(disk)
        disk.make_directory(_HELD)
        disk.sync("/")
        super().__init__(table, f"sim://{_HELD}/{table.name}", disk)
        self.disk = disk
        self._engine = SimulatedEngine(disk)
        self._path = f"{_HELD}/{table.name}"

    def state(self) -> SimulatedDelta:
        """What a writer sees that begins now."""
        return SimulatedDelta(self.disk, self._path)

    def write(self, checkpoint: Checkpoint, rows: pa.Table, *, began: SimulatedDelta | None = None) -> None:
        """Append as Delta does. Raises ConcurrentTransaction."""
        transaction = Transaction(self.table.app_id, checkpoint.sequence, checkpoint.to_json())
        self._engine.write(self._path, transaction, rows, began=began)


def _filtered(rows: pa.Table, where: Any) -> pa.Table:
    """As ``rows.filter(where)``, without threads, which a few rows are not worth."""
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
        acero.Declaration("filter", acero.FilterNodeOptions(where)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


# Most of what is written and read in a history was written and read in another one: it is packed and unpacked once.


def _as_parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return _parquet_of(sink.getvalue().to_pybytes())


@lru_cache(maxsize=4096)
def _parquet_of(stream: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.ipc.open_stream(stream).read_all(), sink, compression="none")
    return bytes(sink.getvalue())


@lru_cache(maxsize=4096)
def _rows_in(parquet: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(parquet), use_threads=False)


@lru_cache(maxsize=4096)
def _actions_in(commit: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Raises ValueError where a line is torn."""
    return [action for line in commit.splitlines() for action in json.loads(line).items()]


def _actions(transaction: Transaction, name: str, size: int, count: int, removed: Sequence[str] = ()) -> Iterator[str]:
    info = {
        "timestamp": 0,
        "operation": "WRITE",
        "operationMetrics": {"numOutputRows": str(count)},
        "userMetadata": transaction.user_metadata,
    }
    yield json.dumps({"commitInfo": info}, separators=(",", ":"))
    yield json.dumps({"txn": {"appId": transaction.app_id, "version": transaction.version}}, separators=(",", ":"))
    added = {"path": name, "size": size, "stats": json.dumps({"numRecords": count})}
    yield json.dumps({"add": added}, separators=(",", ":"))
    for path in removed:
        yield json.dumps({"remove": {"path": path}}, separators=(",", ":"))
