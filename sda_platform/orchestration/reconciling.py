"""`sda reconcile`: a table against what follows from its inputs, commit by commit, and the repair of what differs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.restoration import remove_strays, restore_rows
from sda_platform.lake.table import Table
from sda_platform.orchestration.replaying import Progress, leased, make_again
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
    another count, is not restored: then the code or the recorded inputs differ, not the stored rows. A table without a
    commit in ``span`` is left out. Raises NotReplayable, SegmentLost.
    """
    found = []
    for table in tables:
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


def _differs(log: TableLog, shadow: TableLog, table: Table, sequence: int) -> bool:
    window = (sequence - 1, sequence)
    return bool(differences(table, log.rows_of(window), shadow.rows_of(window)))
