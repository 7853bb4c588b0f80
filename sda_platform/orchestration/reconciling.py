"""`sda lake reconcile`: a table against what follows from its inputs, by commit, and the repair of what differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.lost_tables import remedy
from sda_platform.lake.restoration import remove_strays, restore_files, restore_rows
from sda_platform.lake.storage import arrow_directory
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.orchestration.replaying import Progress, leased, make_again
from sda_platform.recovery.examination import Depth, damaged_files
from sda_platform.replay.comparison import compare, count_strays
from sda_platform.replay.differences import differences
from sda_platform.replay.history import EVERY_COMMIT, History, Span, history


@dataclass(frozen=True)
class ReconciledTable:
    """One table. ``differing``: sequences of the commits whose rows differ. ``refused``: why they are not restored."""

    table: str
    first_sequence: int
    last_sequence: int
    differing: tuple[int, ...]
    differences: tuple[str, ...]
    has_strays: bool = False
    is_restored: bool = False
    refused: str | None = None

    @property
    def is_level(self) -> bool:
        """Whether the table holds what follows from its inputs."""
        return not self.differences or self.is_restored


def reconcile(
    live: Lake,
    shadow_uri: str,
    resources: Mapping[str, Any],
    *,
    tables: Sequence[Table],
    span: Span = EVERY_COMMIT,
    apply: bool,
    report: Progress = lambda *_: None,
) -> list[ReconciledTable]:
    """Compare ``tables``, inputs before consumers, with a replay; with ``apply`` restore the rows that differ.

    A consumer is compared with its input as that is after its own restoration. A difference in a manifest, such as
    another count, is not restored: then the code or the recorded inputs differ, not the stored rows. Of a table with
    damaged data files only their rows are made again, whatever the span. A table without a commit in ``span`` is left
    out. Raises NotReplayable, SegmentLost.
    """
    found = []
    # Where a part of the history is compared, reading all of the table would cost more than the comparison.
    depth = Depth.COLUMNS if span == EVERY_COMMIT else Depth.PRESENCE
    for table in tables:
        damaged = damaged_files(live.log(table), depth) if live.log(table).version() >= 0 else {}
        if damaged:
            found.append(_refilled(live, table, shadow_uri, resources, damaged, report, apply=apply))
            continue
        replayed = history(live.log(table), span)
        if replayed is not None:
            with leased(live, table, replayed):
                shadow = make_again(live, table, shadow_uri, replayed, resources, report)
                found.append(_reconciled(live, table, shadow, replayed, apply=apply))
    return found


def _reconciled(live: Lake, table: Table, shadow: TableLog, replayed: History, *, apply: bool) -> ReconciledTable:
    log = live.log(table)
    problems = compare(log, shadow, replayed).differences
    ends = (table.name, replayed.first, replayed.last)
    if not problems:
        return ReconciledTable(*ends, (), ())
    if table.replaces_rows:
        reason = "its commits replace rows: move the table away and restart, so that it is built anew"
        return ReconciledTable(*ends, (), problems, refused=reason)
    differing = tuple(commit.sequence for commit in replayed.commits if _differs(log, shadow, table, commit.sequence))
    strays = replayed.reaches_head and count_strays(log, replayed) > 0
    if not differing and not strays:
        reason = "the manifests differ, not the rows: was a setting, the code or an input changed?"
        return ReconciledTable(*ends, (), problems, refused=reason)
    if apply:
        for sequence in differing:
            restore_rows(live, table, sequence, shadow.rows_of((sequence - 1, sequence)))
        if strays:
            remove_strays(live, table, replayed.last)
    return ReconciledTable(*ends, differing, problems, strays, is_restored=apply)


def _refilled(
    live: Lake,
    table: Table,
    shadow_uri: str,
    resources: Mapping[str, Any],
    damaged: Mapping[str, str],
    report: Progress,
    *,
    apply: bool,
) -> ReconciledTable:
    """Make the rows of damaged data files again, by a replay of the commits that wrote them."""
    log = live.log(table)
    problems = tuple(f"{name} {problem}" for name, problem in damaged.items())
    span = _sequences_in(log, damaged)
    replayed = history(log, span)
    first, last = span.from_sequence, min(span.to_sequence, log.head().sequence)
    if table.replaces_rows or replayed is None or (replayed.first, replayed.last) != (first, last):
        why = "its commits replace rows" if table.replaces_rows else f"commits {first} to {last} left the log"
        return ReconciledTable(table.name, first, last, (), problems, refused=f"{why}. {remedy(log)}")
    with leased(live, table, replayed):
        shadow = make_again(live, table, shadow_uri, replayed, resources, report)
        wanted = shadow.rows_of((replayed.first - 1, replayed.last))
        lost = _absent(table, wanted, _held(log, damaged))
        sequences = tuple(sorted(set(lost[COMMIT_SEQUENCE].to_pylist())))
        if apply:
            restore_files(live, table, list(damaged), lost)
    counted = (*problems, f"{lost.num_rows} rows of commits {replayed.first} to {replayed.last} are lost with them")
    return ReconciledTable(table.name, replayed.first, replayed.last, sequences, counted, is_restored=apply)


def _sequences_in(log: TableLog, damaged: Mapping[str, str]) -> Span:
    """Return the commits that may have rows in these files, by the bounds that the log has of them; else every
    commit.
    """
    bounds = log.file_bounds()
    own = bounds.filter(pa.array([unquote(path) in damaged for path in bounds["path"].to_pylist()]))
    names = (f"min.{COMMIT_SEQUENCE}", f"max.{COMMIT_SEQUENCE}")
    if own.num_rows < len(damaged) or any(n not in own.column_names or own[n].null_count for n in names):
        return EVERY_COMMIT
    return Span(pc.min(own[names[0]]).as_py(), pc.max(own[names[1]]).as_py())


def _held(log: TableLog, damaged: Mapping[str, str]) -> pa.Table:
    """Return the keys of the rows in all other live data files."""
    names = [name for name in map(unquote, log.live_files()["path"].to_pylist()) if name not in damaged]
    keys = list(log.table.key)
    if not names:
        return log.table.arrow_schema.empty_table().select(keys)
    return ds.dataset(names, filesystem=arrow_directory(log.uri), format="parquet").to_table(keys)


def _absent(table: Table, wanted: pa.Table, held: pa.Table) -> pa.Table:
    """Return the rows of ``wanted`` whose key ``held`` does not have."""
    numbered = wanted.select(table.key).append_column("row", pa.array(range(wanted.num_rows), pa.int64()))
    keys = held.select(table.key).cast(wanted.select(table.key).schema)
    return wanted.take(numbered.join(keys, list(table.key), join_type="left anti")["row"].combine_chunks().sort())


def _differs(log: TableLog, shadow: TableLog, table: Table, sequence: int) -> bool:
    window = (sequence - 1, sequence)
    return bool(differences(table, log.rows_of(window), shadow.rows_of(window)))
