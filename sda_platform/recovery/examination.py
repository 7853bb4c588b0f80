"""Whether a table's log and files are what they were when they were committed; nothing is changed here.

Delta takes what a power loss can leave behind for granted: an emptied last commit is read as no commit at all, and
``count()`` answers from statistics when the data file is gone. So the log's files are read as files, one after the
other from Delta's own checkpoint on, and every live data file is opened (spec: exactly-once 58, 97-100).
"""

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from sda_platform.lake import delta_log, durable, properties, unsynced
from sda_platform.lake.errors import InvariantError, OtherSchemaVersion, UnreadableManifest
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head, commit_in
from sda_platform.lake.storage import location
from sda_platform.recovery.file_content import ContentDamaged, rows_by_columns, rows_by_footer
from sda_platform.recovery.log_files import LogFiles, is_json
from sda_platform.recovery.verification import broken_chain

_OPENED_AT_ONCE = 8
_TOLD = 3


class Depth(IntEnum):
    """How far one looks. Each looks at all that the one before does.

    NEWEST: into the data files since Delta's checkpoint; others may write meanwhile. PRESENCE: at the name and size of
    every data file, and at all columns of the newest commit's files. FOOTERS: into each of them. COLUMNS: at all it
    holds. Columns are compared with the checksum that Spark wrote with each page.
    """

    NEWEST = 1
    PRESENCE = 2
    FOOTERS = 3
    COLUMNS = 4


@dataclass(frozen=True)
class Damage:
    """What is not as it was committed, in words; from which version on, where the versions before it are sound.

    ``remedy`` is what a person does, where neither a repair nor a backup is what helps. ``below``: if a person accepts
    it, the versions below this one are set aside. ``is_of_files``: only live data files are damaged.
    """

    text: str
    from_version: int | None = None
    remedy: str | None = None
    below: int | None = None
    is_of_files: bool = False


