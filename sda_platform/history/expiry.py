"""Removal of data files that no kept version needs: first listed for deletion, and a day later deleted.

A file is found if only versions beyond the retention have it, or if no version has it (a killed write). It must be
older than the retention; what is younger may belong to a commit that is being made. A version that is leased keeps its
files. The deletion list names each file with the time at which it was first found. A file is deleted when it was found
at least a day before, and is found again. If a version was leased since the search, nothing is deleted: the next pass
searches again. Each step may be killed and repeated: what is gone is no longer found.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from upath import UPath

from sda_platform import failpoints
from sda_platform.lake import delta_log, durable
from sda_platform.lake.log import TableLog
from sda_platform.lake.object_store import delta_options
from sda_platform.lake.retention import Retention
from sda_platform.units import HOUR_MS

DELETION_LIST = "_expiry.json"
"""In a table's directory; Delta passes over names with an underscore."""


@dataclass(frozen=True)
class Expired:
    """What one pass found: paths relative to the table, and how many bytes were freed."""

    listed: Sequence[str] = ()
    deleted: Sequence[str] = ()
    freed_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.listed or self.deleted)


def expire_files(
    log: TableLog, held_versions: Callable[[], Sequence[int]], *, now_ms: int, retention: Retention, grace_h: int = 24
) -> Expired:
    """List the files of ``log`` that have expired at ``now_ms`` (Unix time); delete those listed a day ago.

    ``held_versions`` returns the versions that are leased now; they keep their files. Files listed at least
    ``grace_h`` hours ago are deleted.
    """
    held = held_versions()
    found = _expired(log, held, retention)
    before = awaiting(log)
    known = {path: before.get(path, now_ms) for path in found}
    if known != before:
        _write(log, known)
        failpoints.hit("expiry.journalled", log.table.name)
    due = [path for path, found_ms in sorted(known.items()) if found_ms <= now_ms - grace_h * HOUR_MS]
    if due and not set(held).issuperset(held_versions()):
        due = []
    freed = sum(_delete(delta_log.table_directory(log.uri) / path) for path in due)
    failpoints.hit("expiry.deleted", log.table.name)
    if due:
        _write(log, {path: known[path] for path in sorted(known.keys() - due)})
    return Expired([path for path in known if path not in before], due, freed)


def awaiting(log: TableLog) -> Mapping[str, int]:
    """Read the files that are listed for deletion, with the time (Unix, ms) at which each was first found."""
    try:
        return dict(json.loads((delta_log.table_directory(log.uri) / DELETION_LIST).read_text()))
    except (FileNotFoundError, ValueError):
        return {}  # what a damaged list named is found and listed again


def _expired(log: TableLog, held_versions: Sequence[int], retention: Retention) -> list[str]:
    """By the log and a listing of the table's directory; delta-rs does both, and deletes nothing in a dry run."""
    try:
        delta = DeltaTable(log.uri, storage_options=delta_options(log.uri))
    except TableNotFoundError:
        return []
    found = delta.vacuum(
        retention.data_files_h,
        dry_run=True,
        enforce_retention_duration=False,
        full=True,
        keep_versions=list(held_versions) or None,
    )
    directory = delta_log.table_directory(log.uri)
    return [path for path in found if (directory / path).exists()]  # the log names deleted files for some time


def _write(log: TableLog, listed: Mapping[str, int]) -> None:
    durable.write(delta_log.table_directory(log.uri) / DELETION_LIST, json.dumps(listed, indent=0).encode())


def _delete(file: UPath) -> int:
    try:
        size = int(file.stat().st_size)
    except FileNotFoundError:
        return 0
    file.unlink(missing_ok=True)
    delta_log.hadoop_checksum(file).unlink(missing_ok=True)
    return size
