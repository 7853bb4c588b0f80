"""Dead letters of small windows, made in this process: the engine only commits them.

The rule is that of `rejected.rejected_records`, and the rows are equal.
"""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.dead_letters.rejected import DEAD_LETTER_VERSION, class_of
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import Table

MOST_REJECTED = 20_000
"""From more rejected records on, the engine makes the letters."""
_SCHEMA = DEAD_LETTERS.content_schema
_REJECTED = ds.field("error_kind").is_valid()


def few_rejected(store: Lake, plan: Plan, tables: Sequence[Table]) -> pa.Table | None:
    """The rejected records of the plan's windows on ``tables`` as dead letters; None where there are too many."""
    rejected_of = partial(store.new_rows, plan, where=_REJECTED)
    counts = [rejected_of(table, ["error_kind"]).num_rows for table in tables]
    if sum(counts) > MOST_REJECTED:
        return None
    refusing = (table for table, count in zip(tables, counts, strict=True) if count)
    letters = (_letters(rejected_of(table), table.name, plan.as_of_ns) for table in refusing)
    return pa.concat_tables([_SCHEMA.empty_table(), *letters])


def _letters(dead: pa.Table, stage: str, as_of_ns: int) -> pa.Table:
    added = {"schema_version": DEAD_LETTER_VERSION, "stage": stage, "rejected_time_ns": as_of_ns}
    rows = [
        {**row, **added, "error_class": class_of(row["error_kind"]), "retry_count": row.get("reprocess_count") or 0}
        for row in dead.to_pylist()
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)
