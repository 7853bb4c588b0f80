"""Small Delta tables with the platform's checkpoints, written by delta-rs: what a test breaks, a check must see."""

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql import types as T
from upath import UPath

from sda_platform.clock import MissionClock
from sda_platform.lake.commit import Mode, WrittenRows
from sda_platform.lake.delta_log import hadoop_checksum
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import GENESIS, CommitManifest, SegmentRef, TableWindow
from sda_platform.lake.object_store import delta_options
from sda_platform.lake.planning import Plan
from sda_platform.lake.properties import table_properties
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table
from sda_platform_tests.support.segments import START_NS


def no_engine() -> Any:
    """The session of a lake that must not need one."""
    raise AssertionError("this needs no engine")


def lake_at(root: Path | str, *, now_ns: int = START_NS, reads_unverified: bool = True) -> Lake:
    """The lake below ``root``, its mission clock at ``now_ns``; most tests commit without running checks."""
    lake = Lake(str(root), MissionClock(now_ns, 0, 0.0), no_engine)
    lake.reads_unverified, lake.requires_lineage = reads_unverified, False
    return lake


def row(table: Table, **values: Any) -> dict[str, Any]:
    """A row that keeps the table's contract, with ``values`` in place."""
    return {c.name: values.get(c.name, _plain_value(c)) for c in table.columns}


