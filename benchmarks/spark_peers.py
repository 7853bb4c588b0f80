"""The peers: the same files into Delta by Spark alone, with what its documentation shows and nothing checked."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

OPTICAL_RECORD = T.StructType(
    [
        T.StructField("obs_id", T.StringType()),
        T.StructField("timestamp_ns", T.LongType()),
        T.StructField("ra_rad", T.DoubleType()),
        T.StructField("dec_rad", T.DoubleType()),
        T.StructField("sigma_arcsec", T.DoubleType()),
        T.StructField("site_id", T.StringType()),
        T.StructField("received_ns", T.LongType()),
        T.StructField("clock_quality", T.StringType()),
        T.StructField("clock_age_s", T.DoubleType()),
    ]
)


def append_parsed(session: SparkSession, files: Path, table: Path) -> None:
    """The fields alone: JSON by an explicit schema, appended."""
    session.read.schema(OPTICAL_RECORD).json(str(files)).write.format("delta").mode("append").save(str(table))


def append_kept(session: SparkSession, files: Path, table: Path) -> None:
    """What a bronze table keeps: the fields, the line as it came, its file, and a hash of it as an id."""
    rows = session.read.text(str(files)).select(
        F.from_json("value", OPTICAL_RECORD).alias("record"),
        F.col("value").cast("binary").alias("payload"),
        F.col("_metadata.file_name").alias("segment_name"),
        F.sha1(F.concat(F.sha2("value", 256), F.lit("|optical"))).alias("id"),
    )
    rows.select("record.*", "payload", "segment_name", "id").write.format("delta").mode("append").save(str(table))


def stream(session: SparkSession, files: Path, table: Path, *, files_per_batch: int) -> None:
    """Structured Streaming over what is there: file source, de-duplication within a watermark, Delta sink."""
    rows = session.readStream.schema(OPTICAL_RECORD).option("maxFilesPerTrigger", files_per_batch).json(str(files))
    query = (
        _without_repeats(rows)
        .writeStream.format("delta")
        .option("checkpointLocation", f"{table}-checkpoint")
        .trigger(availableNow=True)
        .start(str(table))
    )
    query.awaitTermination()


def _without_repeats(rows: DataFrame) -> DataFrame:
    event_time = F.timestamp_micros(F.floor(F.col("timestamp_ns") / 1000)).alias("event_time")
    return rows.select("*", event_time).withWatermark("event_time", "1 hour").dropDuplicatesWithinWatermark(["obs_id"])
