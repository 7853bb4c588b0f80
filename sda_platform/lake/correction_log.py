"""Correction logs: tables whose rows are corrected by appended entries.

A row is inserted with revision 0 (column ``sequence``). A correction retracts revision N and inserts N + 1. A row that
is no longer current is retracted, and may return with the next revision. The last entry of each key is the current one.
"""

from collections.abc import Sequence

import pandera.pyspark as pa
import pyarrow as arrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import COMMIT_SEQUENCE, Table, TableModel

INSERT, RETRACT = "insert", "retract"


class CorrectionLogModel(TableModel):
    """Columns of every correction log."""

    sequence: T.LongType = pa.Field(
        ge=0, description="Number of the entry within its key, rising with each correction."
    )
    op: T.StringType = pa.Field(
        isin=[INSERT, RETRACT], description="insert: holds from now on; retract: no longer holds."
    )
    as_of_ns: T.LongType = quantity("ns", "Mission time at which the platform concluded this.")


def content(table: Table) -> list[str]:
    """The content columns of a correction log: all but the key and the columns of every correction log."""
    return [c.name for c in table.columns if c.name not in {*CorrectionLogModel.to_schema().columns, table.key[0]}]


def fact_names(table: Table) -> list[str]:
    """Names of the key and the content of a correction log, in the order of its columns."""
    chosen = {table.key[0], *content(table)}
    return [column.name for column in table.columns if column.name in chosen]


def fact_schema(table: Table) -> arrow.Schema:
    """Key and content of a correction log as an Arrow schema."""
    return arrow.schema([table.arrow_schema.field(name) for name in fact_names(table)])


def fact_types(table: Table) -> str:
    """Key and content of a correction log as a DDL schema: what a kernel that makes its rows must return."""
    chosen = fact_names(table)
    return ", ".join(f"{c.name} {c.data_type.simpleString()}" for c in table.columns if c.name in chosen)


def current_rows(entries: DataFrame, key: str) -> DataFrame:
    """Select the current entries: the last of each key, unless it is a retract."""
    return _last(entries, key).where(F.col("op") == INSERT)


def corrections(known: DataFrame, fresh: DataFrame, *, key: str, content: Sequence[str], as_of_ns: int) -> DataFrame:
    """Compute the entries that change the current rows of a correction log to ``fresh``.

    ``known`` has all entries of the keys under review and no other entries: a current row that ``fresh`` lacks is
    retracted. Both have ``key`` and ``content``; two rows are equal if all columns of ``content`` are equal.
    """
    columns = [key, *content]
    last = _last(known, key).select(
        F.col(key).alias("old_key"),
        F.col("op").alias("old_op"),
        F.col("sequence").alias("old_sequence"),
        F.struct(*columns).alias("old"),
    )
    now = fresh.select(F.col(key).alias("new_key"), F.struct(*columns).alias("new"))
    both = last.join(now, F.col("old_key") == F.col("new_key"), "full_outer")
    is_current = F.coalesce(F.col("old_op") == INSERT, F.lit(False))
    changed = both.where(~(is_current & F.col("new").isNotNull() & F.col("old").eqNullSafe(F.col("new"))))
    retract = F.when(
        is_current,
        F.struct(F.col("old_sequence").alias("sequence"), F.lit(RETRACT).alias("op"), F.col("old").alias("fact")),
    )
    following = F.coalesce(F.col("old_sequence") + 1, F.lit(0).cast("long"))
    insert = F.when(
        F.col("new").isNotNull(),
        F.struct(following.alias("sequence"), F.lit(INSERT).alias("op"), F.col("new").alias("fact")),
    )
    entries = changed.select(F.explode(F.array(retract, insert)).alias("entry")).where(F.col("entry").isNotNull())
    return entries.select("entry.sequence", "entry.op", F.lit(as_of_ns).cast("long").alias("as_of_ns"), "entry.fact.*")


def _last(entries: DataFrame, key: str) -> DataFrame:
    # Of two entries with one sequence the retract is the later, and "retract" > "insert".
    others = [c for c in entries.columns if c not in (key, COMMIT_SEQUENCE)]
    row = F.struct("sequence", "op", *[c for c in others if c not in ("sequence", "op")])
    last = entries.groupBy(key).agg(F.max_by(row, F.struct("sequence", "op")).alias("last"))
    return last.select(key, "last.*")
