"""What a join broadcasts may take as long as its run: a screening of more than 300 s ends."""

import time
from collections.abc import Iterable

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_NAME = "spark.sql.broadcastTimeout"


def _slow(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """A screening in small: its rows come after three seconds."""
    time.sleep(3.0)
    yield from batches


def joined(spark: SparkSession) -> int:
    found = spark.range(3).coalesce(1).mapInArrow(_slow, "id long").persist()
    try:
        journal = spark.range(5)
        return journal.join(found.hint("broadcast"), "id").count()
    finally:
        found.unpersist()


def test_a_kernel_that_a_join_broadcasts_may_take_longer_than_any_limit_of_spark(spark: SparkSession) -> None:
    assert spark.conf.get(_NAME) == "-1"
    assert joined(spark) == 3
    spark.conf.set(_NAME, "1")
    try:
        with pytest.raises(Py4JJavaError, match="Could not execute broadcast in 1 secs"):
            joined(spark)
    finally:
        spark.conf.set(_NAME, "-1")
