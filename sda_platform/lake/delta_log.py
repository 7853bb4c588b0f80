"""The files of a Delta log as its protocol lays them out (PROTOCOL.md), one by one: no table is opened.

A single version has one small file, whose name follows from the version. It holds its transaction, its checkpoint text
and the files it added. Reading it costs the same however long the log is.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from upath import UPath

from sda_platform.lake import durable, hadoop_checksums, unsynced
from sda_platform.lake.object_store import delta_options, is_object_store
from sda_platform.lake.storage import location, names_after, text_of

LAST_CHECKPOINT = "_last_checkpoint"
_COMMIT = re.compile(r"\d{20}\.json")
# What a listing of an object store has at most.
_PAGE = 1_000


@lru_cache
def table_directory(uri: str) -> UPath:
    """Return the location of the table at ``uri``; cached, because every read of a version uses it."""
    return location(uri)


@lru_cache
def log_directory(uri: str) -> UPath:
    """Where its log is; cached as well."""
    return table_directory(uri) / "_delta_log"


def commit_file(uri: str, version: int) -> UPath:
    """Return the file that holds one version's actions."""
    return log_directory(uri) / f"{version:020d}.json"


def checksum_file(uri: str, version: int) -> UPath:
    """Return the file that holds the state of the table at one version, as Spark sums it up after the commit."""
    return log_directory(uri) / f"{version:020d}.crc"


def checkpoint_file(uri: str, version: int) -> UPath:
    """Return the file that holds Delta's checkpoint of one version."""
    return log_directory(uri) / f"{version:020d}.checkpoint.parquet"


def identity(uri: str, version: int) -> tuple[int, ...] | None:
    """Inode, time and size of a version's file, which a repair changes; None in an object store, never repaired."""
    if is_object_store(uri):
        return None
    try:
        found = commit_file(uri, version).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def newest_version(uri: str, known: int = -1) -> int:
    """Return the newest version; -1 where there is no table.

    It is searched from a version that is ``known``, else from Delta's checkpoint on: listing a directory takes the
    longer the more commits it holds. Of an object store a first listing shows a log that is not too long.
    """
    if known >= 0 and (version := _last_from(uri, known)) >= 0:
        return version
    if is_object_store(uri):
        names = list(islice(names_after(log_directory(uri), ""), _PAGE))
        versions = [int(name[:20]) for name in names if _COMMIT.fullmatch(name)]
        if not names or (versions and len(names) < _PAGE):
            return max(versions, default=-1)
    if (version := _last_from(uri, checkpointed_version(uri))) >= 0:
        return version
    try:
        return DeltaTable(uri, storage_options=delta_options(uri)).version()
    except TableNotFoundError:
        return -1


def _last_from(uri: str, version: int) -> int:
    """Return the last of the versions that follow ``version`` without a gap; -1 where the log holds none of them."""
    is_there = commits_from(uri, max(version, 0))
    while is_there(version + 1):
        version += 1
    return version if version >= 0 and is_there(version) else -1


def commits_from(uri: str, version: int) -> Callable[[int], bool]:
    """Return whether the log holds a version, of those from ``version`` on; an object store is listed once."""
    if not is_object_store(uri):
        return lambda number: commit_file(uri, number).exists()
    names = set(names_after(log_directory(uri), f"{version:020d}"))
    return lambda number: commit_file(uri, number).name in names


def is_lost(uri: str, version: int) -> bool:
    """Return whether the commit of ``version`` is gone, and its checksum file by Delta, which is written after it, is
    there.

    An object store loses no commit, and is not asked.
    """
    if not durable.is_synced_by_hand(table_directory(uri)):
        return False
    return checksum_file(uri, version).exists() and not commit_file(uri, version).exists()


def oldest_version(uri: str) -> int:
    """Return the oldest version whose file the log still holds; 0 where there is none."""
    names = (file.stem for file in log_directory(uri).glob("*.json"))
    return min((int(name) for name in names if name.isdigit()), default=0)


