"""What it costs to find one's footing in a log: by its length, for a head, a plan, and the verification at a start.

    python benchmarks/recovery.py [--commits 20 1000 10000] [--rounds 15]

Lays out two tables whose logs have that many commits of one data file each, none compacted, with Delta's checkpoint a
few commits back as the engine leaves it, and asks each for its head, a plan and its soundness, in turns. Every answer
is compared with what was laid out. Ratios are to the shortest log. What is in progress is the same in all of them, so
head and plan should cost the same; the verification of the data files grows with their number.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from rich.console import Console
from rich.table import Table as Grid

from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.checkpoint import GENESIS, Checkpoint, TableWindow
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.properties import table_properties
from sda_platform.lake.soundness.examination import Depth, examine
from sda_platform.lake.table import Table

# Delta writes a checkpoint of its own every ten commits.
_SINCE_CHECKPOINT = 5
# Head and plan may cost this much more on the longest log than on the shortest.
_GATE = 1.3


@dataclass(frozen=True)
class Subject:
    """A lake whose tables have ``commits`` commits."""

    commits: int
    lake: Lake


def main() -> int:
    """Run the benchmark; 0 when head and plan stay flat."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, nargs="+", default=[20, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sda-recovery-") as directory:
        subjects = [_laid_out(Path(directory) / str(n), n) for n in sorted(arguments.commits)]
        seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
        for _ in range(arguments.rounds):
            for subject in subjects:
                for name, question in _questions(subject).items():
                    began = time.perf_counter()
                    answer = question()
                    seconds[name, subject.commits].append(time.perf_counter() - began)
                    if answer != subject.commits:
                        raise SystemExit(f"{name} on {subject.commits} commits answered {answer}")
    return _report(seconds, [s.commits for s in subjects])


def _questions(subject: Subject) -> dict[str, Callable[[], int]]:
    """Each answers the number of commits, so that a wrong answer cannot be a fast one."""
    lake, log = subject.lake, subject.lake.log(RAW_RECORDS)
    return {
        "head": lambda: lake.head(RAW_RECORDS).sequence,
        "plan": lambda: lake.plan(OBSERVATIONS, consume=[RAW_RECORDS]).window(RAW_RECORDS).upto_sequence,
        "soundness, in a run": lambda: examine(log, Depth.NEWEST).version + 1,
        "soundness, at a start": lambda: examine(log, Depth.PRESENCE).sequence,
        "soundness, sda verify": lambda: examine(log, Depth.FOOTERS).sequence,
    }


def _laid_out(root: Path, commits: int) -> Subject:
    clock = MissionClock(0, 0, 0.0)
    lake = Lake(str(root), clock, without_session)
    raw = _write_log(lake, RAW_RECORDS, commits, ())
    _write_log(lake, OBSERVATIONS, commits, (TableWindow(RAW_RECORDS.name, 0, commits, -1, commits - 1, raw.sha256),))
    return Subject(commits, lake)


def _write_log(lake: Lake, table: Table, commits: int, windows: tuple[TableWindow, ...]) -> Checkpoint:
    """The first commit by delta-rs, the others as copies of it with their own sequence, checkpoint and data file."""
    uri, previous = lake.log(table).uri, GENESIS
    checkpoint = Checkpoint(table.name, 1, previous, 0, "run", "nonce-1", windows)
    write_deltalake(
        uri,
        table.arrow_schema.empty_table(),
        configuration=table_properties(table),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": checkpoint.to_json()}, app_transactions=[Transaction(table.app_id, 1)]
        ),
    )
    log = Path(uri, "_delta_log")
    first = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    info = next(action["commitInfo"] for action in first if "commitInfo" in action)
    data = _data_file(Path(uri), table)
    for sequence in range(2, commits + 1):
        checkpoint = Checkpoint(table.name, sequence, checkpoint.sha256, 0, "run", f"nonce-{sequence}", windows)
        name = f"part-{sequence:05d}.parquet"
        os.link(data, Path(uri, name))
        add = {
            "path": name, "partitionValues": {}, "size": data.stat().st_size, "modificationTime": 0,
            "dataChange": True, "stats": json.dumps({"numRecords": 0}),
        }  # fmt: skip
        actions = [
            {"commitInfo": {**info, "userMetadata": checkpoint.to_json()}},
            {"txn": {"appId": table.app_id, "version": sequence}},
            {"add": add},
        ]
        lines = (json.dumps(action, separators=(",", ":")) for action in actions)
        (log / f"{sequence - 1:020d}.json").write_text("\n".join(lines))
    DeltaTable(uri, version=commits - _SINCE_CHECKPOINT).create_checkpoint()
    return checkpoint


def _data_file(root: Path, table: Table) -> Path:
    file = root / "_empty.parquet"
    pq.write_table(table.arrow_schema.empty_table(), file)
    return file


def _report(seconds: dict[tuple[str, int], list[float]], lengths: list[int]) -> int:
    grid = Grid("median, ms", *(f"{n:,} commits" for n in lengths), "ratio", box=None)
    ratios = {}
    for name in dict.fromkeys(name for name, _ in seconds):
        medians = [statistics.median(seconds[name, n]) for n in lengths]
        ratios[name] = medians[-1] / medians[0]
        grid.add_row(name, *(f"{1000 * median:.1f}" for median in medians), f"{ratios[name]:.2f}")
    Console(highlight=False, width=140).print(grid)
    return int(any(ratios[name] > _GATE for name in ratios if name.startswith(("head", "plan"))))


if __name__ == "__main__":
    sys.exit(main())