@dataclass(frozen=True)
class Examination:
    """What was found. ``torn`` are files that Delta derives from the commits and can do without.

    ``unsynced`` is the sync that failed (`lake.unsynced`): what was read may not be on disk.
    """

    table: str
    version: int = -1
    sequence: int = 0
    commits_read: int = 0
    files_seen: int = 0
    torn: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    unsynced: str | None = None
    seconds: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Whether nothing is amiss."""
        return self.reads_as_written and self.unsynced is None

    @property
    def reads_as_written(self) -> bool:
        """Whether what was read is what was written."""
        return not self.torn and not self.damage

    @property
    def is_absent(self) -> bool:
        """Whether the table has no log."""
        return self.version < 0 and self.is_sound

    @property
    def problems(self) -> list[str]:
        """What is amiss, in words."""
        failed = [] if self.unsynced is None else [f"a sync failed: {self.unsynced}"]
        return [*(f"{name} is torn or points nowhere" for name in self.torn), *(d.text for d in self.damage), *failed]


def examine(log: TableLog, depth: Depth) -> Examination:
    """Look at one table. Behind a damaged log nothing is looked for: what should be there is not known then."""
    began = time.perf_counter()
    return replace(_examined(log, depth), seconds=time.perf_counter() - began)


def _examined(log: TableLog, depth: Depth) -> Examination:
    files = LogFiles.listed(log.uri) if depth > Depth.NEWEST else LogFiles.newest(log.uri)
    found = Examination(log.table.name, files.last_commit, unsynced=unsynced.reason(files.directory))
    if not files.commits and not files.others:
        return found
    if depth is Depth.COLUMNS:
        for name in files.names:
            durable.forget_cached(files.directory / name)
    # While others write, what Delta derives from a commit comes and goes.
    torn = files.torn() if depth > Depth.NEWEST else ()
    lost = [*_lost_commits(files, torn), *_lost_beginning(files)] if depth > Depth.NEWEST else []
    first = files.first_to_read
    found = replace(found, torn=torn, commits_read=files.last_commit + 1 - first)
    holes = _holes(log, files, first) if depth > Depth.NEWEST else []
    damage = [*_damaged_commits(log, files, first), *lost, *holes]
    if torn or damage:
        return replace(found, damage=tuple(damage))
    try:
        altered = _altered_properties(log, files, first, depth)
        # In a run, exactly_once looks at the chain.
        chain = broken_chain(log.commits()) if depth > Depth.NEWEST else []
        head = log.head() if depth > Depth.NEWEST else Head()
        opened, in_files = _damaged_files(log, files, first, depth, unsynced_from=log.first_unproven(head))
    except (InvariantError, DeltaError) as error:
        return replace(found, damage=(_damage_of(error),))
    damage = [*map(Damage, chain), *altered, *in_files]
    return replace(found, sequence=head.sequence, files_seen=opened, damage=tuple(damage))


def _damaged_commits(log: TableLog, files: LogFiles, first: int) -> list[Damage]:
    """Return the first version that is missing or cannot be read, or whose manifest cannot, if there is one.

    An emptied version that other versions follow is a commit that was lost before it was reported, and was made again.
    If a later commit of the platform was based on it, the chain of manifests is broken, and that is found. One of
    another tool, as a compaction, removes files that no other version added.
    """
    for version in range(first, files.last_commit + 1):
        if version not in files.commits:
            return [Damage(f"version {version} is missing, later ones are there")]
        text = files.text(version)
        if not text.strip() and version < files.last_commit:
            if _removes_unknown_files(log, files, first, after=version):
                return [Damage(f"version {version} is empty, and a later one removes what it added", version)]
            continue
        if not text.strip():
            return [Damage(f"version {version} is empty", version)]
        is_last = version == files.last_commit
        if not all(map(is_json, filter(None, text.split("\n")))) or not any(delta_log.actions(text, "commitInfo")):
            return [Damage(f"version {version} is torn", version if is_last else None)]
        try:
            commit_in(log.table, version, text)
        except InvariantError as error:
            return [_damage_of(error, version)]
    return []


def _removes_unknown_files(log: TableLog, files: LogFiles, first: int, *, after: int) -> bool:
    """Return whether a version ``after`` that one removes a data file which no version that can be read added."""
    is_checkpointed = files.checkpoint_below(first) == first
    known = set(delta_log.data_files(log.uri, log.open(first))) if is_checkpointed else set()
    removed = set()
    for version in range(first, files.last_commit + 1):
        text = files.text(version)
        known.update(delta_log.added_files(log.uri, text))
        if version > after:
            removed.update(delta_log.removed_files(log.uri, text))
    return not removed <= known


def _damage_of(error: Exception, version: int | None = None) -> Damage:
    """Return the text of an error that was raised when commits, or that of ``version``, were read."""
    if isinstance(error, OtherSchemaVersion):
        return Damage(str(error), remedy="Its rows are not damaged")
    return Damage(str(error), version if isinstance(error, UnreadableManifest) else None)


def _lost_commits(files: LogFiles, torn: Sequence[str]) -> list[Damage]:
    """A commit that is gone while what Delta derived from it is still there."""
    beyond = {v for name, v in files.others.items() if v > files.last_commit and name not in torn}
    return [Damage(f"version {min(beyond)} is missing, files derived from it are there", min(beyond))] if beyond else []


def _lost_beginning(files: LogFiles) -> list[Damage]:
    """A log whose old commits were removed, without any of Delta's checkpoints that it could be read from."""
    oldest = min(files.commits, default=0)
    if oldest == 0 or files.checkpoint_below(files.last_commit) is not None:
        return []
    return [Damage(f"the log begins at version {oldest}, and none of Delta's checkpoints can be read")]


def _holes(log: TableLog, files: LogFiles, first: int) -> list[Damage]:
    """A version that is missing among those before Delta's newest checkpoint; the clean-up removes the oldest only."""
    missing = [version for version in range(min(files.commits, default=first), first) if version not in files.commits]
    if not missing:
        return []
    text = f"version {missing[0]} of the log is missing, and older ones are there: the history has a hole"
    return [
        Damage(
            text,
            remedy=f"No row is lost. Restore the file from a backup. Or run `sda lake verify --repair --accept-loss "
            f"{log.table.name}`: it sets the versions below the hole aside, and the history begins after it",
            below=max(missing) + 1,
        )
    ]


