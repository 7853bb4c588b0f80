"""Arrow rows as a DataFrame of the engine, in one place, because two of Spark's habits lose rows or fail."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema


def frame_of(session: SparkSession, rows: pa.Table, schema: T.StructType | None = None) -> DataFrame:
    """``rows``, of which there may be none, in the types of ``schema`` or in their own.

    Spark cannot infer the columns of an Arrow table without rows, and it stops reading at an empty chunk.
    """
    chosen = from_arrow_schema(rows.schema) if schema is None else schema
    return session.createDataFrame(rows.combine_chunks() if rows.num_rows else [], chosen)
