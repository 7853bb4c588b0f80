"""What changed in a table between two of its snapshots, row by row, by key.

Of a correction log the rows that hold are compared, so a correction is one change of its key. How rows lie in files
makes no difference: compaction is invisible.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from sda_platform.history.pinned_view import Limits, PinnedView
from sda_platform.history.version_vector import VersionVector
from sda_platform.lake.correction_log import CorrectionLogModel, content
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

Change = Literal["inserted", "changed", "deleted"]


@dataclass(frozen=True)
class RowChange:
    """One key whose row differs. ``before`` and ``after`` are rows (None: there is none), in the columns of today."""

    change: Change
    key: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    columns: Sequence[str] = ()


def table_diff(
    lake: Lake, table: Table, before: VersionVector, after: VersionVector, *, limits: Limits | None = None
) -> Iterator[RowChange]:
    """Yield the keys whose rows differ between two states that have ``table``, in the order of the key.

    Neither state is in memory as a whole: both are read once, and what a join or a sort holds beyond ``limits`` is on
    disk. Raises VersionExpired where a state can no longer be read, QueryRefused beyond a limit.
    """
    is_log = issubclass(table.model, CorrectionLogModel)
    key = table.key[:1] if is_log else table.key
    compared = content(table) if is_log else [c.name for c in table.columns if c.name not in {*key, COMMIT_SEQUENCE}]
    sides = {"before": before.only(table.name), "after": after.only(table.name)}
    ends = {name: state.snapshots[table.name].sequence for name, state in sides.items()}
    both = PinnedView(lake, {}, VersionVector({}), limits=limits)
    with ExitStack() as opened:
        for name, state in sides.items():
            side = PinnedView(lake, {table.name: table}, state, "current", limits)
            if is_log:
                later = PinnedView(lake, {table.name: table}, sides[max(ends, key=ends.__getitem__)], limits=limits)
                sql = f"SELECT DISTINCT {key[0]} FROM {table.name} WHERE {COMMIT_SEQUENCE} > {min(ends.values())}"
                side.register("touched", opened.enter_context(later.reading(sql)))
            sql = _rows_that_may_differ(table, is_log, min(ends.values()))
            both.register(name, opened.enter_context(side.reading(sql)))
        for batch in both.batches(_difference(key, compared)):
            for row in batch.to_pylist():
                yield _row_change(row["before"], row["after"], key, compared)


def _difference(key: Sequence[str], compared: Sequence[str]) -> str:
    on = " AND ".join(f'b."{name}" = a."{name}"' for name in key)
    differs = " OR ".join(f'b."{name}" IS DISTINCT FROM a."{name}"' for name in compared) or "false"
    order = ", ".join(f'coalesce(b."{name}", a."{name}")' for name in key)
    return (
        f'SELECT CASE WHEN b."{key[0]}" IS NULL THEN NULL ELSE b END AS before, '
        f'CASE WHEN a."{key[0]}" IS NULL THEN NULL ELSE a END AS after '
        f"FROM before AS b FULL JOIN after AS a ON {on} "
        f'WHERE b."{key[0]}" IS NULL OR a."{key[0]}" IS NULL OR {differs} ORDER BY {order}'
    )


def _rows_that_may_differ(table: Table, is_log: bool, first_new: int) -> str:
    """Of a table whose rows stay, only what the commits between both snapshots wrote can differ."""
    if table.replaces_rows:
        return f"SELECT * FROM {table.name}"
    if is_log:
        return f"SELECT * FROM active.{table.name} WHERE {table.key[0]} IN (FROM touched)"
    return f"SELECT * FROM {table.name} WHERE {COMMIT_SEQUENCE} > {first_new}"


def _row_change(
    before: dict[str, Any] | None, after: dict[str, Any] | None, key: Sequence[str], compared: Sequence[str]
) -> RowChange:
    known = after or before or {}
    identity = {name: known[name] for name in key}
    if before is None or after is None:
        return RowChange("inserted" if before is None else "deleted", identity, before, after)
    return RowChange("changed", identity, before, after, [n for n in compared if not same(before[n], after[n])])


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; a NaN equals itself."""
    return bool(one == other or (one != one and other != other))
