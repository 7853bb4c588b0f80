"""Transforms of package catalog: DataFrames in, a DataFrame out."""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sda_platform.catalog.tables import HISTORY_COLUMNS, ORBITAL_CATALOG
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.element_order import REASONS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

# A set that is in the catalogue stays before one that equals it.
_ORDER = f"struct({', '.join(REASONS)}, is_current)"
_COLUMNS = [c.name for c in ORBITAL_CATALOG.columns if c.name not in (COMMIT_SEQUENCE, *HISTORY_COLUMNS)]


def improvements(element_sets: DataFrame, current: DataFrame, *, as_of_ns: int) -> DataFrame:
    """The catalogue entries that ``element_sets`` replace or add: of each object the set in force, unless it has that.

    ``element_sets``: rows of `element_sets` that are new or came into force. ``current``: all rows of
    `orbital_catalog`. The result has the columns of `orbital_catalog` without ``commit_sequence`` and HISTORY_COLUMNS,
    one row for each object that changes.
    """
    usable = element_sets.where(F.col("error_kind").isNull()).select(*_COLUMNS, F.lit(False).alias("is_current"))
    known = current.select(*_COLUMNS, F.lit(True).alias("is_current"))
    best = F.max_by(F.struct(*_COLUMNS, "is_current"), F.expr(_ORDER))
    in_force = F.col("epoch_time_ns") <= F.lit(as_of_ns + EPOCH_TOLERANCE_NS)
    sets = usable.unionByName(known).withColumn("in_force", in_force)
    rows = sets.groupBy("norad_id").agg(best.alias("row")).select("row.*")
    return rows.where(~F.col("is_current")).select(*_COLUMNS)


def in_play(
    element_sets: DataFrame,
    *,
    after_sequence: int,
    previous_as_of_ns: int | None,
    as_of_ns: int,
    again: Collection[int] = (),
) -> DataFrame:
    """Select the rows of `element_sets` that may change the catalogue: new ones, and those that came into force.

    Of the numbers ``again`` all rows are: edits changed which object they are of.
    """
    is_new = F.col(COMMIT_SEQUENCE) > after_sequence
    if again:
        is_new |= F.col("norad_id").isin(sorted(again))
    if previous_as_of_ns is None:
        return element_sets.where(is_new)
    epoch = F.col("epoch_time_ns")
    has_come = epoch <= F.lit(as_of_ns + EPOCH_TOLERANCE_NS)
    return element_sets.where(is_new | (has_come & (epoch > F.lit(previous_as_of_ns + EPOCH_TOLERANCE_NS))))
