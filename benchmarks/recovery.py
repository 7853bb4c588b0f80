"""What a run and a start do with the log of a table, by the age of the log.

    python benchmarks/recovery.py [--commits 1000 50000 1000000] [--rounds 15]

Lays out two tables whose logs have that many commits of the platform, with one of another tool (a VACUUM) after every
fifth, and Delta's checkpoint a few commits back as the engine leaves it. The newest 200 commits are whole and have a
data file each; the older ones are links to one of them, since only their names and ages count. A commit comes every 15
seconds: what is older than the retention is then removed by the maintenance's own clean-up (not with --uncleaned).

Measures for each table what a run does (head, plan, the list of commits that checks follow, the check `log_is_sound`)
and what a start does, in turns. Every answer is compared with what was laid out. Ratios are to the shortest log. What a
run reads of a log must cost the same on all of them. A start lists the whole log, and so do delta-rs and Spark whenever
they open a local table; its length is bounded by the retention alone.
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
from sda_platform.history.log_cleanup import clean_log
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.manifest import GENESIS, CommitManifest, TableWindow
from sda_platform.lake.properties import table_properties
from sda_platform.lake.retention import RETENTION
from sda_platform.lake.table import Table
from sda_platform.orchestration.table_checks import log_is_sound
from sda_platform.recovery.examination import Depth, examine

# Delta writes a checkpoint of its own every ten commits.
_SINCE_CHECKPOINT = 5
_WHOLE_COMMITS = 200
# ext4 allows 65,000 links to a file.
_LINKS_PER_FILE = 60_000
# What a run does may cost this much more on the longest log than on the shortest.
_GATE = 1.3
_IN_A_RUN = "run: "
_COMMIT_EVERY_MS = 15_000
_FOREIGN_EVERY = 5
_NOW_MS = 2_000_000_000_000
_EXPIRED_MS = _NOW_MS - RETENTION.log_h * 3_600_000


@dataclass(frozen=True)
class Subject:
    """A lake whose tables have ``commits`` commits of the platform; ``left`` versions are left in the log."""

    commits: int
    lake: Lake
    home: Path
    left: int


def main() -> int:
    """Run the benchmark; 0 when what a run does stays flat."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, nargs="+", default=[1_000, 50_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--uncleaned", action="store_true", help="as if the maintenance had never run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sda-recovery-") as directory:
        lengths = sorted(arguments.commits)
        subjects = [_laid_out(Path(directory) / str(n), n, is_cleaned=not arguments.uncleaned) for n in lengths]
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
    return _report(seconds, subjects)


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
        "sda lake verify": lambda: examine(log, Depth.FOOTERS).sequence,
    }


def _newest_rows(subject: Subject) -> int:
    span = (subject.commits - 1, subject.commits)
    return int(subject.lake.log(RAW_RECORDS).rows_of(span, ["segment_sha256"]).num_rows)


def _laid_out(root: Path, commits: int, *, is_cleaned: bool) -> Subject:
    clock = MissionClock(0, 0, 0.0)
    lake = Lake(str(root), clock, without_session)
    lake.reads_unverified = True  # the tables have no checks here
    raw, version = _write_log(lake, RAW_RECORDS, commits, ())
    window = TableWindow(RAW_RECORDS.name, 0, commits, -1, version, raw.sha256)
    _write_log(lake, OBSERVATIONS, commits, (window,))
    log, reader = lake.log(RAW_RECORDS), lake.log(OBSERVATIONS)
    if is_cleaned:
        verdict = lake.verdicts.read(log)
        clean_log(log, [reader], verdict, now_ms=_NOW_MS, retention=RETENTION)
        clean_log(reader, [], verdict, now_ms=_NOW_MS, retention=RETENTION)
    left = len(list(Path(log.uri, "_delta_log").glob("*.json")))
    return Subject(commits, lake, root, left)