def rows_of(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Such rows as Arrow."""
    return pa.Table.from_pylist([row(table, **r) for r in rows], schema=table.arrow_schema)


def commit(
    lake: Lake,
    table: Table,
    rows: Iterable[Mapping[str, Any]] | pa.Table = (),
    /,
    *,
    windows: Sequence[TableWindow] = (),
    segments: Sequence[SegmentRef] = (),
    watermarks: Mapping[str, int] | None = None,
    **forged: Any,
) -> CommitManifest:
    """Append ``rows`` as the table's next commit; ``forged`` replaces fields of its checkpoint.

    Rows in Arrow have all columns; their commit sequence is set.
    """
    head = lake.head(table) if not forged else _last_known(lake, table)
    checkpoint = CommitManifest(
        table=table.name,
        sequence=head.sequence + 1,
        previous_sha256=head.manifest_sha256,
        as_of_ns=lake.clock.now_ns(),
        run_id="test",
        nonce=f"nonce-{head.sequence + 1}",
        windows=tuple(windows),
        segments=tuple(segments),
        watermarks=dict(watermarks or {}),
    )
    checkpoint = replace(checkpoint, **forged)
    if isinstance(rows, pa.Table):
        place, sequences = rows.column_names.index(COMMIT_SEQUENCE), pa.repeat(checkpoint.sequence, rows.num_rows)
        found = rows.set_column(place, COMMIT_SEQUENCE, sequences)
    else:
        found = rows_of(table, [{COMMIT_SEQUENCE: checkpoint.sequence, **r} for r in rows])
    _write(lake.log(table).uri, table, found, checkpoint)
    return checkpoint


def with_delta_rs(
    log: TableLog, plan: Plan, rows: pa.Table, mode: Mode, where: str | None = None, /
) -> Callable[[CommitManifest], None]:
    """How delta-rs writes Arrow rows, in the place of `lake.commit.with_spark`.

    It checks no transaction id by itself, and knows no other writer, as one Spark server does; so both is done here.
    """
    declared = in_columns(plan, rows)

    def write(checkpoint: CommitManifest) -> None:
        with _one_at_a_time(Path(log.uri)):
            stored = DeltaTable(log.uri) if DeltaTable.is_deltatable(log.uri) else None
            if stored is None or (stored.transaction_version(plan.table.app_id) or 0) < plan.sequence:
                _write(stored or log.uri, plan.table, declared, checkpoint, mode, where)

    return write


def by_conditional_put(
    log: TableLog, plan: Plan, rows: pa.Table, mode: Mode, where: str | None = None, /
) -> Callable[[CommitManifest], None]:
    """How delta-rs writes Arrow rows into an object store, whose conditional put alone excludes other writers.

    A commit that was refused is not tried again upon the next version: only a new plan may do that.
    """
    declared = in_columns(plan, rows)

    def write(checkpoint: CommitManifest) -> None:
        # An object of its own: a write moves it to the next version.
        stored = DeltaTable(log.uri, storage_options=delta_options(log.uri)) if log.version() >= 0 else None
        if stored is None or (stored.transaction_version(plan.table.app_id) or 0) < plan.sequence:
            _write(stored or log.uri, plan.table, declared, checkpoint, mode, where, max_commit_retries=0)

    return write


def unchecked(
    log: TableLog, plan: Plan, rows: pa.Table, mode: Mode, where: str | None = None, /
) -> Callable[[CommitManifest], None]:
    """An engine that commits whatever was committed meanwhile: a control, which must be found out."""
    declared = in_columns(plan, rows)

    def write(checkpoint: CommitManifest) -> None:
        while True:
            with suppress(CommitFailedError):
                return _write(log.uri, plan.table, declared, checkpoint, mode, where)

    return write


@contextmanager
def _one_at_a_time(table: Path) -> Iterator[None]:
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.with_suffix(".engine").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def in_columns(plan: Plan, rows: Any) -> Any:
    """``rows`` in the columns of the plan's table; those that are in files already stay there."""
    return rows if isinstance(rows, WrittenRows) else rows.select(plan.table.arrow_schema.names)


def _write(
    target: DeltaTable | str,
    table: Table,
    rows: pa.Table | WrittenRows,
    checkpoint: CommitManifest,
    mode: Mode = "append",
    where: str | None = None,
    *,
    max_commit_retries: int | None = None,
) -> None:
    identity = CommitProperties(
        max_commit_retries=max_commit_retries,
        custom_metadata={"userMetadata": checkpoint.to_json()},
        app_transactions=[Transaction(table.app_id, checkpoint.sequence)],
    )
    if isinstance(rows, WrittenRows):
        _add_files(target, table, rows.files, mode, identity)
        return
    write_deltalake(
        target,
        rows.cast(table.arrow_schema),
        mode=cast(Any, mode),  # delta-rs has one signature for each mode
        predicate=where,
        schema_mode="merge" if mode == "append" else None,  # as the engine does where a version adds columns
        configuration=table_properties(table),
        storage_options=delta_options(target) if isinstance(target, str) else None,
        commit_properties=identity,
    )


def _add_files(target: DeltaTable | str, table: Table, files: str, mode: Mode, identity: CommitProperties) -> None:
    """Commit files that `lake.data_files` wrote, as the platform's data source has Delta do it."""
    assert mode == "append", "rows that replace others are small in tests"
    added = [
        AddAction(f["path"], f["size"], f["partitionValues"], f["modificationTime"], f["dataChange"], f["stats"])
        for f in json.loads(files)
    ]
    schema, uri = Schema.from_arrow(table.arrow_schema), target if isinstance(target, str) else target.table_uri
    if DeltaTable.is_deltatable(uri):
        DeltaTable(uri).create_write_transaction([*added], mode, schema, commit_properties=identity)
    else:
        properties = table_properties(table)
        create_table_with_add_actions(uri, schema, added, configuration=properties, commit_properties=identity)


def commit_file(lake: Lake, table: Table, version: int) -> Path:
    """The file of the log that holds one version."""
    return Path(lake.log(table).uri) / "_delta_log" / f"{version:020d}.json"


def newest_data_file(lake: Lake, table: Table) -> Path:
    """The data file that the newest version added."""
    delta = DeltaTable(lake.log(table).uri)
    before = DeltaTable(lake.log(table).uri, version=delta.version() - 1).file_uris() if delta.version() else []
    return Path((set(delta.file_uris()) - set(before)).pop())


def foreign(lake: Lake, table: Table, *operations: str, timestamp_ms: int = 0) -> None:
    """Append commits of another writer that change no row, as VACUUM does, each made at ``timestamp_ms``."""
    for version, operation in enumerate(operations, lake.log(table).version() + 1):
        info = {"timestamp": timestamp_ms, "operation": operation}
        commit_file(lake, table, version).write_text(json.dumps({"commitInfo": info}, separators=(",", ":")))


def damage_checkpoint(lake: Lake, table: Table, version: int, text: str = "{torn") -> None:
    """Replace the checkpoint's text in a commit; its rows and its transaction stay."""
    file = commit_file(lake, table, version)
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["userMetadata"] = text
    file.write_text("\n".join(json.dumps(action, separators=(",", ":")) for action in actions))
    hadoop_checksum(UPath(file)).unlink(missing_ok=True)  # which Spark would compare


def checksum_pages(lake: Lake, table: Table, version: int) -> Path:
    """Write the one data file of a commit again with a checksum for each page, as Spark writes it; returns the file.

    delta-rs writes none.
    """
    log = commit_file(lake, table, version)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    add: dict[str, Any] = next(action["add"] for action in actions if "add" in action)
    file = Path(lake.log(table).uri) / str(add["path"])
    pq.write_table(pq.read_table(file), file, compression="zstd", write_page_checksum=True)
    add["size"] = file.stat().st_size
    log.write_text("\n".join(json.dumps(action, separators=(",", ":")) for action in actions))
    return file


def lose_rows(lake: Lake, table: Table, predicate: str) -> None:
    """Delete rows behind the platform's back."""
    DeltaTable(lake.log(table).uri).delete(predicate)


def genesis_window(source: Table, upto: int = 1) -> TableWindow:
    """The first ``upto`` commits of a table that holds nothing else."""
    return TableWindow(source.name, 0, upto, -1, upto - 1)


def next_window(window: TableWindow, commits: int = 1) -> TableWindow:
    """The ``commits`` that follow ``window``."""
    return TableWindow(
        window.table,
        window.upto_sequence,
        window.upto_sequence + commits,
        window.upto_version,
        window.upto_version + commits,
    )


def _last_known(lake: Lake, table: Table) -> Any:
    """The newest commit, without the head's own verification, which a forged chain would fail."""
    commits = lake.log(table).commits()

    class _Head:
        sequence = commits[0].manifest.sequence if commits else 0
        manifest_sha256 = commits[0].manifest.sha256 if commits else GENESIS

    return _Head


def _plain_value(column: Column) -> Any:
    allowed = [rule.statistics["allowed_values"] for rule in column.rules if rule.name == "isin"]
    if column.nullable:
        return None
    if allowed:
        return sorted(allowed[0])[0]
    match column.data_type:
        case T.StringType():
            return "text"
        case T.BinaryType():
            return b""
        case T.ArrayType():
            return _plain_list(column)
        case T.DoubleType():
            return 0.5
        case _:
            return 1


def _plain_list(column: Column) -> list[Any]:
    """The shortest list that keeps the column's rules; numbers and covariances of zeros."""
    for rule in column.rules:
        match rule.name:
            case "numbers" | "covariance" if rule.statistics["several"]:
                return []
            case "numbers":
                return [0.0] * int(rule.statistics["length"])
            case "covariance":
                size = int(rule.statistics["size"])
                return [0.0] * (size * (size + 1) // 2)
            case "filled":
                return ["text"] * int(rule.statistics["least"])
    return []