def _altered_properties(log: TableLog, files: LogFiles, first: int, depth: Depth) -> list[Damage]:
    """Required properties of the table that were changed from outside; in a run, by the newest commits."""
    stored: Mapping[str, str | None]
    if depth > Depth.NEWEST:
        stored = log.properties()
    else:
        texts = map(files.text, range(first, files.last_commit + 1))
        written = [action for text in texts for _, action in delta_log.actions(text, "metaData")]
        stored = written[-1].get("configuration", {}) if written else properties.REQUIRED
    wrong = properties.differences(stored)
    if not wrong:
        return []
    text = f"{log.table.name}: its Delta properties were changed: {'; '.join(wrong)}"
    return [Damage(text, remedy=f"Run {properties.correction(log.uri, stored)}")]


def _damaged_files(
    log: TableLog, files: LogFiles, first: int, depth: Depth, *, unsynced_from: int
) -> tuple[int, list[Damage]]:
    """Return how many live data files were looked at, and those that are missing, torn, shorter or other than they
    were.

    A power loss can take single pages of what was not synced: of the files that came with version ``unsynced_from``
    or later. Of those the columns are read at every depth but the first.
    """
    newest = _newest_additions(files, first)
    added_by = {path: version for path, (version, _) in newest.items()}
    # What came since that checkpoint is in the commits themselves: Delta's view costs more the more files are live.
    chosen = log.live_files().to_pylist() if depth > Depth.NEWEST else [add for _, add in newest.values()]

    def depth_of(name: str) -> Depth:
        version = added_by.get(name, -1)
        if depth > Depth.NEWEST and version >= unsynced_from:
            return Depth.COLUMNS
        return max(depth, Depth.FOOTERS) if version >= 0 else depth

    names = log.stored_columns() if depth > Depth.NEWEST else frozenset()
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        found = list(pool.map(lambda add: _file_problem(log.uri, add, depth_of(unquote(add["path"])), names), chosen))
    wrong = [(unquote(add["path"]), problem) for add, problem in zip(chosen, found, strict=True) if problem]
    if not wrong:
        return len(chosen), []
    versions = [added_by.get(path) for path, _ in wrong]
    oldest = min((v for v in versions if v is not None), default=None)
    listed = "; ".join(f"{path} {problem}" for path, problem in wrong[:_TOLD])
    more = f" and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
    first_damaged = None if None in versions else oldest
    return len(chosen), [Damage(f"live data files: {listed}{more}", first_damaged, is_of_files=True)]


def damaged_files(log: TableLog, depth: Depth) -> dict[str, str]:
    """Return the live data files that are missing, torn or other than they were, as far as ``depth`` shows, each with
    what is wrong.
    """
    names, adds = log.stored_columns(), log.live_files().to_pylist()
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        found = list(pool.map(lambda add: _file_problem(log.uri, add, depth, names), adds))
    return {unquote(add["path"]): problem for add, problem in zip(adds, found, strict=True) if problem}


def _newest_additions(files: LogFiles, first: int) -> dict[str, tuple[int, dict[str, Any]]]:
    """Live data files that came with version ``first`` or later: the version, and what `TableLog.live_files` has."""
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for version in range(first, files.last_commit + 1):
        for kind, action in delta_log.actions(files.text(version), "add", "remove"):
            path = unquote(action["path"])
            if kind == "remove":
                found.pop(path, None)
                continue
            rows = json.loads(action.get("stats") or "{}").get("numRecords")
            found[path] = (version, {"path": action["path"], "size_bytes": action["size"], "num_records": rows})
    return found


def _file_problem(uri: str, add: dict[str, Any], depth: Depth, names: frozenset[str]) -> str | None:
    path = location(uri) / unquote(add["path"])
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return "is missing"
    if size != add["size_bytes"]:
        return f"has {size} bytes, not {add['size_bytes']}"
    if depth < Depth.FOOTERS:
        return None
    try:
        rows = rows_by_columns(path, names) if depth is Depth.COLUMNS else rows_by_footer(path)
    except ContentDamaged as damage:
        return str(damage)
    return f"has {rows} rows, not {add['num_records']}" if add["num_records"] not in (None, rows) else None
