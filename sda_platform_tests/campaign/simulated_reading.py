"""T0's own reading of the tables: JSON lines and Parquet from the simulated disk, without the platform's code."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sda_platform_tests.campaign.disk import Disk, parent
from sda_platform_tests.campaign.simulated_delta import actions_in, rows_in

_LAKE = "/lake"


@dataclass(frozen=True)
class StoredCommit:
    """One commit with a transaction of its table: the Delta ``version``, the ``sequence``, and its manifest's text."""

    version: int
    sequence: int
    text: str

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """What the manifest states. Raises ValueError where it is no JSON."""
        return dict(json.loads(self.text))

    @property
    def sha256(self) -> str:
        """Hash of the manifest's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def window(self, upstream: str) -> tuple[int, int]:
        """The sequences ``(after, upto]`` of ``upstream`` that it consumed; (0, 0) where it consumed none."""
        found = [w for w in self.manifest["windows"] if w["table"] == upstream]
        return (found[0]["after_sequence"], found[0]["upto_sequence"]) if found else (0, 0)


def stored_commits(disk: Disk, table: str) -> list[StoredCommit]:
    """The platform's commits to ``table``, oldest first. Raises ValueError for a log with a gap or a torn version."""
    found = []
    for version, actions in enumerate(_versions(disk, table)):
        facts = dict(actions)
        if "txn" in facts:
            found.append(StoredCommit(version, facts["txn"]["version"], facts["commitInfo"]["userMetadata"]))
    return found


def stored_rows(disk: Disk, table: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """These columns of every row in the live files.

    Raises ValueError for a log with a gap or a torn version, FileNotFoundError for a lost file.
    """
    live: dict[str, None] = {}
    for actions in _versions(disk, table):
        for kind, action in actions:
            if kind == "add":
                live[action["path"]] = None
            elif kind == "remove":
                live.pop(action["path"], None)
    tables = [rows_in(disk.file(f"{_LAKE}/{table}/{name}").data) for name in live]
    return [row for rows in tables for row in rows.select(list(columns)).to_pylist()]


def unsynced_versions(disk: Disk, table: str) -> list[int]:
    """The versions of which a power loss may take the commit or a data file."""
    found = []
    for path in disk.below(f"{_LAKE}/{table}/_delta_log"):
        if path.endswith(".json") and parent(path).endswith("_delta_log"):
            files = [path, *(f"{_LAKE}/{table}/{name}" for name in _added(disk.file(path).data))]
            if not all(map(disk.is_durable, files)):
                found.append(int(path.rpartition("/")[2].removesuffix(".json")))
    return found


def _added(commit: bytes) -> list[str]:
    """The data files that a commit added; none of one that an earlier power loss tore."""
    try:
        return [action["path"] for kind, action in actions_in(commit) if kind == "add"]
    except ValueError:
        return []


def _versions(disk: Disk, table: str) -> list[list[tuple[str, dict[str, Any]]]]:
    """The actions of every version."""
    directory = f"{_LAKE}/{table}/_delta_log"
    prefix = len(directory) + 1
    names = sorted(path for path in disk.below(directory) if path.endswith(".json") and "/" not in path[prefix:])
    if [int(path[prefix:-5]) for path in names] != list(range(len(names))):
        raise ValueError(f"the log of {table} has a gap: {names}")
    return [actions_in(disk.file(path).data) for path in names]
