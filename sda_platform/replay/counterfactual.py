"""What would have been: a commit made again on tables from which an input was left out.

Each table that would hold something else is a fork of the live one, see `fork`. It begins where the input first came
in, and every later commit is made again there under its own sequence. Other tables are the live ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from typing_extensions import override

from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableSnapshot, TableWindow
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import Table
from sda_platform.replay.history import History
from sda_platform.replay.replaying_lake import RecordedLake, RecordedPlan

# The commits of each forked table that differ from the live ones, and the one before them, by table and sequence.
Made = dict[str, dict[int, Commit]]


@dataclass(frozen=True)
class OtherInput:
    """How the input would have been: by table the rows left out (SQL), and other bytes of segments, by SHA-256."""

    left_out: Mapping[str, str] = field(default_factory=dict)
    corrected: Mapping[str, bytes] = field(default_factory=dict)


class CounterfactualLake(RecordedLake):
    """The lake as ``commit`` would have found it, with the tables of ``made`` as forks."""

    def __init__(
        self, live: Lake, table: Table, shadow_uri: str, history: History, commit: Commit, made: Made, left_out: str
    ) -> None:
        super().__init__(live, table, shadow_uri, history, commit)
        self._made = made
        self._left_out = left_out

    @override
    def log(self, table: Table) -> TableLog:
        """Return the fork's log where there is one, else the live one."""
        return super().log(table) if table.name in self._made else self._live.log(table)

    @override
    def append(
        self,
        plan: Plan,
        rows: DataFrame | pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        watermarks: Mapping[str, int] | None = None,
    ) -> CommitReceipt:
        """Append as `Lake.append`, without the rows that are left out."""
        if self._left_out:
            found = self.frame(plan.table, rows) if isinstance(rows, pa.Table) else rows
            rows = found.where(f"NOT coalesce({self._left_out}, false)")
        return super().append(plan, rows, counts=counts, watermarks=watermarks)

    def made(self) -> Commit:
        """Return the commit that the asset made; where it found nothing to do, one without rows, so that later ones
        follow.
        """
        log, sequence = self.log(self._target), self._recorded.sequence
        found = log.head().commit
        if found is not None and found.sequence == sequence:
            return found
        plan, none = self._plan(), self._target.arrow_schema.empty_table()
        if self._target.replaces_rows:
            return self.replace(plan, none.select(self._target.content_schema.names)).commit
        marks = plan.previous.watermarks if plan.previous else None
        return super().append(plan, none, watermarks=marks).commit

    @override
    def _plan(self) -> RecordedPlan:
        """Return the recorded plan, of the versions that the forks have."""
        recorded = super()._plan()
        before = self._made[self._target.name].get(recorded.sequence - 1)
        return replace(
            recorded,
            windows=tuple(self._window(each) for each in recorded.windows),
            snapshots=tuple(self._snapshot(each) for each in recorded.snapshots),
            previous=before.manifest if before else None,
            previous_sha256=before.manifest_sha256 if before else recorded.previous_sha256,
        )

    def _window(self, window: TableWindow) -> TableWindow:
        made = self._made.get(window.table, {})
        first, last = made.get(window.after_sequence), made.get(window.upto_sequence)
        found = replace(window, after_version=first.version) if first else window
        return replace(found, upto_version=last.version, upto_sha256=last.manifest_sha256) if last else found

    def _snapshot(self, snapshot: TableSnapshot) -> TableSnapshot:
        made = self._made.get(snapshot.table, {}).get(snapshot.sequence)
        return replace(snapshot, version=made.version) if made else snapshot
