"""Queries of the past against a plain scan and peers on the same files, and pinned reads during maintenance.

    python benchmarks/history.py                       2 million observations in 40 files (scaled)
    python benchmarks/history.py --rows 50000000 --files 1000 --at DIR     full size; DIR keeps the lake for another run
    python benchmarks/history.py --rows 4000000 --files 2000 --compaction     also compacts them (Spark needs a JVM)

The question is one sensor's hour or week, as of a commit in the middle of the table. Peers read the same Delta table
directly: DuckDB by its files, Polars by `scan_delta`, delta-rs by its `QueryBuilder`. The floor is a scan of exactly
the files that the log's statistics keep. Nothing is printed unless all give the same rows.
"""

import argparse
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder
from edge_process import cpu_s
from generated_queries import shares_kept
from pyspark.sql import SparkSession

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.history.compaction import compact
from sda_platform.history.lifecycle import POLICY
from sda_platform.history.moments import vector_of
from sda_platform.history.parquet_profile import CODEC, CODEC_LEVEL, encoding_of
from sda_platform.history.pinned_view import PinnedView
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.commit import append
from sda_platform.lake.lake import Lake, without_session
from sda_platform.spark.session import attach
from sda_platform_tests.support.delta_tables import with_delta_rs
from sda_platform_tests.support.pinned_reads import is_unchanged