def _write_log(lake: Lake, table: Table, commits: int, windows: tuple[TableWindow, ...]) -> tuple[CommitManifest, int]:
    """A log of ``commits`` commits and those of others; returns the newest manifest and its version.

    The whole commits are made as versions 0, 1, … and then moved up; below them come links.
    """
    uri, own = lake.log(table).uri, min(commits, _WHOLE_COMMITS)
    first = commits - own + 1
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
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action) | {"timestamp": _NOW_MS}
    foreign = {"commitInfo": {"timestamp": _NOW_MS, "operation": "VACUUM END", "operationParameters": {}}}
    data = _data_file(Path(uri), table)
    version = 0
    for sequence in range(first + 1, commits + 1):
        if sequence % _FOREIGN_EVERY == 0:
            version += 1
            _write_version(log, version, foreign)
        manifest = CommitManifest(table.name, sequence, manifest.sha256, 0, "run", f"nonce-{sequence}", windows)
        name = f"part-{sequence:07d}.parquet"
        os.link(data, Path(uri, name))
        add = {
            "path": name, "partitionValues": {}, "size": data.stat().st_size, "modificationTime": 0,
            "dataChange": True, "stats": json.dumps({"numRecords": 0}),
        }  # fmt: skip
        version += 1
        described = {"commitInfo": {**info, "userMetadata": manifest.to_json()}}
        _write_version(log, version, described, {"txn": {"appId": table.app_id, "version": sequence}}, {"add": add})
    DeltaTable(uri, version=version + 1 - _SINCE_CHECKPOINT).create_checkpoint()
    older = (commits - own) * (_FOREIGN_EVERY + 1) // _FOREIGN_EVERY
    _move_up(log, version + 1, older)
    return manifest, version + older


def _write_version(log: Path, version: int, *lines: dict[str, Any]) -> None:
    _commit_file(log, version).write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines))


def _move_up(log: Path, whole: int, by: int) -> None:
    """Give the ``whole`` newest versions of a log numbers that are higher by ``by``, and fill up what is below.

    Of the older versions, those beyond the retention are as old as that; one of Delta's checkpoints is at the border.
    """
    if by == 0:
        return
    for version in reversed(range(whole)):
        _commit_file(log, version).rename(_commit_file(log, version + by))
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    number = int(checkpoint.name.partition(".")[0]) + by
    checkpoint = checkpoint.rename(log / f"{number:020d}.checkpoint.parquet")
    pointer = log / "_last_checkpoint"
    pointer.write_text(json.dumps({**json.loads(pointer.read_text()), "version": number}))
    recent = (_NOW_MS - _EXPIRED_MS) // _COMMIT_EVERY_MS * (_FOREIGN_EVERY + 1) // _FOREIGN_EVERY
    border = max(by + whole - recent, 0)
    if 0 < border < by:
        os.link(checkpoint, log / f"{border:020d}.checkpoint.parquet")
    text = _commit_file(log, by + 1).read_text()
    old = text.replace(str(_NOW_MS), str(_EXPIRED_MS - 1))
    for version in range(by):
        if version % _LINKS_PER_FILE == 0 or version == border:
            source = _commit_file(log, version)
            source.write_text(old if version < border else text)
        else:
            os.link(source, _commit_file(log, version))


def _commit_file(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


def _data_file(root: Path, table: Table) -> Path:
    file = root / "_empty.parquet"
    pq.write_table(table.arrow_schema.empty_table(), file)
    return file


def _report(seconds: dict[tuple[str, int], list[float]], subjects: list[Subject]) -> int:
    lengths = [subject.commits for subject in subjects]
    grid = Grid("median, ms", *(f"{n:,} commits" for n in lengths), "ratio", box=None)
    grid.add_row("versions in the log", *(f"{subject.left:,}" for subject in subjects))
    ratios = {}
    for name in dict.fromkeys(name for name, _ in seconds):
        medians = [statistics.median(seconds[name, n]) for n in lengths]
        ratios[name] = medians[-1] / medians[0]
        grid.add_row(name, *(f"{1000 * median:.1f}" for median in medians), f"{ratios[name]:.2f}")
    Console(highlight=False, width=140).print(grid)
    return int(any(ratios[name] > _GATE for name in ratios if name.startswith(_IN_A_RUN)))


if __name__ == "__main__":
    sys.exit(main())
