"""The engine of T0: it commits to Delta tables on the simulated disk, and compacts and vacuums them.

It keeps Delta's rules and its faults: a transaction id that is not above the last is skipped *silently*, of two that
began on one state the later fails, any other rival makes it try the next version; it syncs nothing; it continues when
its client is killed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sda_platform.lake import delta_log
from sda_platform.lake.commit import Mode, WrittenRows
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.table import Table
from sda_platform_tests.campaign.disk import Disk, mount, parent
from sda_platform_tests.campaign.simulated_delta import SimulatedDelta, SimulatedLog

_HELD = "/held"
_VACUUM = re.compile(r"VACUUM delta\.`(?P<uri>[^`]+)`")

Action = Mapping[str, Any]


class ConcurrentTransaction(Exception):
    """What Delta raises where two writers with one transaction id began on the same state."""


class ConcurrentDelete(Exception):
    """What Delta raises where two compactions began on the same files."""


@dataclass(frozen=True)
class Transaction:
    """The identity of a write, as the options of the platform's writer give it."""

    app_id: str
    version: int
    user_metadata: str


@dataclass
class SimulatedEngine:
    """The engine's side of a commit; a job of it is a process of its own, and outlasts the client that asked."""

    disk: Disk
    jobs: int = 0

    def write(
        self,
        path: str,
        transaction: Transaction,
        rows: pa.Table | WrittenRows,
        mode: Mode = "append",
        began: SimulatedDelta | None = None,
    ) -> None:
        """Commit ``rows``; ``began`` is the state that was seen at its beginning, unless that is now.

        Raises ConcurrentTransaction.
        """
        job = self._begin()
        began = began or SimulatedDelta(self.disk, path)
        if (began.transaction_version(transaction.app_id) or 0) >= transaction.version:
            return
        for directory in (path, f"{path}/_delta_log"):
            self._ensure_directory(directory)
        added = _added(rows.files) if isinstance(rows, WrittenRows) else [self._write_rows(path, job, rows)]
        many = sum(json.loads(each["add"]["stats"])["numRecords"] for each in added)
        info = _info("WRITE", many, userMetadata=transaction.user_metadata)
        identity = {"txn": {"appId": transaction.app_id, "version": transaction.version}}
        replaced = set(began.files) if mode == "overwrite" else set()
        for now in self._commit(path, job, began, [info, identity, *added, *_removed(replaced)]):
            if (now.transaction_version(transaction.app_id) or 0) >= transaction.version:
                raise ConcurrentTransaction(f"{transaction.app_id} {transaction.version} was committed meanwhile")
            if not replaced <= set(now.files):
                raise ConcurrentTransaction(f"{path}: files that the commit removes were removed meanwhile")

    def compact(self, path: str) -> tuple[int, int]:
        """Rewrite the live files as one, as OPTIMIZE does; returns how many files it added and replaced.

        The commit has no transaction. Unlike OPTIMIZE it rewrites a single file too. Raises ConcurrentDelete.
        """
        job, began = self._begin(), SimulatedDelta(self.disk, path)
        if not began.files:
            return (0, 0)
        replaced, rows = set(began.files), began.rows().table
        added = self._write_rows(path, job, rows)
        for now in self._commit(path, job, began, [_info("OPTIMIZE", rows.num_rows), added, *_removed(replaced)]):
            if not replaced <= set(now.files):
                raise ConcurrentDelete(f"files of {path} were replaced meanwhile")
        return (1, len(replaced))

    def vacuum(self, path: str, *, is_logged: bool) -> None:
        """Delete the files that commits have removed, however new; ``is_logged``: between two commits that say so."""
        if is_logged:
            self._note(path, "VACUUM START")
        now = SimulatedDelta(self.disk, path)
        for name in sorted(now.removed - set(now.files)):
            if f"{path}/{name}" in self.disk.names:
                self.disk.unlink(f"{path}/{name}")
        if is_logged:
            self._note(path, "VACUUM END")

    def _note(self, path: str, operation: str) -> None:
        """Commit nothing but the name of an operation."""
        for _ in self._commit(path, self._begin(), SimulatedDelta(self.disk, path), [_info(operation, 0)]):
            pass

    def _begin(self) -> int:
        """The number of a new job: its files are named after it, and another may begin meanwhile."""
        self.jobs += 1
        return self.jobs

    def _write_rows(self, path: str, job: int, rows: pa.Table) -> Action:
        name, data = f"part-{job:05d}.parquet", _as_parquet(rows)
        self.disk.write(f"{path}/{name}", data)
        return {"add": {"path": name, "size": len(data), "stats": json.dumps({"numRecords": rows.num_rows})}}

    def _commit(
        self, path: str, job: int, began: SimulatedDelta, actions: Iterable[Action]
    ) -> Iterator[SimulatedDelta]:
        """Publish ``actions`` as the next free version; yields the state whenever another took the version first."""
        partial = f"{path}/_delta_log/.{job}.tmp"
        text = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
        self.disk.write(partial, text.encode())
        version = began.version() + 1
        while not self._publish(partial, f"{path}/_delta_log/{version:020d}.json"):
            yield SimulatedDelta(self.disk, path)
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


@dataclass(frozen=True)
class Answer:
    """What a statement returns."""

    rows: Sequence[Mapping[str, Any]] = ()

    def collect(self) -> Sequence[Mapping[str, Any]]:
        """Its rows."""
        return self.rows


@dataclass(frozen=True)
class SimulatedSession:
    """Carries out the statements of the platform's maintenance; ``wait`` runs a job of the engine to its end."""

    engine: SimulatedEngine
    wait: Callable[[Callable[[], Any]], Any]

    def sql(self, statement: str) -> Answer:
        """Carry out VACUUM. Raises ValueError for any other statement."""
        found = _VACUUM.match(statement)
        if found is None:
            raise ValueError(f"the simulated engine does not know {statement!r}")
        path = delta_log.table_directory(found["uri"]).path
        self.wait(lambda: self.engine.vacuum(path, is_logged=False))
        return Answer()


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

    def write(self, manifest: CommitManifest, rows: pa.Table, *, began: SimulatedDelta | None = None) -> None:
        """Append as Delta does. Raises ConcurrentTransaction."""
        transaction = Transaction(self.table.app_id, manifest.sequence, manifest.to_json())
        self._engine.write(self._path, transaction, rows, began=began)

    def write_foreign(self, rows: pa.Table) -> None:
        """Append as another writer does, which has no manifest."""
        self._engine.write(self._path, Transaction("another writer", 1, ""), rows)


def _added(files: str) -> list[Action]:
    """The actions that add files which the platform wrote."""
    return [{"add": {name: each[name] for name in ("path", "size", "stats")}} for each in json.loads(files)]


def _removed(names: Iterable[str]) -> list[Action]:
    return [{"remove": {"path": name}} for name in sorted(names)]


def _info(operation: str, rows: int, **more: str) -> Action:
    metrics = {"numOutputRows": str(rows)}
    return {"commitInfo": {"timestamp": 0, "operation": operation, "operationMetrics": metrics, **more}}


# Most of what is written in a history was written in another one: it is packed once.


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