HOUR_NS = 3_600 * 10**9
SENSORS = 40
LONG_HOURS = 168
REPEATS = 7
QUERIES = 3_200
MOST_FILES = 0.3
"""Mean share of the files that a query of the generated log may keep (DL3)."""
WARM_UPS = 3
TABLES = {table.name: table for table in (OBSERVATIONS, ORBITAL_CATALOG)}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--schedules", type=int, default=100, help="0 leaves the pinned reads out")
    parser.add_argument("--at", help="keep the lake in this directory, or use the one that is there")
    parser.add_argument("--compaction", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        lake = Lake(f"{arguments.at or directory}/lake", MissionClock(0, 0, 0.0), session)
        lake.reads_unverified = True
        write_observations(lake, arguments.rows, arguments.files)
        for hours in (1, min(LONG_HOURS, arguments.files // 2 - 1)):
            as_of_query(lake, arguments.rows, arguments.files, hours)
        as_of_query(compacted(lake, Path(directory) / "old"), arguments.rows, arguments.files, 1)
        query_log(lake)
        if arguments.compaction:
            compaction(lake, Path(directory))
    if arguments.schedules:
        with tempfile.TemporaryDirectory() as directory:
            pinned_reads(Path(directory), arguments.schedules)


def session() -> SparkSession:
    """A session in this process; only the compaction needs one."""
    return attach("local", "benchmark")


def compacted(lake: Lake, directory: Path) -> Lake:
    """A copy of the lake's observations as the maintenance leaves those of sealed days."""
    shutil.copytree(lake.log(OBSERVATIONS).uri, directory / OBSERVATIONS.name)
    copy = Lake(str(directory), lake.clock, without_session)
    copy.reads_unverified = True
    compact(copy, OBSERVATIONS)
    return copy


def query_log(lake: Lake) -> None:
    """How many files the queries of the generated log keep; its coverage is that of published logs."""
    shares = shares_kept(lake.log(OBSERVATIONS), QUERIES)
    print(
        f"files kept by {QUERIES:,} generated queries: {shares.mean():.1%} on average; at most a tenth by "
        f"{(shares <= 0.1).mean():.0%} of them"
    )
    assert shares.mean() <= MOST_FILES, f"queries keep more than {MOST_FILES:.0%} of the files"


@dataclass(frozen=True)
class Compacted:
    """What a compaction cost, and what it left."""

    wall_s: float
    processor_s: float
    files: list[str]


def compaction(lake: Lake, directory: Path) -> None:
    """All files of the table, compacted as the maintenance does, by Spark, and by DuckDB; each from its own copy.

    The rate is that of a core: bytes of the small files per second of processor time. All must keep the same rows.
    Spark compacts some times before it counts: Java compiles what runs often.
    """
    log = lake.log(OBSERVATIONS)
    size = sum(log.live_files().column("size_bytes").to_pylist())
    whole = ds.dataset(DeltaTable(log.uri).file_uris()).to_table()
    print(f"compaction of {len(log.live_files())} files, {size / 1e6:,.0f} MB, {whole.nbytes / 1e6:,.0f} MB decoded")
    means = {"the platform": compacted_by_platform, "Spark": compacted_by_spark, "DuckDB": compacted_by_duckdb}
    for name in [*["Spark"] * WARM_UPS, *means]:
        copy = directory / "compacted" / OBSERVATIONS.name
        shutil.copytree(log.uri, copy)
        found = means[name](copy)
        rows, after = ds.dataset(found.files).to_table(), sum(Path(each).stat().st_size for each in found.files)
        assert totals(rows) == totals(whole), name
        shutil.rmtree(copy.parent)
        print(
            f"  {name}: {found.wall_s:,.1f} s, {found.processor_s:,.1f} s of a core, "
            f"{size / 1e6 / found.processor_s:,.1f} MB/s per core; {len(found.files)} files, {after / 1e6:,.0f} MB"
        )


def totals(rows: pa.Table) -> tuple[int, int]:
    """Rows, and the sum of a column in whole kilometres."""
    return rows.num_rows, round(pc.sum(rows["range_m"]).as_py() / 1e3)


def compacted_by_platform(table: Path) -> Compacted:
    """As the maintenance does, with the start of its process, until all is on disk."""
    lake = Lake(str(table.parent), MissionClock(0, 0, 0.0), session)
    lake.reads_unverified = True
    began_s, processor_s = time.perf_counter(), own_processor_s()
    compact(lake, OBSERVATIONS)
    return Compacted(time.perf_counter() - began_s, own_processor_s() - processor_s, DeltaTable(table).file_uris())


def compacted_by_spark(table: Path) -> Compacted:
    """By OPTIMIZE with the codec of the Parquet profile and its dictionaries; the processor time is the engine's."""
    spark = session()
    spark.range(1).count()  # the start of the engine is not measured
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", POLICY.target_file_bytes)
    spark.conf.set("parquet.writer.version", "PARQUET_2_0")
    spark.conf.set(f"parquet.compression.codec.{CODEC.lower()}.level", CODEC_LEVEL)
    for column in OBSERVATIONS.columns:
        has_dictionary = encoding_of(OBSERVATIONS, column) == "DICTIONARY"
        spark.conf.set(f"parquet.enable.dictionary#{column.name}", has_dictionary)
    before_s = {process: cpu_s(process) for process in children(os.getpid())}
    began_s = time.perf_counter()
    spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    wall_s = time.perf_counter() - began_s
    processor_s = sum(cpu_s(process) - before for process, before in before_s.items())
    return Compacted(wall_s, processor_s, DeltaTable(table).file_uris())


def own_processor_s() -> float:
    """Processor time of this process and of its children that have ended, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def compacted_by_duckdb(table: Path) -> Compacted:
    """The same by a copy of DuckDB, without a commit."""
    files, target = DeltaTable(table).file_uris(), str(table / "whole.parquet")
    began_s, processor_s = time.perf_counter(), time.process_time()
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM read_parquet(?)) TO '{target}' (COMPRESSION zstd, COMPRESSION_LEVEL {CODEC_LEVEL})",
            [files],
        )
    return Compacted(time.perf_counter() - began_s, time.process_time() - processor_s, [target])


def children(pid: int) -> list[int]:
    """Process ids of all descendants."""
    found = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [below for each in found for below in children(each)]


def write_observations(lake: Lake, rows: int, files: int) -> None:
    """Observations of `SENSORS` sensors in order of time, one hour a file and commit, by delta-rs; those there stay."""
    each = rows // files
    for number in range(lake.log(OBSERVATIONS).head().sequence, files):
        chance = np.random.default_rng([1, number])
        times_ns = number * HOUR_NS + np.sort(chance.integers(0, HOUR_NS, each))
        columns: dict[str, Any] = {
            "observation_id": [f"{number:05d}-{n:08d}" for n in range(each)],
            "source_id": chance.choice([f"radar-{n}" for n in range(SENSORS)], each),
            "sensor_time_ns": times_ns,
            "received_time_ns": times_ns,
            "range_m": chance.uniform(4e5, 4e6, each),
            "azimuth_rad": chance.uniform(0, 6.28, each),
        }
        schema = OBSERVATIONS.content_schema
        content = pa.table([columns.get(f.name, pa.nulls(each, f.type)) for f in schema], schema=schema)
        append(lake.log(OBSERVATIONS), lake.plan(OBSERVATIONS), content, engine=with_delta_rs)


def as_of_query(lake: Lake, rows: int, files: int, hours: int) -> None:
    """One sensor's hours as of the middle commit: ours, the floor, and peers."""
    log, middle = lake.log(OBSERVATIONS), files // 2
    first, last, sensor = (middle - 1 - hours) * HOUR_NS, (middle - 1) * HOUR_NS, "radar-7"
    where = f"source_id = '{sensor}' AND sensor_time_ns >= {first} AND sensor_time_ns < {last}"
    sql = f"SELECT count(*) AS n, sum(range_m) AS total FROM observations WHERE {where}"
    whole = (ds.field("sensor_time_ns") >= first) & (ds.field("sensor_time_ns") < last)
    table = DeltaTable(log.uri)
    kept = [fragment.path for fragment in log.dataset(table).get_fragments(whole)]
    pinned = [f"{log.uri}/{path}" for path in kept]

    def ours() -> dict[str, Any]:
        anew = Lake(lake.uri, lake.clock, without_session)  # one that has opened no table yet, as `sda query` has
        vector = vector_of(anew, {OBSERVATIONS.name: OBSERVATIONS}, f"observations={middle}")
        return dict(PinnedView(anew, TABLES, vector).rows(sql).to_pylist()[0])

    opened = PinnedView(lake, TABLES, vector_of(lake, {OBSERVATIONS.name: OBSERVATIONS}, f"observations={middle}"))

    def in_open_view() -> dict[str, Any]:
        return dict(opened.rows(sql).to_pylist()[0])

    def floor() -> dict[str, Any]:
        with duckdb.connect() as connection:
            scan = sql.replace("FROM observations", "FROM read_parquet(?)")
            return named(connection.execute(scan, [pinned]).fetchone())

    def with_duckdb() -> dict[str, Any]:
        with duckdb.connect() as connection:
            at = DeltaTable(log.uri, version=middle).file_uris()
            scan = sql.replace("FROM observations", "FROM read_parquet(?)")
            return named(connection.execute(scan, [at]).fetchone())

    def with_polars() -> dict[str, Any]:
        rows_then = pl.scan_delta(log.uri, version=middle)
        chosen = rows_then.filter(
            (pl.col("source_id") == sensor) & (pl.col("sensor_time_ns") >= first) & (pl.col("sensor_time_ns") < last)
        )
        return named(chosen.select(pl.len(), pl.col("range_m").sum()).collect().row(0))

    def with_delta_rs_sql() -> dict[str, Any]:
        at = QueryBuilder().register(OBSERVATIONS.name, DeltaTable(log.uri, version=middle))
        return dict(pa.table(at.execute(sql).read_all()).to_pylist()[0])

    means = {
        "ours": ours,
        "ours, in an open view": in_open_view,
        "scan of the files kept": floor,
        "DuckDB": with_duckdb,
        "Polars": with_polars,
        "delta-rs": with_delta_rs_sql,
    }
    answers = {name: run() for name, run in means.items()}
    assert len({(a["n"], round(a["total"])) for a in answers.values()}) == 1, answers
    seconds = {name: median_s(run) for name, run in means.items()}
    label = "full size" if rows >= 50_000_000 else "scaled"
    stored = len(table.file_uris())
    print(f"as-of query, {rows:,} rows of {files} commits in {stored} files ({label}); {hours} h in {len(kept)} files")
    for name, taken in seconds.items():
        print(f"  {name}: {taken * 1e3:,.0f} ms, {taken / seconds['scan of the files kept']:.1f} times the scan")


def pinned_reads(directory: Path, schedules: int) -> None:
    """An old version of a replaced table is read under a lease while files expire around it; a seed for each."""
    unchanged = []
    for seed in range(schedules):
        unchanged.append(is_unchanged(directory / str(seed), seed))
        shutil.rmtree(directory / str(seed))
    label = "full size" if schedules >= 1_000 else "scaled from 1,000"
    print(f"pinned reads during maintenance: {sum(unchanged)} of {schedules} drawn schedules unchanged ({label})")


def named(row: Any) -> dict[str, Any]:
    """Count and sum of a peer's row."""
    return {"n": row[0], "total": row[1]}


def median_s(run: Callable[[], object]) -> float:
    """Median time of some runs, s."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
