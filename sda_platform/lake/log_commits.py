"""Commits as values: the platform's commit in a version of a Delta log, and the newest state of a table."""

from dataclasses import dataclass
from typing import Any

from sda_platform.lake import delta_log
from sda_platform.lake.errors import InvariantError, OtherSchemaVersion, UnreadableManifest
from sda_platform.lake.manifest import CHANGED_ROWS, GENESIS, SAME_COLUMNS_SINCE, CommitManifest
from sda_platform.lake.table import Table


@dataclass(frozen=True)
class Commit:
    """One commit of the platform as its table's log holds it."""

    version: int
    timestamp_ms: int
    rows_written: int
    manifest: CommitManifest

    @property
    def sequence(self) -> int:
        """Its number among the platform's commits to the table."""
        return self.manifest.sequence

    @property
    def manifest_sha256(self) -> str:
        """SHA-256 of its manifest's text."""
        return self.manifest.sha256


@dataclass(frozen=True)
class Head:
    """The newest state of a table. ``sequence`` 0 and ``version`` -1: the table has no commit.

    ``version`` is the newest Delta version of any writer. ``commit`` is the platform's newest commit, possibly older.
    """

    version: int = -1
    sequence: int = 0
    commit: Commit | None = None

    @property
    def manifest_sha256(self) -> str:
        """The predecessor's hash that the next manifest must contain."""
        return self.commit.manifest_sha256 if self.commit else GENESIS

    @property
    def commit_version(self) -> int:
        """The Delta version of the platform's newest commit; -1 where there is none."""
        return self.commit.version if self.commit else -1


def commit_in(table: Table, version: int, text: str) -> Commit | None:
    """Parse the platform's commit from the ``text`` of a version's file; None for another writer's or an emptied one.

    Raises UnreadableManifest where the manifest is damaged, InvariantError where a line is torn. Raises
    OtherSchemaVersion where an earlier version of the platform derived the table: its columns had other names. What
    was landed keeps its columns.
    """
    info: dict[str, Any] = {}
    sequence = None
    try:
        for kind, action in delta_log.actions(text, "commitInfo", "txn"):
            if kind == "commitInfo":
                info = action
            elif action["appId"] == table.app_id:
                sequence = int(action["version"])
    except ValueError as error:
        raise InvariantError(f"{table.name}: version {version} of the log is not readable: {error}") from error
    if sequence is None:
        return None
    try:
        manifest = CommitManifest.from_json(str(info.get("userMetadata", "")))
        if manifest.sequence != sequence:
            raise UnreadableManifest(f"its sequence is {manifest.sequence}")
    except UnreadableManifest as error:
        raise UnreadableManifest(
            f"{table.name}: the manifest of commit {sequence} (version {version}) is damaged: {error}; "
            "stop the platform and run `sda lake verify`, which reports what can be repaired"
        ) from error
    if manifest.table != table.name:
        raise InvariantError(f"a commit of {manifest.table} lies in the log of {table.name}")
    if manifest.schema_version < SAME_COLUMNS_SINCE and not table.zones:
        raise OtherSchemaVersion(
            f"{table.name}: commit {sequence} was made by an earlier version of the platform (schema version "
            f"{manifest.schema_version}), whose columns have other names. Run "
            "`sda lake verify --repair --rebuild all`: it keeps what was landed, and the platform makes all other "
            "tables anew from it"
        )
    return Commit(version, int(info["timestamp"]), _rows_written(info, manifest), manifest)


def _rows_written(entry: dict[str, Any], manifest: CommitManifest) -> int:
    """Return rows that are new or replaced; an overwrite's own metrics count the rows that it kept, too."""
    metrics = entry.get("operationMetrics") or {}
    return int(manifest.counts.get(CHANGED_ROWS, metrics.get("numOutputRows") or 0))
