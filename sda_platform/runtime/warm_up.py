"""Warms a running engine: ``python -m sda_platform.runtime.warm_up sc://host:port SCRATCH``.

The first Python function of a Spark Connect session costs seconds (its daemon imports numpy and friends), and
so does the JVM's first Delta commit. The supervisor spends those seconds here, at start, so that no run does.
It also proves that the engine works: it answers queries, finds its Python, commits to Delta. Writes only
below SCRATCH.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sda_platform.lake import compilation
from sda_platform.lake.commit import DATA_SOURCE
from sda_platform.settings import Settings, require_known_variables
from sda_platform.spark.pools import WARM_POOLS
from sda_platform.spark.session import attach


def warm_pool(remote: str, pool: str, lake_uri: str, scratch: Path | None = None) -> float:
    """Run a tiny function in the session of the lake's ``pool``, Delta commits in ``scratch``; returns seconds."""
    began = time.monotonic()
    spark = attach(remote, pool, lake_uri=lake_uri)
    rows = spark.range(0, 64, 1, 2).selectExpr("id", "id % 7 AS pool", "cast(id AS double) AS range_m")
    answer = rows.mapInArrow(_identity, rows.schema).toArrow()
    if answer.num_rows != 64:
        raise RuntimeError(f"the engine returned {answer.num_rows} rows of 64")
    if scratch is not None:
        compilation.choose(spark, compilation.INTERPRETED)  # as most commits are
        _commit(spark, rows, scratch)
    return time.monotonic() - began


def _identity(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


def _commit(spark: SparkSession, rows: DataFrame, scratch: Path) -> None:
    """Append twice, overwrite and read back: the statements every run uses."""
    table = f"{scratch.absolute()}/warm-up"
    shutil.rmtree(table, ignore_errors=True)
    for version, mode in enumerate(("append", "append", "overwrite"), start=1):
        writer = rows.write.format(DATA_SOURCE).mode(mode).option("userMetadata", "warm-up")
        writer.option("txnAppId", "warm-up").option("txnVersion", version).save(table)
    spark.sql(f"SELECT pool, count(*), max(range_m) FROM delta.`{table}` GROUP BY pool").toArrow()
    shutil.rmtree(table, ignore_errors=True)


def main(arguments: list[str]) -> int:
    """Warm every pool at once; print the duration of each. The exit code is 1 when one of them failed."""
    require_known_variables(os.environ)
    remote, scratch = arguments
    lake_uri = Settings().lake_uri
    failures: list[str] = []

    def run(pool: str) -> None:
        try:
            seconds = warm_pool(remote, pool, lake_uri, Path(scratch) if pool == WARM_POOLS[0] else None)
            sys.stdout.write(f"pool {pool} is warm after {seconds:.1f} s\n")
        except Exception as error:  # whatever it is, it is reported and decides the exit code
            failures.append(pool)
            sys.stderr.write(f"pool {pool}: {type(error).__name__}: {str(error)[:2000]}\n")

    threads = [threading.Thread(target=run, args=(pool,)) for pool in WARM_POOLS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
