"""Jobs of several pools on one engine."""

import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

_TASKS = 100


def test_a_small_job_does_not_wait_for_the_last_task_of_a_large_one(spark: SparkSession, tmp_path: Path) -> None:
    done = str(tmp_path)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            np.linalg.eigvalsh(np.arange(40_000.0).reshape(200, 200))
            (Path(done) / uuid.uuid4().hex).touch()
            yield batch

    large = spark.range(0, _TASKS, 1, _TASKS).mapInArrow(work, "id bigint")
    with ThreadPoolExecutor(1) as other_lane:
        running = other_lane.submit(large.count)
        while not any(tmp_path.iterdir()):
            assert not running.done()
        assert [tuple(row) for row in spark.range(0, 10, 1, 1).selectExpr("sum(id)").collect()] == [(45,)]
        behind = _TASKS - sum(1 for _ in tmp_path.iterdir())
        assert running.result() == _TASKS
    assert behind > _TASKS // 2
