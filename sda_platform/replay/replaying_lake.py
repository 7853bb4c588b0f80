"""Replay: make a commit again, from the inputs in its manifest, in a shadow of its table.

The asset's own code runs on this lake. Its plan is the recorded one: same windows, segments and predecessor, and the
recorded ``as_of`` instead of a clock. Inputs are the live tables within those windows; the target is the shadow. Code
that depends on nothing else writes the same rows and the same manifest again.

`RecordedLake` has the plan; `ReplayingLake` reads what was there, and `counterfactual` what would have been there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from typing_extensions import override

from sda_platform.clock import MissionClock
from sda_platform.lake import commit as commits
from sda_platform.lake.commit_spans import narrowed
from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.manifest import CommitManifest, SegmentRef, Settings
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.replay.history import History


@dataclass(frozen=True)
class RecordedPlan(Plan):
    """The plan that a commit carried out. Its manifest is the recorded one, as far as it is not computed anew."""

    nonce: str = ""

    def manifest(
        self, nonce: str, counts: Mapping[str, int] | None = None, watermarks: Mapping[str, int] | None = None
    ) -> CommitManifest:
        """See `Plan.manifest`; the ``nonce`` of a replay is that of the original."""
        del nonce
        return super().manifest(self.nonce, counts, watermarks)


class RecordedLake(Lake):
    """A lake on which ``commit``, one of ``history``, is planned as it was; it writes below ``shadow_uri``."""

    requires_lineage = False  # of a commit of an earlier version as little is known as it recorded

    def __init__(self, live: Lake, table: Table, shadow_uri: str, history: History, commit: Commit) -> None:
        as_of = MissionClock(commit.manifest.as_of_ns, 0, 0.0)
        super().__init__(shadow_uri, as_of, lambda: live.session, commit.manifest.run_id)
        self._live = live
        self._target = table
        self._history = history
        self._recorded = commit.manifest
        self._before = history.predecessor(commit)

    @override
    def plan(self, table: Table, *, settings: Settings | None = None) -> Plan:
        """Return the recorded plan, with the settings that it recorded.

        Raises NotReplayable where it had other inputs than the table has now, InvariantError where an input is not the
        one that was consumed.
        """
        del settings
        now = sorted(source.name for source in table.inputs)
        if (then := _inputs(self._recorded)) != now:
            raise NotReplayable(self._refusal(then, now))
        plan = self._plan()
        for source in table.consumed:
            self.log(source).confirm(plan.window(source))
        return plan

    @override
    def plan_landing(
        self,
        table: Table,
        head: Head,
        segments: Sequence[SegmentRef],
        observed: Sequence[tuple[Table, Head]] = (),
    ) -> Plan:
        """Return the recorded plan over these segments, as they decode now, with what the recorded run observed."""
        del observed
        return replace(self._plan(), segments=tuple(sorted(segments, key=lambda s: (s.zone, s.name))))

    def _refusal(self, then: Sequence[str], now: Sequence[str]) -> str:
        """Return what cannot be made again, why, and from where on it can."""
        sequence, commits = self._recorded.sequence, self._history.commits
        first = next((c.sequence for c in commits if c.sequence > sequence and _inputs(c.manifest) == now), None)
        other = [
            f"{word} {', '.join(names)}"
            for word, names in (("without", sorted({*now} - {*then})), ("also from", sorted({*then} - {*now})))
            if names
        ]
        return (
            f"{self._target.name}: sequence {sequence} cannot be made again: another version of the platform made it "
            f"{', and '.join(other)}; " + (f"replay from {first}" if first else "nothing in this range can be replayed")
        )

    def _plan(self) -> RecordedPlan:
        recorded = self._recorded
        return RecordedPlan(
            table=self._target,
            sequence=recorded.sequence,
            previous_sha256=recorded.previous_sha256,
            base_version=self.log(self._target).version(),
            as_of_ns=recorded.as_of_ns,
            run_id=recorded.run_id,
            windows=recorded.windows,
            snapshots=recorded.snapshots,
            segments=recorded.segments,
            settings=recorded.settings,
            fencing_token=recorded.fencing_token,
            origin=recorded.origin,
            previous=self._before.manifest if self._before else None,
            nonce=recorded.nonce,
        )


class ReplayingLake(RecordedLake):
    """The lake as it was when ``commit`` was planned, with a shadow in the place of the table that it wrote."""

    @override
    def log(self, table: Table) -> TableLog:
        """Return the shadow's log where ``table`` is the target, else the live one."""
        return super().log(table) if table is self._target else self._live.log(table)

    @override
    def snapshot(self, plan: Plan, source: Table) -> DataFrame:
        """Read as `Lake.snapshot`; rows of the target from before the replay come from the live table."""
        if source is not self._target or self._history.first == 1:
            return super().snapshot(plan, source)
        before = self._live.snapshot(plan, source).where(F.col(COMMIT_SEQUENCE) < self._history.first)
        return before if plan.sequence == self._history.first else before.unionByName(super().snapshot(plan, source))

    @override
    def earlier_rows(
        self, plan: Plan, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pa.Table:
        """Read as `Lake.earlier_rows`; rows from before the replay come from the live table."""
        made_again = super().earlier_rows(plan, columns, where)
        if self._history.first == 1:
            return made_again
        given = ds.field(COMMIT_SEQUENCE) < self._history.first
        before = self._live.log(self._target).rows(columns, narrowed(given, where))
        return pa.concat_tables([before, made_again])


def _inputs(manifest: CommitManifest) -> list[str]:
    """Return the tables that a commit was made from."""
    return sorted(each.table for each in manifest.inputs())


def seed(live: Lake, shadow: TableLog, replayed: History) -> None:
    """Give the shadow what the first commit found, where commits replace rows. Raises VersionGone where it is gone.

    Else it begins empty: what came before is read from the live table (`ReplayingLake.snapshot`).
    """
    if replayed.before is not None and shadow.table.replaces_rows:
        rows = live.log(shadow.table).rows(version=replayed.before.version)
        commits.copy(live.session, shadow, rows)
