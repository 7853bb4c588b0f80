"""Plans: what a commit would consume, decided from the logs alone.

A plan is a pure function of the heads of the target and of its inputs (and of what a landing zone holds). Two planners
that see the same heads make the same plan; the log decides which of them commits it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sda_platform.code_version import code_version
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import CommitManifest, SegmentRef, Settings, TableSnapshot, TableWindow
from sda_platform.lake.table import Table


@dataclass(frozen=True)
class Plan:
    """One commit to be: its identity, its inputs and its instant."""

    table: Table
    sequence: int
    previous_sha256: str
    base_version: int
    as_of_ns: int
    run_id: str
    windows: tuple[TableWindow, ...] = ()
    snapshots: tuple[TableSnapshot, ...] = ()
    segments: tuple[SegmentRef, ...] = ()
    settings: Settings | None = None
    fencing_token: int | None = None
    origin: Mapping[str, str] | None = None
    previous: CommitManifest | None = field(default=None, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to consume."""
        return not self.segments and all(window.is_empty for window in self.windows)

    def window(self, table: Table) -> TableWindow:
        """Return the window on ``table``. Raises KeyError where the plan does not consume it."""
        for window in self.windows:
            if window.table == table.name:
                return window
        raise KeyError(f"the plan for {self.table.name} does not consume {table.name}")

    def snapshot(self, table: Table) -> TableSnapshot:
        """Return the snapshot of ``table``. Raises KeyError where the plan does not read it."""
        for snapshot in self.snapshots:
            if snapshot.table == table.name:
                return snapshot
        raise KeyError(f"the plan for {self.table.name} does not read {table.name}")

    def manifest(
        self, nonce: str, counts: Mapping[str, int] | None = None, watermarks: Mapping[str, int] | None = None
    ) -> CommitManifest:
        """Return the manifest that the commit of this plan carries."""
        return CommitManifest(
            table=self.table.name,
            sequence=self.sequence,
            previous_sha256=self.previous_sha256,
            as_of_ns=self.as_of_ns,
            run_id=self.run_id,
            nonce=nonce,
            windows=self.windows,
            snapshots=self.snapshots,
            segments=self.segments,
            settings=self.settings,
            fencing_token=self.fencing_token,
            code_version=code_version(),
            origin=self.origin,
            counts=dict(counts or {}),
            watermarks=dict(watermarks or {}),
        )


def snapshot_of(plan: Plan, table: Table) -> TableSnapshot:
    """Return the snapshot of ``table`` that ``plan`` reads; empty where it repeats a commit that did not read it."""
    return next((each for each in plan.snapshots if each.table == table.name), TableSnapshot(table.name, -1, 0))


def sequence_read(manifest: CommitManifest | None, table: Table) -> int:
    """Return the last commit of ``table`` that a commit read; 0 where it read none, or does not exist."""
    snapshots = manifest.snapshots if manifest else ()
    return max((each.sequence for each in snapshots if each.table == table.name), default=0)


def plan_windows(
    table: Table,
    head: Head,
    upstream: Sequence[tuple[Table, Head]],
    *,
    now_ns: int,
    run_id: str,
    observed: Sequence[tuple[Table, Head]] = (),
    settings: Settings | None = None,
) -> Plan:
    """Plan to consume what each upstream table committed since this table's head, under these ``settings``.

    ``as_of`` never decreases, whatever the clock does. Raises InvariantError when an upstream table has fewer commits
    than this one already consumed (it was restored, replaced or lost).
    """
    previous = head.commit.manifest if head.commit else None
    return Plan(
        table=table,
        sequence=head.sequence + 1,
        previous_sha256=head.manifest_sha256,
        base_version=head.version,
        as_of_ns=max(now_ns, previous.as_of_ns if previous else 0),
        run_id=run_id,
        windows=tuple(_next_window(table, previous, source, source_head) for source, source_head in upstream),
        snapshots=tuple(TableSnapshot(t.name, h.version, h.sequence) for t, h in observed),
        settings=settings,
        previous=previous,
    )


def plan_segments(
    table: Table,
    head: Head,
    segments: Iterable[SegmentRef],
    *,
    now_ns: int,
    run_id: str,
    observed: Sequence[tuple[Table, Head]] = (),
) -> Plan:
    """Plan to consume these segments, as `landing.intake` took them."""
    plan = plan_windows(table, head, (), now_ns=now_ns, run_id=run_id, observed=observed)
    return replace(plan, segments=tuple(sorted(segments, key=lambda s: (s.zone, s.name))))


def _next_window(table: Table, previous: CommitManifest | None, source: Table, head: Head) -> TableWindow:
    last = previous.window(source.name) if previous else None
    after_sequence, after_version = (last.upto_sequence, last.upto_version) if last else (0, -1)
    if head.sequence < after_sequence:
        raise InvariantError(
            f"{table.name} has consumed {source.name} up to sequence {after_sequence}, but {source.name} now ends at "
            f"{head.sequence}: it was restored, replaced or lost, and {table.name} must be rebuilt"
        )
    return TableWindow(
        source.name,
        after_sequence,
        head.sequence,
        after_version,
        max(after_version, head.commit_version),
        head.manifest_sha256,
    )
