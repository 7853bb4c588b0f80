"""Speed from files to rows, against Spark with less work: bulk, micro-batches, small files, and discovery.

    python benchmarks/ingest.py [bulk] [micro] [small] [discovery] [--rounds 3] [--scale 1.0] [--json FILE]

The platform's side is the code of its assets: every checksum verified, every record kept with its provenance and its
id, one commit with its manifest, made durable, the files archived. Before a figure counts, the values that both
sides stored are compared. Both have an engine with the platform's configuration. That of bulk and micro peers has the
file system that PySpark comes with; the stream also runs on the platform's.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from contest import Entry, Gate, Result, contest, ratio, report, timed
from deltalake import DeltaTable
from local_engine import HADOOPS_FILES, local_engine
from platform_ingest import Inputs, PlatformIngest, archive_of
from rich.console import Console
from spark_peers import append_kept, append_parsed, stream

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.table import Table
from sda_platform.spark.session import SparkResource

PLATFORM = "platform"
_MEASURED = ("native_track_id", "sensor_time_ns", "right_ascension_rad", "declination_rad")
_AS_SENT = ("obs_id", "timestamp_ns", "ra_rad", "dec_rad")
_FEW_KNOWN, _MANY_KNOWN = 100_000, 1_000_000


class Ground:
    """Where a benchmark runs: a directory, the engines of the platform and of peers, and how often and how large."""

    def __init__(self, home: Path, spark: SparkResource, peers: SparkResource, rounds: int, scale: float) -> None:
        self.home, self.spark, self.peers, self.rounds, self._scale = home, spark, peers, rounds, scale

    def scaled(self, count: int) -> int:
        """``count`` for this run, at least 1."""
        return max(1, round(count * self._scale))

    def platform(self, *, max_segments: int = 10**6) -> PlatformIngest:
        """An empty platform."""
        return PlatformIngest(self.home / "platform", self.spark, max_segments=max_segments)

    def landing(self, inputs: Inputs) -> Callable[[int], float]:
        """An entry in which the platform lands all of ``inputs`` in one commit."""

        def run(_round: int) -> float:
            ours = self.platform()
            inputs.seal_in(ours.landing_root)
            return timed(ours.land)

        return run

    def peer(self, work: Callable[[Path], None]) -> Callable[[int], float]:
        """An entry that does ``work`` into an empty directory."""

        def run(_round: int) -> float:
            target = self.home / "peer"
            shutil.rmtree(target, ignore_errors=True)
            return timed(lambda: work(target / "table"))

        return run


def bulk(ground: Ground) -> Result:
    """One commit of 200 files with 5,000 records each."""
    files, records, session = ground.scaled(200), 5_000, ground.peers.spark_session
    inputs = Inputs(ground.home / "bulk", files, records)

    platform = ground.landing(inputs)

    def fields_alone(table: Path) -> None:
        append_parsed(session, inputs.plain, table)

    platform(0)
    fields_alone(ground.home / "check")
    require_equal(ground.home / "platform", RAW_RECORDS, ground.home / "check")
    fields, bronze = "Spark, the fields alone", "Spark, a bronze row"
    entries = [
        Entry(PLATFORM, platform),
        Entry(fields, ground.peer(fields_alone)),
        Entry(bronze, ground.peer(lambda table: append_kept(session, inputs.plain, table))),
    ]
    seconds = contest(entries, ground.rounds)
    gates = [Gate(f"times {name}", ratio(seconds, PLATFORM, name), 0.9, at_least=True) for name in (fields, bronze)]
    return Result(f"bulk: {files} files × {records:,} records", {"records": files * records}, seconds, gates)


def micro(ground: Ground) -> Result:
    """20 batches of 10 files; with the de-duplication of observations, as the stream has it, and without."""
    batches, files, records = ground.scaled(20), 10, 5_000
    inputs = Inputs(ground.home / "micro", batches * files, records)

    def platform(observe: bool) -> float:
        ours = ground.platform(max_segments=files)
        inputs.seal_in(ours.landing_root)

        def work() -> None:
            for _ in range(batches):
                ours.land()
                if observe:
                    ours.observe()

        return timed(work)

    def streamed(table: Path, spark: SparkResource = ground.peers) -> None:
        stream(spark.spark_session, inputs.plain, table, files_per_batch=files)

    streamed(ground.home / "check")
    platform(True)
    require_equal(ground.home / "platform", OBSERVATIONS, ground.home / "check")
    landing, observing = "platform, to raw_records", "platform, to observations"
    peer, on_ours = "Structured Streaming", "Structured Streaming on our files"
    entries = [
        Entry(landing, lambda _: platform(False)),
        Entry(observing, lambda _: platform(True)),
        Entry(peer, ground.peer(streamed)),
        Entry(on_ours, ground.peer(partial(streamed, spark=ground.spark))),
    ]
    seconds = contest(entries, ground.rounds)
    gates = [
        Gate(f"{name}, times {other}", ratio(seconds, name, other), bound, at_least=True)
        for other in (peer, on_ours)
        for name, bound in ((landing, 1.5), (observing, 1.0))
    ]
    work = {"records": batches * files * records, "batches": batches}
    return Result(f"micro: {batches} batches × {files} files × {records:,} records", work, seconds, gates)


def small(ground: Ground) -> Result:
    """10,000 files of 50 records each."""
    files, records, session = ground.scaled(10_000), 50, ground.spark.spark_session
    inputs = Inputs(ground.home / "small", files, records)

    platform = ground.landing(inputs)

    def directory(table: Path) -> None:
        append_parsed(session, inputs.plain, table)

    platform(0)
    directory(ground.home / "check")
    require_equal(ground.home / "platform", RAW_RECORDS, ground.home / "check")
    peer = "Spark, the directory"
    seconds = contest([Entry(PLATFORM, platform), Entry(peer, ground.peer(directory))], ground.rounds)
    ours = files / sorted(seconds[PLATFORM])[len(seconds[PLATFORM]) // 2]
    gates = [Gate("files/s", ours, 3_000, at_least=True)]
    return Result(f"small files: {files:,} × {records}", {"files": files}, seconds, gates)


def discovery(ground: Ground) -> Result:
    """10 new files where 100,000, and where 1,000,000 were consumed before: what a run looks at before it decodes."""
    inputs = Inputs(ground.home / "discovery", 10, 50)
    counts = {f"{count:,} known": ground.scaled(count) for count in (_FEW_KNOWN, _MANY_KNOWN)}
    archives = {name: archive_of(ground.home / "archives" / str(count), count) for name, count in counts.items()}

    def look(archive: Path, _round: int) -> float:
        ours = ground.platform()
        (ours.landing_root / "optical").mkdir(parents=True)
        (ours.landing_root / "optical" / "archive").symlink_to(archive)
        inputs.seal_in(ours.landing_root)
        return timed(ours.look)

    entries = [Entry(name, partial(look, archive)) for name, archive in archives.items()]
    seconds = contest(entries, max(ground.rounds, 20))
    few, many = counts
    gates = [Gate(f"{many} / {few}", ratio(seconds, few, many), 2.0, at_least=False)]
    return Result("discovery: 10 new files", {"files": 10}, seconds, gates)


def require_equal(home: Path, table: Table, peer: Path) -> None:
    """SystemExit unless the platform stored the very values that the peer did, each as often."""
    ours, theirs = _values(home / "lake" / table.name, _MEASURED), _values(peer, _AS_SENT)
    if not ours.equals(theirs):
        raise SystemExit(f"{table.name} has {ours.num_rows} rows, the peer {theirs.num_rows}, and they differ")
    shutil.rmtree(peer)


def _values(table: Path, columns: Sequence[str]) -> pa.Table:
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=list(columns)).rename_columns(list(_AS_SENT))
    return rows.sort_by([(name, "ascending") for name in _AS_SENT]).combine_chunks()


CASES = {"bulk": bulk, "micro": micro, "small": small, "discovery": discovery}


def main() -> int:
    """Run the chosen benchmarks; 0 when every gate holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all by default")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the inputs, 1 = as stated")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sda-ingest-") as directory:
        home = Path(directory)
        with local_engine(home / "engine") as spark, local_engine(home / "peers", HADOOPS_FILES) as peers:
            ground = Ground(home, spark, peers, arguments.rounds, arguments.scale)
            results = (CASES[name](ground) for name in arguments.cases or CASES)
            return report(Console(highlight=False), results, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
