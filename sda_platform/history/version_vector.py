"""Version vectors: one version of each of several tables, which together are one consistent state of the lake.

A state is consistent when each table in it has consumed nothing that the state lacks. The vector of a decision is the
least consistent state that contains its commit: the decision's own manifest names the versions that it read, their
manifests name what those were made from, and so on. Nothing else stores it, so it cannot disagree with the rows
(docs/decisions/0012-version-vectors-are-derived.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from sda_platform.history.errors import VersionExpired
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.table import Table

BEFORE_THE_FIRST = (-1, 0)
"""Version and commit sequence of a table that does not exist yet."""


@dataclass(frozen=True)
class KeptTable:
    """What is kept of a table in the place of its version: its columns then, and the rows where they are replaced.

    Of a tag these are copies of its data ``files``, of an alert the ``rows`` of its objects.
    """

    columns: Sequence[str]
    files: Sequence[str] = ()
    rows: pa.Table | None = None


@dataclass(frozen=True)
class VersionVector:
    """By table the snapshot to read; ``moment`` describes what the vector belongs to.

    ``now_ns``: the mission time of a past moment; None: that of the mission clock.
    """

    snapshots: Mapping[str, TableSnapshot]
    moment: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, KeptTable] = field(default_factory=dict)
    now_ns: int | None = None

    def __str__(self) -> str:
        return ",".join(f"{name}={each.version}" for name, each in sorted(self.snapshots.items()))

    def only(self, table: str) -> "VersionVector":
        """Return the part of this state that is ``table``, which it has."""
        kept = {table: self.kept[table]} if table in self.kept else {}
        return replace(self, snapshots={table: self.snapshots[table]}, kept=kept)


def decision_vector(lake: Lake, tables: Mapping[str, Table], table: Table, commit: Commit) -> VersionVector:
    """Return the least consistent state that contains ``commit`` of ``table``: all that the decision rests on.

    Tables that it did not read, however indirectly, are not in it. Where two ways lead to one table, the later version
    counts. Raises VersionExpired where a log no longer holds a commit that is needed.
    """
    vector = {table.name: TableSnapshot(table.name, commit.version, commit.sequence)}
    changed = [table.name]
    while changed:
        name = changed.pop()
        end = _commit_of(lake.log(tables[name]), vector[name])
        for read in end.manifest.inputs() if end else ():
            if read.table not in tables:
                continue  # a table of an earlier version of the platform
            if read.table not in vector or read.sequence > vector[read.table].sequence:
                vector[read.table] = read
                changed.append(read.table)
    return VersionVector(vector, f"commit {commit.sequence} of {table.name}")


def newest_vector(lake: Lake, tables: Mapping[str, Table]) -> VersionVector:
    """Return the state of all ``tables`` now, made consistent: a consumer may have committed while the heads
    were read.
    """
    heads = {}
    for name, table in reversed(list(tables.items())):  # consumers first, so that what they consumed is there
        head = lake.log(table).head()
        heads[name] = TableSnapshot(name, head.commit_version, head.sequence)
    return VersionVector(consistent(lake, tables, heads), "now")


def vector_at(
    lake: Lake, tables: Mapping[str, Table], moment: str, is_by_then: Callable[[Commit], bool]
) -> VersionVector:
    """Find the newest consistent state whose commits ``is_by_then`` accepts: one commit of each table.

    A table whose first commit came later is in it without rows. Raises VersionExpired where a log was cut above the
    commit that is needed.
    """
    found = {name: _newest(lake.log(table), moment, is_by_then) for name, table in tables.items()}
    return VersionVector(consistent(lake, tables, found), moment)


def given_vector(lake: Lake, tables: Mapping[str, Table], versions: Mapping[str, int], moment: str) -> VersionVector:
    """Return the vector of these Delta versions; of a version between two commits of the platform, the commit below
    counts.
    """
    return VersionVector({name: snapshot_at(lake.log(tables[name]), v) for name, v in versions.items()}, moment)


def snapshot_at(log: TableLog, version: int) -> TableSnapshot:
    """Return the newest commit of the platform at or below ``version``. Raises VersionExpired where the log
    lacks it.
    """
    newest = log.version()
    if version > newest:
        raise VersionExpired(log.table.name, f"version {version}", f"the newest is {newest}", newest)
    nearest = next(log.commits_from(version), None)
    if nearest is not None:
        return TableSnapshot(log.table.name, nearest.version, nearest.sequence)
    return _newest(log, f"version {version}", lambda commit: commit.version <= version)


def consistent(
    lake: Lake, tables: Mapping[str, Table], vector: Mapping[str, TableSnapshot]
) -> dict[str, TableSnapshot]:
    """Return the greatest consistent state within ``vector``: consumers that are ahead of their inputs are set back."""
    lowered = dict(vector)
    changed = True
    while changed:
        changed = False
        for name in vector:
            end = _commit_of(lake.log(tables[name]), lowered[name])
            while end is not None and any(_is_ahead(read, lowered) for read in end.manifest.inputs()):
                lowered[name] = _before(lake.log(tables[name]), end)
                end = _commit_of(lake.log(tables[name]), lowered[name])
                changed = True
    return lowered


def _is_ahead(read: TableSnapshot, vector: Mapping[str, TableSnapshot]) -> bool:
    return read.table in vector and read.sequence > vector[read.table].sequence


def _commit_of(log: TableLog, snapshot: TableSnapshot) -> Commit | None:
    """Return the platform's newest commit in a snapshot, whose version may be another writer's; None before the
    first.
    """
    if snapshot.sequence == 0:
        return None
    commit = next(log.commits_from(snapshot.version), None)
    if commit is None or commit.sequence != snapshot.sequence:
        raise _expired(log, f"commit {snapshot.sequence}")
    return commit


def _before(log: TableLog, commit: Commit) -> TableSnapshot:
    return _newest(log, f"commit {commit.sequence - 1}", lambda other: other.sequence < commit.sequence)


def _newest(log: TableLog, requested: str, is_by_then: Callable[[Commit], bool]) -> TableSnapshot:
    name, oldest = log.table.name, None
    for commit in log.commits_from(log.version()):
        if is_by_then(commit):
            return TableSnapshot(name, commit.version, commit.sequence)
        oldest = commit
    if oldest is not None and oldest.sequence > 1:
        raise _expired(log, requested, oldest)
    return TableSnapshot(name, *BEFORE_THE_FIRST)


def _expired(log: TableLog, requested: str, oldest: Commit | None = None) -> VersionExpired:
    if oldest is None:
        oldest = min(log.commits(None), key=lambda commit: commit.version, default=None)
    nearest = (oldest.version, oldest.timestamp_ms) if oldest else (None, None)
    return VersionExpired(log.table.name, requested, "its log was cut after the retention", *nearest)
