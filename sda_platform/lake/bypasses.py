"""Versions of a table whose rows another writer changed: nothing names the run, the code and the inputs of such rows.

A compaction changes no row, and a restoration names what it restores. Every other change of rows must be a commit of
the platform, whose manifest names writer, code version and inputs.
"""

from collections.abc import Iterator
from typing import Any

from sda_platform.clock import iso
from sda_platform.lake import delta_log
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import commit_in
from sda_platform.lake.restoration import RESTORED


def bypasses(log: TableLog, since_ns: int) -> Iterator[str]:
    """Yield what changed rows of the table without lineage, newest first, in words.

    Versions are read down to the newest commit of the platform as of ``since_ns`` (mission time) or before, which is
    left out. Raises InvariantError, UnreadableManifest for what cannot be read.
    """
    for version, text in log.versions():
        commit = commit_in(log.table, version, text)
        if commit is None:
            if _changes_rows(text) and not _info(text).get("userMetadata", "").startswith(RESTORED):
                yield _described(log.table.name, version, text)
        elif commit.manifest.as_of_ns <= since_ns:
            return
        elif missing := commit.manifest.missing_lineage():
            yield f"{log.table.name}: commit {commit.sequence} names no {' and no '.join(missing)}"


def _changes_rows(text: str) -> bool:
    return any(action.get("dataChange", True) for _, action in delta_log.actions(text, "add", "remove"))


def _info(text: str) -> dict[str, Any]:
    return next((info for _, info in delta_log.actions(text, "commitInfo")), {})


def _described(table: str, version: int, text: str) -> str:
    info = _info(text)
    at = iso(int(info.get("timestamp", 0)) * 1_000_000)
    return (
        f"{table}: version {version} ({info.get('operation', 'unknown operation')} by "
        f"{info.get('engineInfo', 'an unknown engine')} at {at}) changed rows and is no commit of the platform; "
        f"`sda lake diff {table} {version - 1} {version}` shows them, `sda lake reconcile {table}` compares all "
        "with the inputs"
    )
