"""Apply a transform to few rows in this process, and to many on Spark.

A transform is a function of Arrow tables, one for each input, that returns rows of the plan's table. Rows with
different keys must not concern each other. So Spark may give each task the rows of some keys, and the result does not
depend on who applied the transform.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from sda_platform.lake.arrow_frames import frame_of
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.selections import Selection
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

MOST_IN_PROCESS = 200_000
"""Up to this much work a run is faster without Spark; in units of one raw record. Its rows take some 100 MB."""
_WORK_OF_A_TASK = 25_000
_FEWEST_TASKS = 8
_TASK, _INPUT, _ROW = "task", "input", "row_{}"

Transform = Callable[..., pa.Table]
Prepare = Callable[[pa.Table], pa.Table]


class Input(Protocol):
    """Rows that a transform takes; those with one value in the column ``key`` belong together."""

    @property
    def key(self) -> str:
        """The name of the column."""
        ...

    def arrow(self, store: Lake, plan: Plan) -> pa.Table:
        """Read the rows into this process."""
        ...

    def frame(self, store: Lake, plan: Plan) -> DataFrame:
        """Return the same rows on Spark."""
        ...


@dataclass(frozen=True)
class Stored:
    """Rows of ``table`` as the plan pins it: those that ``where`` selects, only new ones if ``is_new``.

    ``prepare`` is applied to them first. It takes each row by itself, and may add the column ``key``.
    """

    table: Table
    key: str
    columns: Sequence[str] | None = None
    where: Selection | None = None
    is_new: bool = False
    prepare: Prepare | None = None

    def arrow(self, store: Lake, plan: Plan) -> pa.Table:
        """Read the rows into this process."""
        read = store.new_rows if self.is_new else store.snapshot_rows
        rows = read(plan, self.table, self.columns, self.where.expression() if self.where else None)
        return self.prepare(rows) if self.prepare else rows

    def frame(self, store: Lake, plan: Plan) -> DataFrame:
        """Return the same rows on Spark."""
        rows = (store.window if self.is_new else store.snapshot)(plan, self.table)
        rows = self.where.of(rows) if self.where else rows
        names = [column.name for column in self.table.columns] if self.columns is None else self.columns
        return prepared(rows.select(*names), self.prepare) if self.prepare else rows.select(*names)


@dataclass(frozen=True)
class Given:
    """Rows that the caller has, as Arrow or on Spark."""

    rows: pa.Table | DataFrame
    key: str

    def arrow(self, _store: Lake, _plan: Plan) -> pa.Table:
        """Read the rows into this process."""
        return fetched(self.rows)

    def frame(self, store: Lake, _plan: Plan) -> DataFrame:
        """Return the same rows on Spark."""
        return frame_of(store.session, self.rows) if isinstance(self.rows, pa.Table) else self.rows


def apply(store: Lake, plan: Plan, transform: Transform, *inputs: Input, work: int) -> pa.Table | DataFrame:
    """Apply ``transform`` to ``inputs``: what the plan's table gains.

    ``work`` says how much there is to do, in raw records that would take as long. It decides who does it: this process
    up to MOST_IN_PROCESS, Spark beyond.
    """
    if work <= MOST_IN_PROCESS:
        return transform(*(each.arrow(store, plan) for each in inputs))
    tasks = max(_FEWEST_TASKS, -(-work // _WORK_OF_A_TASK))
    parts = []
    for number, each in enumerate(inputs):
        frame = each.frame(store, plan)
        row = F.struct(*frame.columns).alias(_ROW.format(number))
        task = F.pmod(F.xxhash64(each.key), F.lit(tasks)).alias(_TASK)
        parts.append(frame.select(task, F.lit(number).alias(_INPUT), row))
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
    # As many partitions as tasks: by their size in bytes alone, Spark would join the tasks of an expensive transform.
    grouped = rows.repartition(tasks, _TASK).groupBy(_TASK)
    content = T.StructType([field for field in plan.table.schema.fields if field.name != COMMIT_SEQUENCE])
    return grouped.applyInArrow(_in_a_task(transform, len(inputs), plan.table.content_schema), content)


def fetched(rows: pa.Table | DataFrame) -> pa.Table:
    """Return the result of `apply` as Arrow rows in this process."""
    return rows if isinstance(rows, pa.Table) else rows.toArrow()


def _in_a_task(transform: Transform, inputs: int, schema: pa.Schema) -> Prepare:
    """Return the function that applies ``transform`` within a task of Spark, to the rows of all inputs that the task
    has.
    """

    def applied(rows: pa.Table) -> pa.Table:
        tables = []
        for number in range(inputs):
            chosen = rows.filter(pc.equal(rows[_INPUT], number))[_ROW.format(number)].combine_chunks()
            tables.append(pa.Table.from_arrays(chosen.flatten(), [field.name for field in chosen.type]))
        return transform(*tables).select(schema.names).cast(schema)

    return applied


def prepared(frame: DataFrame, prepare: Prepare) -> DataFrame:
    """``frame`` after ``prepare``, which takes each row by itself."""
    after = prepare(to_arrow_schema(frame.schema).empty_table()).schema
    return frame.mapInArrow(partial(_prepared, prepare), from_arrow_schema(after))


def _prepared(prepare: Prepare, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from prepare(pa.Table.from_batches([batch])).combine_chunks().to_batches()
