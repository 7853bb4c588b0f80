"""Transforms of the ingest room: DataFrames in, a DataFrame out."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sda_platform.ingest.tables import DEAD_LETTERS, OBSERVATIONS
from sda_platform.lake.table import COMMIT_SEQUENCE

DEAD_LETTER_VERSION = 1


def new_observations(raw: DataFrame, known: DataFrame) -> DataFrame:
    """The valid observations of ``raw`` that are not in ``known``, each once.

    Of several deliveries of one observation the first by (segment, record) is kept, whatever order they arrive in.
    """
    columns = [c.name for c in OBSERVATIONS.columns if c.name != COMMIT_SEQUENCE]
    valid = raw.where(F.col("error_kind").isNull()).select(*columns)
    earliest = F.min_by(F.struct(*columns), F.struct("segment_sha256", "record_number"))
    first = valid.groupBy("observation_id").agg(earliest.alias("row")).select("row.*")
    return first.join(known.select("observation_id"), "observation_id", "left_anti").select(*columns)


def rejected_records(bronze: DataFrame, stage: str) -> DataFrame:
    """The rows of a bronze table that carry an error, as dead letters of ``stage``."""
    columns = [c.name for c in DEAD_LETTERS.columns if c.name != COMMIT_SEQUENCE]
    dead = bronze.where(F.col("error_kind").isNotNull())
    return dead.withColumns({"schema_version": F.lit(DEAD_LETTER_VERSION), "stage": F.lit(stage)}).select(*columns)
