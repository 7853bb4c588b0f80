"""Exactly once, verified from the stored bytes: each function returns what is wrong, in words; nothing: all is well.

Columns are read, never only statistics: ``count()`` would answer even when a data file is gone.
"""

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.lake.correction_log import current_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import GENESIS
from sda_platform.lake.selections import Near
from sda_platform.lake.table import COMMIT_SEQUENCE, Table


def reviewed_span(commits: Sequence[Commit]) -> tuple[int, int]:
    """Return the sequences ``(after, upto]`` of the commits under review, newest first."""
    return (commits[-1].sequence - 1, commits[0].sequence) if commits else (0, 0)


def consumed_rows(store: Lake, commits: Sequence[Commit], source: Table, columns: Sequence[str]) -> pa.Table:
    """Return rows of ``source`` that the reviewed commits consumed."""
    return store.log(source).rows_of(consumed_span(commits, source), columns)


def consumed_span(commits: Sequence[Commit], source: Table) -> tuple[int, int]:
    """Return the sequences ``(after, upto]`` of ``source`` that the reviewed commits consumed; (0, 0): none."""
    windows = [w for w in (c.manifest.window(source.name) for c in commits) if w]
    return (min(w.after_sequence for w in windows), max(w.upto_sequence for w in windows)) if windows else (0, 0)


def joined_keys(rows: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Return the values of several columns of each row as one text, to compare keys of more than one column."""
    return pc.binary_join_element_wise(*(pc.cast(rows.column(name), pa.string()) for name in columns), "/")


def broken_chain(commits: Sequence[Commit]) -> list[str]:
    """Gaps and forks in a table's manifests, commits of former holders of its lease, and upstream commits skipped or
    consumed twice; newest first.
    """
    problems = []
    for newer, older in pairwise(c.manifest for c in commits):
        if newer.sequence != older.sequence + 1:
            problems.append(f"sequence {newer.sequence} follows {older.sequence}")
        elif newer.previous_sha256 != older.sha256:
            problems.append(f"sequence {newer.sequence} names another predecessor than sequence {older.sequence}")
        if older.fencing_token is not None and (newer.fencing_token or 0) < older.fencing_token:
            mine = f"token {newer.fencing_token}" if newer.fencing_token is not None else "no token"
            problems.append(
                f"sequence {newer.sequence} was committed under {mine}, after sequence {older.sequence} under token "
                f"{older.fencing_token}: leases overlapped"
            )
        for window in newer.windows:
            before = older.window(window.table)
            expected = before.upto_sequence if before else 0
            if window.after_sequence != expected:
                problems.append(
                    f"sequence {newer.sequence} consumed {window.table} after {window.after_sequence}, "
                    f"but sequence {older.sequence} ended at {expected}"
                )
    if commits and commits[-1].manifest.sequence == 1 and commits[-1].manifest.previous_sha256 != GENESIS:
        problems.append("sequence 1 is not the first of its chain")
    return problems


def duplicate_keys(log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Keys of the reviewed commits that a row of them or of an earlier commit repeats."""
    table, span = log.table, reviewed_span(commits)
    times = log.rows_of(span, [table.time_column]).column(table.time_column)
    if not len(times):
        return []
    known = ds.field(COMMIT_SEQUENCE) <= span[1]
    rows = log.rows(
        list(dict.fromkeys((*table.key, COMMIT_SEQUENCE))),
        known if table.replaces_rows else known & Near(table.time_column, times).expression(),
    )
    counted = rows.group_by(list(table.key)).aggregate([([], "count_all"), (COMMIT_SEQUENCE, "max")])
    is_new = pc.greater(counted.column(f"{COMMIT_SEQUENCE}_max"), span[0])
    repeated = counted.filter(pc.and_(is_new, pc.greater(counted.column("count_all"), 1)))
    keys = sorted(str(tuple(row[k] for k in table.key)) for row in repeated.select(list(table.key)).to_pylist())
    return [f"{len(keys)} keys occur more than once, such as {', '.join(keys[:3])}"] if keys else []


def unbalanced_segments(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Segments of a bronze table whose stored rows differ from the records that landed: valid + dead = landed."""
    span = reviewed_span(commits)
    grouped = log.rows_of(span, ["segment_sha256"]).group_by("segment_sha256").aggregate([([], "count_all")])
    stored = {row["segment_sha256"]: row["count_all"] for row in grouped.to_pylist()}
    problems = []
    for manifest in (c.manifest for c in commits):
        for segment in manifest.segments:
            found = stored.pop(segment.sha256, 0)
            if found != segment.records:
                problems.append(f"{segment.zone}/{segment.name}: {segment.records} records landed, {found} rows stored")
    return problems + [
        f"{count} rows of a segment {sha256[:12]}… that no commit names" for sha256, count in sorted(stored.items())
    ]


def missing_or_surplus(expected: pa.ChunkedArray, found: pa.ChunkedArray, what: str) -> list[str]:
    """Return how two collections of keys differ: what is expected and absent, found and unexpected, or found twice."""
    wanted, present = pc.unique(expected), pc.unique(found)
    absent = pc.sum(pc.invert(pc.is_in(wanted, present))).as_py() or 0
    surplus = pc.sum(pc.invert(pc.is_in(present, wanted))).as_py() or 0
    twice = len(found) - len(present)
    counts = ((absent, "missing"), (surplus, "unexpected"), (twice, "repeated"))
    return [f"{count} {what} {how}" for count, how in counts if count]


def broken_correction_logs(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Keys touched by the reviewed commits whose entries are not insert 0, retract 0, insert 1, …."""
    key = log.table.key[0]
    touched = pc.unique(log.rows_of(reviewed_span(commits), [key]).column(key))
    entries = log.rows([key, "sequence", "op"], ds.field(key).isin(touched))
    entries = entries.sort_by([(key, "ascending"), ("sequence", "ascending"), ("op", "ascending")])
    turns_of: dict[str, list[tuple[int, str]]] = {}
    for row in entries.to_pylist():
        turns_of.setdefault(row[key], []).append((row["sequence"], row["op"]))
    wrong = [name for name, turns in turns_of.items() if not _alternates(turns)]
    return [f"{len(wrong)} correction logs do not alternate, such as {wrong[0]}: {turns_of[wrong[0]]}"] if wrong else []


def _alternates(turns: Sequence[tuple[int, str]]) -> bool:
    return all(turn == (n // 2, "retract" if n % 2 else "insert") for n, turn in enumerate(turns))


def current_keys(
    log: TableLog, columns: Sequence[str] = (), version: int | None = None, where: ds.Expression | None = None
) -> pa.Table:
    """Read key and ``columns`` of the current entries of a correction log, or of those current at ``version``.

    ``where`` must select all entries of a key, or none.
    """
    key = log.table.key[0]
    entries = log.rows([key, "sequence", "op", *columns], where, version)
    return current_rows(entries, key).drop_columns(["sequence"])
