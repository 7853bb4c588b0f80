"""An engine for the year in an hour: it writes real Delta tables on a real disk, at the times of a given clock.

Each commit is one Parquet file and one file of the log, put there only if absent; every so many versions get Delta's
checkpoint, with the removed files of the retention. All that reads them (delta-rs, the platform) is the real thing.
Times of commits, removals and files are those of the clock, which lies in the past, since delta-rs compares with today.
"""

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from sda_platform.lake.commit import Mode
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.properties import table_properties
from sda_platform.lake.retention import RETENTION
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform_tests.support.delta_tables import in_columns

_SMALL_BYTES = 2**18
_MS_PER_HOUR = 3_600_000
_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "remove": pa.struct(
            {"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_(), "size": pa.int64()}
        ),
    }
)

Action = Mapping[str, Any]


@dataclass
class Snapshot:
    """The newest state of a table, as an engine holds it in memory; read from the log after a restart."""

    version: int = -1
    fixed: dict[str, Action] = field(default_factory=dict)
    live: dict[str, Action] = field(default_factory=dict)
    removed: dict[str, Action] = field(default_factory=dict)

    @property
    def transaction(self) -> int:
        """The newest transaction of the platform."""
        return int(self.fixed.get("txn", {}).get("version", 0))

    @property
    def columns(self) -> list[str]:
        """The stored columns."""
        fields: list[dict[str, Any]] = json.loads(self.fixed["metaData"]["schemaString"])["fields"]
        return [each["name"] for each in fields]

    def apply(self, version: int, actions: Iterable[tuple[str, Action]]) -> None:
        """Take over the actions of a version."""
        for kind, action in actions:
            if kind == "add":
                self.live[action["path"]] = action
            elif kind == "remove":
                self.live.pop(action["path"], None)
                self.removed[action["path"]] = action
            elif kind in ("protocol", "metaData", "txn"):
                self.fixed[kind] = action
        self.version = version


