"""Transforms of the catalog room: DataFrames in, a DataFrame out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.lake.table import COMMIT_SEQUENCE

# The total order that decides which of two element sets of one object is the better. Segment and record break the
# last ties, so that the catalogue does not depend on the order of arrival.
_ORDER = (
    "struct({0}epoch_time_ns, {0}source_priority, coalesce({0}element_set_number, 0L), coalesce({0}originator, ''), "
    "{0}segment_sha256, {0}record_number)"
)
REPLACES = f"{_ORDER.format('new.')} > {_ORDER.format('old.')}"


def best_per_object(element_sets: DataFrame) -> DataFrame:
    """The best usable element set of each object in ``element_sets``."""
    columns = [c.name for c in ORBITAL_CATALOG.columns if c.name != COMMIT_SEQUENCE]
    usable = element_sets.where(F.col("error_kind").isNull())
    best = F.max_by(F.struct(*columns), F.expr(_ORDER.format("")))
    return usable.groupBy("norad_id").agg(best.alias("row")).select("row.*")