def checkpointed_version(uri: str) -> int:
    """Return the version of Delta's newest checkpoint according to its pointer file; -1 without a readable pointer."""
    try:
        return int(json.loads(text_of(log_directory(uri) / LAST_CHECKPOINT))["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1


def forget_checksums_of_checkpoint(uri: str, version: int) -> None:
    """Remove Hadoop's checksums of the pointer and of an earlier checkpoint of ``version``, before both are rewritten.

    Only Hadoop's file system writes them, and it refuses a file that differs from them.
    """
    if durable.is_synced_by_hand(table_directory(uri)):
        for file in (log_directory(uri) / LAST_CHECKPOINT, checkpoint_file(uri, version)):
            hadoop_checksum(file).unlink(missing_ok=True)


def column_names(uri: str, version: int) -> list[str] | None:
    """Return the columns of the table as of ``version``; None where the log's files do not show them that simply.

    They are in the last ``metaData`` action up to ``version``, or in the checkpoint that replaces what came before. To
    open a version takes longer the more files it has.
    """
    for number in range(version, -1, -1):
        try:
            text = text_of(commit_file(uri, number))
        except FileNotFoundError:
            return None
        if (found := columns_in(text)) is not None:
            return found
        checkpoint = checkpoint_file(uri, number)
        if checkpoint.exists():
            with checkpoint.open("rb") as stream:
                found = pq.ParquetFile(stream).read(["metaData.schemaString"]).column("metaData").to_pylist()
            return next((_names(row["schemaString"]) for row in found if row and row["schemaString"]), None)
    return None


def columns_in(text: str) -> list[str] | None:
    """Return the columns that a commit gave to the table; None where it left them as they were."""
    return next((_names(metadata["schemaString"]) for _, metadata in actions(text, "metaData")), None)


def _names(schema: str) -> list[str]:
    return [field["name"] for field in json.loads(schema)["fields"]]


def timestamp_ms(text: str) -> int:
    """When a commit was made, Unix time of the writer's wall clock; 0 if the text has no timestamp."""
    return next((int(info.get("timestamp", 0)) for _, info in actions(text, "commitInfo")), 0)


def actions(text: str, *kinds: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the actions of these kinds among the lines of a commit file. Raises ValueError where one is torn.

    Only a line feed ends a line: a text in an action may contain other characters that Python splits at, as U+2028.
    Lines of other kinds are not parsed: a commit of a thousand files is read for its one ``commitInfo``.
    """
    starts = tuple(f'{{"{kind}"' for kind in kinds)
    for line in text.split("\n"):
        if line.startswith(starts):
            yield from json.loads(line).items()


def sequence_in(text: str, app_id: str) -> int | None:
    """Return the sequence number of the platform's commit in a text; None for a commit of others. Raises ValueError."""
    return next((int(txn["version"]) for _, txn in actions(text, "txn") if txn["appId"] == app_id), None)


def added_files(uri: str, text: str) -> list[UPath]:
    """Return the data files that a commit added."""
    return [table_directory(uri) / unquote(add["path"]) for _, add in actions(text, "add")]


def removed_files(uri: str, text: str) -> list[UPath]:
    """Return the data files that a commit removed."""
    return [table_directory(uri) / unquote(remove["path"]) for _, remove in actions(text, "remove")]


def data_files(uri: str, table: DeltaTable | None) -> list[UPath]:
    """Where the live data files of an opened ``table`` at ``uri`` are; none where it does not exist.

    By their names: in delta-rs's own list the directory is encoded, where it has characters such as a space.
    """
    names = pa.table(table.get_add_actions())["path"].to_pylist() if table else []
    return [table_directory(uri) / name for name in names]


def hadoop_checksum(file: UPath) -> UPath:
    """Where Hadoop's local file system keeps a file's checksums; it refuses a file that differs from them."""
    return file.with_name(hadoop_checksums.name_of(file.name))


def make_durable(uri: str, first_version: int, last_version: int) -> None:
    """Return once these versions, and the data files that they added, would survive a power loss.

    Delta's log stores sync no file. Files that VACUUM removed are skipped; files in an object store are already
    durable. Raises SyncFailed where a sync fails, or one failed before.
    """
    if not durable.is_synced_by_hand(table_directory(uri)):
        return
    table, log = table_directory(uri), log_directory(uri)
    unsynced.require_none(log)
    versions = range(max(0, first_version), last_version + 1)
    files = [log / LAST_CHECKPOINT]
    for version in versions:
        commit = commit_file(uri, version)
        files += [commit, checksum_file(uri, version), checkpoint_file(uri, version)]
        files += added_files(uri, commit.read_text())
    present = [each for file in files for each in (file, hadoop_checksum(file)) if each.exists()]
    # A table's first commit may have made the lake's own directory too, and directories above it.
    above = durable.directories_above(table) if first_version <= 0 else [table.parent]
    directories = sorted({file.parent for file in present} | {table, *above}, key=str)
    try:
        durable.sync([*present, *directories])
    except OSError as error:
        raise unsynced.recorded(log, error) from error
