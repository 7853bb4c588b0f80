"""Rows of the tables that tasking reads: as they are now, or as a plan pins them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.lake.commit_spans import narrowed
from sda_platform.lake.correction_log import current_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Table


@dataclass(frozen=True)
class StoredRows:
    """The tables of ``lake``: as they are now, or as ``pinned``, by name; a table that is not pinned has no rows.

    The table of ``plan`` is read as it was before.
    """

    lake: Lake
    pinned: Mapping[str, TableSnapshot] | None = None
    plan: Plan | None = None

    @classmethod
    def of(cls, lake: Lake, plan: Plan) -> "StoredRows":
        """Pin the inputs of ``plan``, and its own table; a commit of an earlier version did not read some of them."""
        own = TableSnapshot(plan.table.name, plan.base_version, plan.sequence - 1)
        consumed = [TableSnapshot(each.table, each.upto_version, each.upto_sequence) for each in plan.windows]
        return cls(lake, {each.table: each for each in (*plan.snapshots, *consumed, own)}, plan)

    def rows(self, table: Table, columns: Sequence[str], where: ds.Expression | None = None) -> pa.Table:
        """Read ``columns`` of the rows that ``where`` selects."""
        log = self.lake.log(table)
        if self.pinned is None:
            return log.rows(columns, where)
        snapshot = self.pinned.get(table.name)
        if snapshot is None or table.replaces_rows:
            return log.rows(columns, where, snapshot.version if snapshot else -1)
        if self.plan is not None and table is self.plan.table:
            return self.lake.earlier_rows(self.plan, columns, where)
        upto = ds.field(COMMIT_SEQUENCE) <= snapshot.sequence
        return log.rows(columns, narrowed(upto, where))

    def current(self, table: Table, columns: Sequence[str], where: ds.Expression | None = None) -> pa.Table:
        """Read the key and ``columns`` of the current entries of a correction log, of keys that ``where`` selects."""
        key = table.key[0]
        return current_rows(self.rows(table, [key, "sequence", "op", *columns], where), key)
