"""What a run and a start do with the log of a table, by the age of the log.

    python benchmarks/recovery.py [--commits 1000 50000 1000000] [--rounds 15]

Lays out two tables whose logs have that many commits, with Delta's checkpoint a few commits back as the engine leaves
it. The newest 200 commits are whole and have a data file each; the older ones are links to one of them, since only
their names count. Asks each table for what a run does (head, plan, the list of commits that checks follow, the check
`log_is_sound`) and what a start does, in turns. Every answer is compared with what was laid out. Ratios are to the
shortest log. What a run reads of a log must cost the same on all of them. A start lists the whole log, and so do
delta-rs and Spark whenever they open a local table; its length is bounded by the retention alone (some 46,000 commits
of a busy table).
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
from typing import Any

import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from rich.console import Console
from rich.table import Table as Grid

from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.manifest import GENESIS, CommitManifest, TableWindow
from sda_platform.lake.properties import table_properties
from sda_platform.lake.table import Table
from sda_platform.orchestration.table_checks import log_is_sound
from sda_platform.recovery.examination import Depth, examine

# Delta writes a manifest of its own every ten commits.
_SINCE_CHECKPOINT = 5
_WHOLE_COMMITS = 200
# ext4 allows 65,000 links to a file.
_LINKS_PER_FILE = 60_000
# What a run does may cost this much more on the longest log than on the shortest.
_GATE = 1.3
_IN_A_RUN = "run: "


@dataclass(frozen=True)
class Subject:
    """A lake whose tables have ``commits`` commits."""

    commits: int
    lake: Lake
    home: Path


def main() -> int:
    """Run the benchmark; 0 when what a run does stays flat."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, nargs="+", default=[1_000, 50_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sda-recovery-") as directory:
        subjects = [_laid_out(Path(directory) / str(n), n) for n in sorted(arguments.commits)]
        seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
        for name in _questions(subjects[0]):  # one after the other: a listing leaves work to the garbage collector
            for _ in range(arguments.rounds):
                for subject in subjects:
                    question = _questions(subject)[name]
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
        f"{_IN_A_RUN}head": lambda: lake.head(RAW_RECORDS).sequence,
        f"{_IN_A_RUN}plan": lambda: lake.plan(OBSERVATIONS).window(RAW_RECORDS).upto_sequence,
        f"{_IN_A_RUN}commits that checks follow": lambda: log.commits()[0].sequence,
        f"{_IN_A_RUN}log_is_sound": lambda: subject.commits if log_is_sound(log, subject.home).passed else -1,
        "delta-rs: rows of a commit": lambda: subject.commits if _newest_rows(subject) == 0 else -1,
        "start: soundness": lambda: examine(log, Depth.PRESENCE).sequence,
        "sda verify": lambda: examine(log, Depth.FOOTERS).sequence,
    }


def _newest_rows(subject: Subject) -> int:
    span = (subject.commits - 1, subject.commits)
    return int(subject.lake.log(RAW_RECORDS).rows_of(span, ["segment_sha256"]).num_rows)


def _laid_out(root: Path, commits: int) -> Subject:
    clock = MissionClock(0, 0, 0.0)
    lake = Lake(str(root), clock, without_session)
    raw = _write_log(lake, RAW_RECORDS, commits, ())
    _write_log(lake, OBSERVATIONS, commits, (TableWindow(RAW_RECORDS.name, 0, commits, -1, commits - 1, raw.sha256),))
    return Subject(commits, lake, root)


def _write_log(lake: Lake, table: Table, commits: int, windows: tuple[TableWindow, ...]) -> CommitManifest:
    """A log of ``commits`` commits; returns its newest manifest.

    The whole commits are made as versions 0, 1, … and then moved up; below them come links.
    """
    uri, whole = lake.log(table).uri, min(commits, _WHOLE_COMMITS)
    first = commits - whole + 1
    manifest = CommitManifest(table.name, first, GENESIS, 0, "run", f"nonce-{first}", windows)
    write_deltalake(
        uri,
        table.arrow_schema.empty_table(),
        configuration=table_properties(table),
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": manifest.to_json()}, app_transactions=[Transaction(table.app_id, first)]
        ),
    )
    log = Path(uri, "_delta_log")
    actions = [json.loads(line) for line in _commit_file(log, 0).read_text().splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    data = _data_file(Path(uri), table)
    for version in range(1, whole):
        sequence = first + version
        manifest = CommitManifest(table.name, sequence, manifest.sha256, 0, "run", f"nonce-{sequence}", windows)
        name = f"part-{sequence:07d}.parquet"
        os.link(data, Path(uri, name))
        add = {
            "path": name, "partitionValues": {}, "size": data.stat().st_size, "modificationTime": 0,
            "dataChange": True, "stats": json.dumps({"numRecords": 0}),
        }  # fmt: skip
        lines: list[dict[str, Any]] = [
            {"commitInfo": {**info, "userMetadata": manifest.to_json()}},
            {"txn": {"appId": table.app_id, "version": sequence}},
            {"add": add},
        ]
        _commit_file(log, version).write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines))
    DeltaTable(uri, version=whole - _SINCE_CHECKPOINT).create_checkpoint()
    _move_up(log, whole, commits - whole)
    return manifest


def _move_up(log: Path, whole: int, by: int) -> None:
    """Give the ``whole`` newest versions of a log numbers that are higher by ``by``, and fill up what is below."""
    if by == 0:
        return
    for version in reversed(range(whole)):
        _commit_file(log, version).rename(_commit_file(log, version + by))
    (manifest,) = log.glob("*.checkpoint.parquet")
    number = int(manifest.name.partition(".")[0]) + by
    manifest.rename(log / f"{number:020d}.checkpoint.parquet")
    pointer = log / "_last_checkpoint"
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "version": number}))
    text = _commit_file(log, by + 1).read_text()
    for version in range(by):
        if version % _LINKS_PER_FILE == 0:
            source = _commit_file(log, version)
            source.write_text(text)
        else:
            os.link(source, _commit_file(log, version))


def _commit_file(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


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
    return int(any(ratios[name] > _GATE for name in ratios if name.startswith(_IN_A_RUN)))


if __name__ == "__main__":
    sys.exit(main())
