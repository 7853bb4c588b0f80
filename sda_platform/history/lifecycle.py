"""When and what the maintenance may do: selection by small files, hours of the day, a budget, and a pause for alerts.

Figures are those of the data-lake criteria, of which each is a field here.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow.compute as pc

from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table

_MB = 2**20
_POLL_S = 1.0


@dataclass(frozen=True)
class LifecyclePolicy:
    """Hours are UTC, ``[from, until)``. ``budget_bytes`` are those of the small files that one run compacts.
    Compaction merges files below the least healthy size into files of at most ``target_file_bytes``.

    A run waits at most ``alert_wait_s`` for alerts that wait; then it ends, and the next one continues. Alerts stop
    the compaction of a table at most ``stops_for_alerts`` times; after that it is completed beside them.
    """

    small_file_bytes: int = 32 * _MB
    target_file_bytes: int = 256 * _MB
    small_files: int = 50
    compaction_quiet_hours: tuple[int, int] = (9, 17)
    expiry_hours: tuple[int, int] = (0, 6)
    budget_bytes: int = 50 * 2**30
    alert_wait_s: float = 600.0
    stops_for_alerts: int = 20
    deletion_grace_h: int = 24

    def may_compact(self, now_ms: int) -> bool:
        """Return whether the hour of ``now_ms`` (Unix time) is one for compaction."""
        return not _is_within(now_ms, self.compaction_quiet_hours)

    def may_expire(self, now_ms: int) -> bool:
        """Return whether the hour of ``now_ms`` is one for the removal of files."""
        return _is_within(now_ms, self.expiry_hours)


POLICY = LifecyclePolicy()


@dataclass(frozen=True)
class SmallFiles:
    """How many files of a table are small, and their bytes."""

    table: Table
    files: int
    size_bytes: int


def _is_within(now_ms: int, hours: tuple[int, int]) -> bool:
    return hours[0] <= datetime.fromtimestamp(now_ms / 1000, UTC).hour < hours[1]


def small_files(lake: Lake, table: Table, policy: LifecyclePolicy = POLICY) -> SmallFiles:
    """Return the small files of a table, by the log."""
    sizes = lake.log(table).live_files().column("size_bytes")
    small = sizes.filter(pc.less(sizes, policy.small_file_bytes))
    return SmallFiles(table, len(small), int(pc.sum(small).as_py() or 0))


def select(found: Iterable[SmallFiles], policy: LifecyclePolicy = POLICY) -> list[SmallFiles]:
    """Select the tables to compact in one run: with too many small files, most files first, within the budget.

    A table that alone exceeds the budget is compacted when it is the first.
    """
    chosen: list[SmallFiles] = []
    for each in sorted(found, key=lambda each: (-each.files, each.table.name)):
        spent = sum(earlier.size_bytes for earlier in chosen)
        if each.files > policy.small_files and (not chosen or spent + each.size_bytes <= policy.budget_bytes):
            chosen.append(each)
    return chosen


def wait_for_alerts(
    alerts_wait: Callable[[], bool],
    policy: LifecyclePolicy = POLICY,
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Return True once no alert waits for its turn; False where that takes longer than the policy allows."""
    deadline = monotonic() + policy.alert_wait_s
    while alerts_wait():
        if monotonic() >= deadline:
            return False
        sleep(_POLL_S)
    return True


def chosen_tables(tables: Sequence[Table], names: Sequence[str]) -> Sequence[Table]:
    """Return the tables that a person named, or all."""
    return [table for table in tables if not names or table.name in names]
