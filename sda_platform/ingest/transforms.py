"""Transforms of package ingest: DataFrames in, a DataFrame out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.table import COMMIT_SEQUENCE


def new_observations(raw: DataFrame, known: DataFrame) -> DataFrame:
    """The valid observations of ``raw`` that are not in ``known``, each once.

    Of several deliveries of one observation the first by (segment, record) is kept, whatever order they arrive in.
    """
    columns = [c.name for c in OBSERVATIONS.columns if c.name != COMMIT_SEQUENCE]
    valid = raw.where(F.col("error_kind").isNull()).select(*columns)
    earliest = F.min_by(F.struct(*columns), F.struct("segment_sha256", "record_number"))
    first = valid.groupBy("observation_id").agg(earliest.alias("row")).select("row.*")
    return first.join(known.select("observation_id"), "observation_id", "left_anti").select(*columns)
