"""Transforms of the catalog room: DataFrames in, a DataFrame out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.lake.table import COMMIT_SEQUENCE

# The total order by which one element set of an object is better than another. Segment and record decide the last ties,
# so that the catalogue does not depend on the order of arrival; a set that is in force stays before one that equals it.
_ORDER = (
    "struct(epoch_time_ns, source_priority, coalesce(element_set_number, 0L), coalesce(originator, ''), "
    "segment_sha256, record_number, is_current)"
)
_COLUMNS = [c.name for c in ORBITAL_CATALOG.columns if c.name != COMMIT_SEQUENCE]


def improvements(element_sets: DataFrame, current: DataFrame) -> DataFrame:
    """The catalogue entries that ``element_sets`` replace or add: for each object its best set, unless it has that.

    ``element_sets``: new rows of `element_sets`. ``current``: all rows of `orbital_catalog`. The result has the
    columns of `orbital_catalog` without ``commit_sequence``, one row for each object that changes.
    """
    usable = element_sets.where(F.col("error_kind").isNull()).select(*_COLUMNS, F.lit(False).alias("is_current"))
    known = current.select(*_COLUMNS, F.lit(True).alias("is_current"))
    best = F.max_by(F.struct(*_COLUMNS, "is_current"), F.expr(_ORDER))
    rows = usable.unionByName(known).groupBy("norad_id").agg(best.alias("row")).select("row.*")
    return rows.where(~F.col("is_current")).select(*_COLUMNS)
