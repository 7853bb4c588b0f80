"""The overhead of exactly-once: against plain appends, with a short and a long log, and without new input.

    python benchmarks/commit.py [overhead] [latency] [skip] [contract] [--rounds 5] [--json FILE]

Both sides write the same rows through the same engine, with the platform's configuration. The plain side plans
nothing, verifies nothing, checks no log and archives no file: it reads, decodes and appends.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from contest import Entry, Gate, Result, contest, ratio, report, timed
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from local_engine import local_engine
from platform_ingest import SEALED_NS, Inputs, PlatformIngest
from pyspark.sql import functions as F
from rich.console import Console

from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.tables import TRACKS
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.contract import validated
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan, plan_segments
from sda_platform.lake.properties import table_properties
from sda_platform.lake.quick_contract import keeps_contract
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.landing.decoding import decode_batch
from sda_platform.landing.segments import LoadedSegment
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.delta_tables import rows_of

FILES, RECORDS = 10, 5_000
SHORT_LOG, LONG_LOG = 20, 2_000
_CHECKPOINT_EVERY = 10
PLATFORM, PLAIN = "platform", "plain appends"


def overhead(home: Path, spark: SparkResource, rounds: int, batches: int) -> Result:
    """Batches of 10 files × 5,000 records, committed exactly once and merely appended."""
    inputs = Inputs(home / "overhead", batches * FILES, RECORDS)
    names = inputs.names()

    def exactly_once(_round: int) -> float:
        ours = PlatformIngest(home / "platform", spark, max_segments=FILES)
        inputs.seal_in(ours.landing_root)

        def work() -> None:
            for _ in range(batches):
                ours.land()

        return timed(work)

    def plain(number: int) -> float:
        lake = PlatformIngest(home / f"plain-{number}", spark).lake
        portions = [names[first : first + FILES] for first in range(0, len(names), FILES)]

        def work() -> None:
            for sequence, portion in enumerate(portions, 1):
                _append_plainly(lake, inputs, portion, sequence)

        seconds = timed(work)
        if number == 0:
            _require_equal_rows(home / "platform" / "lake", home / "plain-0" / "lake")
        return seconds

    seconds = contest([Entry(PLATFORM, exactly_once), Entry(PLAIN, plain)], rounds)
    gate = Gate(f"time of {PLATFORM} / {PLAIN}", ratio(seconds, PLAIN, PLATFORM), 1.15, at_least=False)
    title = f"overhead: {batches} batches × {FILES} files × {RECORDS:,} records"
    return Result(title, {"records": batches * FILES * RECORDS}, seconds, [gate])


def latency(home: Path, spark: SparkResource, rounds: int) -> Result:
    """One tiny commit, from planning to the receipt, on a log of 20 and of 2,000 commits."""
    rows, platforms = _one_row(Inputs(home / "latency", 1, 1)), {}
    for length in (SHORT_LOG, LONG_LOG):
        ours = PlatformIngest(home / f"log-{length}", spark)
        _grow_log(ours.lake, rows, length)
        platforms[f"log of {length:,} commits"] = ours

    def commit(ours: PlatformIngest, _round: int) -> float:
        lake = ours.lake
        return timed(lambda: lake.append(_next_plan(lake), rows))

    entries = [Entry(name, partial(commit, ours)) for name, ours in platforms.items()]
    seconds = contest(entries, 6 * rounds)
    short, long = platforms
    gates = [Gate(f"p50 s, {name}", statistics.median(seconds[name]), 0.6, at_least=False) for name in platforms]
    gates.append(Gate(f"{long} / {short}", ratio(seconds, short, long), 1.3, at_least=False))
    return Result("commit latency", {"commits": 1}, seconds, gates)


def skip(home: Path, spark: SparkResource, rounds: int) -> Result:
    """A batch of 10 segments that is delivered again: looked at, found in the archive, dropped."""
    inputs = Inputs(home / "skip", FILES, 50)
    ours = PlatformIngest(home / "platform", spark)
    inputs.seal_in(ours.landing_root)
    ours.land()

    def again(_round: int) -> float:
        inputs.seal_in(ours.landing_root)
        return timed(lambda: _require_nothing(ours.look()))

    def nothing(_round: int) -> float:
        return timed(lambda: _require_nothing(ours.look()))

    seconds = contest([Entry("delivered again", again), Entry("no delivery", nothing)], 6 * rounds)
    gates = [Gate(f"p50 ms, {name}", 1e3 * statistics.median(s), 30, at_least=False) for name, s in seconds.items()]
    return Result(f"skip: {FILES} segments that are done", {"batches": 1}, seconds, gates)


def contract(home: Path, spark: SparkResource, rounds: int) -> Result:
    """50,000 rows before their commit: judged by the quick check, which every commit has, and by pandera alone."""
    rows = {table.name: _rows_like(table, FILES * RECORDS) for table in (TRACKS, RAW_RECORDS)}
    lake = PlatformIngest(home / "contract", spark).lake

    def judged(table: Table, judge: Callable[[Table, pa.Table], Any], _round: int) -> float:
        return timed(lambda: judge(table, rows[table.name]))

    def committed(table: Table, _round: int) -> float:
        return timed(lambda: lake.append(_next_plan(lake, table), rows[table.name]))

    entries, gates = [], []
    for table in (TRACKS, RAW_RECORDS):
        for name, judge in (("quick check", keeps_contract), ("pandera", validated)):
            entries.append(Entry(f"{table.name}: {name}", partial(judged, table, judge)))
        entries.append(Entry(f"{table.name}: commit", partial(committed, replace(table, consumes=(), reads=()))))
    seconds = contest(entries, rounds)
    for table in (TRACKS, RAW_RECORDS):
        part = ratio(seconds, f"{table.name}: commit", f"{table.name}: quick check")
        gates.append(Gate(f"quick check / commit, {table.name}", part, 0.1, at_least=False))
    return Result(f"contract: {FILES * RECORDS:,} rows", {"rows": FILES * RECORDS}, seconds, gates)


def _rows_like(table: Table, count: int) -> pa.Table:
    """Rows that keep the contract, with a covariance of its own in each."""
    rows = pa.concat_tables([rows_of(table, [{}])] * count).combine_chunks()
    chance = np.random.default_rng(1)
    for number, column in enumerate(table.columns):
        for size in (rule.statistics["size"] for rule in column.rules if rule.name == "covariance"):
            factor = chance.normal(size=(count, size, size)) * 10.0 ** chance.uniform(-6, 1, size=(count, size, 1))
            triangles = (factor @ factor.swapaxes(1, 2))[:, *np.tril_indices(size)]
            field = rows.schema.field(number)
            rows = rows.set_column(number, field, pa.array(list(triangles), field.type))
    return rows


def _append_plainly(lake: Lake, inputs: Inputs, names: Sequence[str], sequence: int) -> None:
    """Read, decode, append to a table that is laid out like ours: the metadata is taken at its word."""
    segments = []
    for name in names:
        data, meta = (inputs.plain / name).read_bytes(), inputs.metas[name]
        segments.append(LoadedSegment("optical", name, meta.sha256, data, meta, None))
    rows = lake.frame(RAW_RECORDS, decode_batch(RAW_RECORDS, segments, decode_segments).rows)
    stamped = rows.withColumn(COMMIT_SEQUENCE, F.lit(sequence).cast("long"))
    columns = [c.name for c in RAW_RECORDS.columns]
    writer = stamped.select(*columns).write.format("delta").mode("append")
    writer.options(**(table_properties(RAW_RECORDS) if sequence == 1 else {})).save(lake.log(RAW_RECORDS).uri)


def _require_equal_rows(ours: Path, plain: Path) -> None:
    columns = [c.name for c in RAW_RECORDS.columns]
    tables = [DeltaTable(str(lake / RAW_RECORDS.name)).to_pyarrow_table(columns=columns) for lake in (ours, plain)]
    one, other = (t.sort_by([(name, "ascending") for name in RAW_RECORDS.key]).combine_chunks() for t in tables)
    if not one.equals(other):
        raise SystemExit("the platform's rows and those of the plain appends differ")


def _require_nothing(taken: Sequence[LoadedSegment]) -> None:
    if taken:
        raise SystemExit(f"{len(taken)} segments were taken again")


def _one_row(inputs: Inputs) -> pa.Table:
    (name,) = inputs.names()
    data, meta = (inputs.plain / name).read_bytes(), inputs.metas[name]
    return decode_batch(
        RAW_RECORDS, [LoadedSegment("optical", name, meta.sha256, data, meta, None)], decode_segments
    ).rows


def _grow_log(lake: Lake, rows: pa.Table, length: int) -> None:
    """Give ``raw_records`` ``length`` commits of ``rows``: the first by the engine, the rest, faster, by delta-rs."""
    lake.append(_next_plan(lake), rows)
    uri = lake.log(RAW_RECORDS).uri
    manifest = lake.head(RAW_RECORDS).commit.manifest  # type: ignore[union-attr]
    for sequence in range(2, length + 1):
        manifest = replace(manifest, sequence=sequence, previous_sha256=manifest.sha256, nonce=f"benchmark-{sequence}")
        stamped = rows.append_column(COMMIT_SEQUENCE, pa.array([sequence] * rows.num_rows, pa.int64()))
        write_deltalake(
            uri,
            stamped.select([c.name for c in RAW_RECORDS.columns]),
            mode="append",
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": manifest.to_json()},
                app_transactions=[Transaction(RAW_RECORDS.app_id, sequence)],
            ),
        )
        if sequence % _CHECKPOINT_EVERY == 0:
            DeltaTable(uri).create_checkpoint()


def _next_plan(lake: Lake, table: Table = RAW_RECORDS) -> Plan:
    return plan_segments(table, lake.head(table), (), now_ns=SEALED_NS, run_id="benchmark")


CASES = ("overhead", "latency", "skip", "contract")


def main() -> int:
    """Run the chosen benchmarks; 0 when every gate holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all by default")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count, of tiny commits 6 times as many")
    parser.add_argument("--batches", type=int, default=10, help="batches of the overhead")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sda-commit-") as directory, local_engine(Path(directory)) as spark:
        home, rounds = Path(directory), arguments.rounds
        cases = {
            "overhead": lambda: overhead(home, spark, rounds, arguments.batches),
            "latency": lambda: latency(home, spark, rounds),
            "skip": lambda: skip(home, spark, rounds),
            "contract": lambda: contract(home, spark, rounds),
        }
        results = (cases[name]() for name in arguments.cases or CASES)
        return report(Console(highlight=False), results, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
