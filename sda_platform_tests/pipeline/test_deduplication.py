"""De-duplication on the engine: the files of the history that its predicate leaves to be read."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.selections import Near
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS

DAY_NS = 86_400 * 10**9
DAYS = 12


@pytest.mark.parametrize("stray_ns", [1, START_NS + 30_000 * DAY_NS], ids=["1970", "far future"])
def test_a_stray_time_in_a_batch_leaves_the_files_of_the_history_unread__V06(
    tmp_path: Path, spark: SparkSession, stray_ns: int
) -> None:
    lake = lake_at(tmp_path)
    times = [stray_ns, *(START_NS - day * DAY_NS for day in range(DAYS))]
    for time_ns in times:
        commit(lake, OBSERVATIONS, [{"observation_id": f"o{time_ns}", "sensor_time_ns": time_ns}])
    batch = pa.chunked_array([pa.array([START_NS, stray_ns], pa.int64())])
    known = spark.read.format("delta").load(lake.log(OBSERVATIONS).uri)
    chosen = Near("sensor_time_ns", batch).of(known)
    assert len(known.inputFiles()) == DAYS + 1
    assert len(chosen.inputFiles()) == 2
    assert {row["sensor_time_ns"] for row in chosen.collect()} == {START_NS, stray_ns}
