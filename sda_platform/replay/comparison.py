"""Whether a replayed history equals the live one: every row and every manifest, commit by commit."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.replay.differences import differences
from sda_platform.replay.digest import digest
from sda_platform.replay.history import History


@dataclass(frozen=True)
class Comparison:
    """The verdict on one table. ``digest`` is of the replayed rows; two equal replays have the same."""

    table: str
    first_sequence: int
    last_sequence: int
    rows: int
    digest: str
    differences: tuple[str, ...]
    not_replayed: str = ""
    """Why the table could not be replayed; empty: it was."""

    @property
    def is_identical(self) -> bool:
        """Whether the live table is, bit for bit, what follows from its inputs."""
        return not self.differences and not self.not_replayed


def compare(live: TableLog, shadow: TableLog, replayed: History) -> Comparison:
    """Compare what the live table holds of these commits with the shadow; a commit's rows at a time.

    Where commits replace rows, the state after the last of them is compared, at its version (raises VersionGone).
    """
    hashed, count, found = hashlib.sha256(), 0, []
    if strays := count_strays(live, replayed):
        found.append(f"{strays} rows carry a sequence that was never committed")
    again = {commit.sequence: commit for commit in shadow.commits(None)}
    origins = {commit.sequence: _origin(commit, again.get(commit.sequence)) for commit in replayed.commits}
    for commit in replayed.commits:
        lines = _manifest_differences(commit, again.get(commit.sequence))
        found += [f"sequence {commit.sequence}{origins[commit.sequence]}: {line}" for line in lines]
    for name, sequence, stored, made in _parts(live, shadow, replayed):
        hashed.update(digest(live.table, made).encode())
        count += made.num_rows
        found += [f"{name}{origins[sequence]}: {line}" for line in differences(live.table, stored, made)]
    return Comparison(live.table.name, replayed.first, replayed.last, count, hashed.hexdigest(), tuple(found))


def _parts(live: TableLog, shadow: TableLog, replayed: History) -> Iterator[tuple[str, int, pa.Table, pa.Table]]:
    """Yield what is compared at once: name, commit sequence, stored rows, replayed rows."""
    if live.table.replaces_rows:
        version = None if replayed.reaches_head else replayed.commits[-1].version
        yield f"as of sequence {replayed.last}", replayed.last, live.rows(version=version), shadow.rows()
        return
    for sequence in range(replayed.first, replayed.last + 1):
        window = (sequence - 1, sequence)
        yield f"sequence {sequence}", sequence, live.rows_of(window), shadow.rows_of(window)


def _origin(recorded: Commit, again: Commit | None) -> str:
    """Return which code made the commit and which replayed it, if they differ: that may explain a difference."""
    made_by = recorded.manifest.code_version
    replayed_by = again.manifest.code_version if again else made_by
    return "" if made_by == replayed_by else f" (made by {made_by or 'unknown code'}, replayed by {replayed_by})"


def _manifest_differences(recorded: Commit, again: Commit | None) -> Iterator[str]:
    """Yield the differences of a commit apart from its rows: counts, watermarks, segments, rows written."""
    if again is None:
        yield "the replay found nothing to commit"
        return
    for name in (f.name for f in fields(CommitManifest) if f.name != "code_version"):
        before, now = getattr(recorded.manifest, name), getattr(again.manifest, name)
        if before != now:
            yield f"{name}: recorded {before}, replayed {now}"
    if recorded.rows_written != again.rows_written:
        yield f"{recorded.rows_written} rows written, {again.rows_written} when replayed"


def count_strays(live: TableLog, replayed: History) -> int:
    """Count the rows that no commit of the table can have written."""
    written = ds.field(COMMIT_SEQUENCE)
    stray = written.is_null() | (written < 1)
    if replayed.reaches_head:
        stray |= written > replayed.last
    return int(live.rows([COMMIT_SEQUENCE], stray, replayed.version).num_rows)