class YearEngine:
    """Writes commits at ``wall_ms()``. ``absent``: the columns that the running version of the platform lacks."""

    def __init__(self, wall_ms: Callable[[], int], checkpoint_every: int) -> None:
        self.wall_ms, self._checkpoint_every = wall_ms, checkpoint_every
        self.is_full = False
        self.absent: frozenset[str] = frozenset()
        self.commits = 0
        self._snapshots: dict[str, Snapshot] = {}
        self._files = 0

    def restart(self) -> None:
        """Forget everything; each table is read from its log again."""
        self._snapshots.clear()

    def writing(
        self, log: TableLog, plan: Plan, rows: pa.Table, mode: Mode, where: str | None = None, /
    ) -> Callable[[CommitManifest], None]:
        """An engine of `lake.commit`, for appends."""
        assert where is None
        assert mode == "append", "no table of the year replaces rows"
        content = in_columns(plan, rows).drop_columns([c for c in self.absent if c in plan.table.arrow_schema.names])

        def write(manifest: CommitManifest) -> None:
            self._need_space(log.uri)
            stored = self.snapshot(log.uri)
            if stored.transaction < plan.sequence:
                info = {"operation": "WRITE", "operationMetrics": {"numOutputRows": str(content.num_rows)}}
                actions = [("commitInfo", self._info({**info, "userMetadata": manifest.to_json()}))]
                actions += self._definition(plan.table, content.schema, stored)
                actions.append(("txn", {"appId": plan.table.app_id, "version": plan.sequence}))
                if content.num_rows:
                    actions.append(("add", self._data_file(log.uri, content, is_new=True)))
                self._publish(log.uri, stored, actions)

        return write

    def compact(self, uri: str) -> tuple[int, int]:
        """Merge the small files of a table, as OPTIMIZE does; how many files it added and replaced."""
        self._need_space(uri)
        stored = self.snapshot(uri)
        small = [add for add in stored.live.values() if add["size"] < _SMALL_BYTES]
        if len(small) < 2:
            return (0, 0)
        parts = [pq.read_table(f"{uri}/{add['path']}") for add in small]
        merged = pa.concat_tables(parts, promote_options="default")
        removals: list[tuple[str, Action]] = [("remove", self._removal(add)) for add in small]
        added = ("add", self._data_file(uri, merged, is_new=False))
        self._publish(uri, stored, [("commitInfo", self._info({"operation": "OPTIMIZE"})), added, *removals])
        return (1, len(small))

    def snapshot(self, uri: str) -> Snapshot:
        """The newest state of the table at ``uri``."""
        if uri not in self._snapshots:
            self._snapshots[uri] = read_snapshot(Path(uri) / "_delta_log")
        return self._snapshots[uri]

    def _definition(self, table: Table, schema: pa.Schema, stored: Snapshot) -> list[tuple[str, Action]]:
        """What declares the table, or the columns that it lacks; nothing where it has all of them."""
        if stored.version >= 0 and set(schema.names) <= set(stored.columns):
            return []
        metadata = {
            "id": table.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema.from_arrow(schema).to_json(),
            "partitionColumns": [],
            "configuration": table_properties(table),
            "createdTime": self.wall_ms(),
        }
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        return [*([("protocol", protocol)] if stored.version < 0 else []), ("metaData", metadata)]

    def _data_file(self, uri: str, rows: pa.Table, *, is_new: bool) -> Action:
        self._files += 1
        name = f"part-{self._files:08d}-{self.wall_ms()}.parquet"
        path = Path(uri, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, compression="zstd", write_page_checksum=True)
        self._at_the_time(path)
        bounds = pc.min_max(rows.column(COMMIT_SEQUENCE)).as_py()
        stats = {
            "numRecords": rows.num_rows,
            "minValues": {COMMIT_SEQUENCE: bounds["min"]},
            "maxValues": {COMMIT_SEQUENCE: bounds["max"]},
            "nullCount": {COMMIT_SEQUENCE: 0},
        }
        facts = {"size": path.stat().st_size, "modificationTime": self.wall_ms(), "dataChange": is_new}
        return {"path": name, "partitionValues": {}, **facts, "stats": json.dumps(stats)}

    def _removal(self, add: Action) -> Action:
        return {
            "path": add["path"],
            "deletionTimestamp": self.wall_ms(),
            "dataChange": False,
            "partitionValues": {},
            "size": add["size"],
        }

    def _publish(self, uri: str, stored: Snapshot, actions: Sequence[tuple[str, Action]]) -> None:
        """Put the next version into the log. Raises FileExistsError where another writer took it."""
        log, version = Path(uri) / "_delta_log", stored.version + 1
        log.mkdir(parents=True, exist_ok=True)
        partial, target = log / f".{version}.tmp", log / f"{version:020d}.json"
        partial.write_text("\n".join(json.dumps({kind: action}, separators=(",", ":")) for kind, action in actions))
        self._at_the_time(partial)
        os.link(partial, target)
        partial.unlink()
        stored.apply(version, actions)
        self.commits += 1
        if version % self._checkpoint_every == 0 and version:
            self._checkpoint(log, stored)

    def _checkpoint(self, log: Path, stored: Snapshot) -> None:
        oldest_ms = self.wall_ms() - RETENTION.data_files_h * _MS_PER_HOUR
        stored.removed = {
            path: action for path, action in stored.removed.items() if action["deletionTimestamp"] >= oldest_ms
        }
        rows = [{kind: _as_stored(action)} for kind, action in stored.fixed.items()]
        rows += [{"add": _as_stored(add)} for add in stored.live.values()]
        rows += [{"remove": _as_stored(removal)} for removal in stored.removed.values()]
        content = pa.Table.from_pylist(rows, _CHECKPOINT)
        path = log / f"{stored.version:020d}.checkpoint.parquet"
        pq.write_table(content, path)
        self._at_the_time(path)
        pointer = log / "._last_checkpoint.tmp"
        pointer.write_text(json.dumps({"version": stored.version, "size": content.num_rows}))
        pointer.replace(log / "_last_checkpoint")

    def _info(self, facts: Mapping[str, Any]) -> Action:
        return {"timestamp": self.wall_ms(), **facts}

    def _at_the_time(self, path: Path) -> None:
        time_s = self.wall_ms() / 1000
        os.utime(path, (time_s, time_s))

    def _need_space(self, uri: str) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), uri)


def read_snapshot(log: Path) -> Snapshot:
    """The state of the table with this log directory: Delta's checkpoint, and the versions after it."""
    found = Snapshot()
    pointer = log / "_last_checkpoint"
    if pointer.exists():
        version = int(json.loads(pointer.read_text())["version"])
        rows = pq.read_table(log / f"{version:020d}.checkpoint.parquet").to_pylist(maps_as_pydicts="strict")
        found.apply(version, ((kind, action) for row in rows for kind, action in row.items() if action is not None))
    while (file := log / f"{found.version + 1:020d}.json").exists():
        found.apply(found.version + 1, _actions_in(file))
    return found


def _actions_in(file: Path) -> Iterator[tuple[str, Action]]:
    for line in file.read_text().split("\n"):
        yield from json.loads(line).items()


def _as_stored(action: Action) -> dict[str, Any]:
    """An action with its maps as Arrow takes them."""

    def stored(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: stored(each) for name, each in value.items()}

    content = stored(action)
    for name in ("partitionValues", "configuration"):
        if name in content:
            content[name] = list(content[name].items())
    if "format" in content:
        content["format"] = {**content["format"], "options": list(content["format"]["options"].items())}
    return dict(content)
