"""How soon a platform that was killed in the middle of a run commits again, and that it does nothing twice.

    python benchmarks/restart.py [--kills 5]

Starts `sda up` in a home of its own. First it is killed (kill -9 of the supervisor, whose guardian ends every other
process with it) while it has nothing to do, and started again: the clock runs to its line that the engine is warm,
which is the time of a start without other load. Then a file of telescope records lands; once the run that
takes it has made its first commit the platform is killed, started again, and continues by itself: the clock runs to the
next commit of any table. Before a figure is printed, every table's chain of manifests is followed, and the records are
counted.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from platform_ingest import START_NS, optical_file
from rich.console import Console
from rich.table import Table as Grid
from waiting import wait_for

from sda_platform.clock import MissionClock
from sda_platform.formats.segments import describe_segment
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.lander import seal
from sda_platform.recovery.verification import broken_chain
from sda_platform.registry import TABLES
from sda_platform.runtime import guardian, platform_home
from sda_platform.settings import Settings

_RECORDS = 500
_BEYOND_ENGINE_S = 3.0


class Killable:
    """`sda up` in a process of its own; its output shows how far it has got."""

    def __init__(self, home: Path) -> None:
        self._home, self._output = home, home / "up.out"
        environment = {
            **os.environ, "SDA_HOME": str(home), "SDA_WEBSERVER_PORT": "0", "SDA_ENGINE_PORT": "0",
            "SDA_HEALTH_PORT": "0",
            "SDA_FUSION_REFRESH": "false",
        }  # fmt: skip
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sda_platform.cli.main", "up"],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def says(self, words: str) -> bool:
        """Whether it has printed ``words`` since its start. RuntimeError: it has ended."""
        told = self._output.read_text()
        if self._process.poll() is not None:
            raise RuntimeError(f"the platform ended:\n{told}")
        return words in told

    def kill(self) -> None:
        """Kill the supervisor; returns when no process of the platform is left."""
        mark = str(platform_home.read_state(self._home)["mark"])
        self._process.kill()
        self._process.wait()
        wait_for(lambda: not guardian.marked(mark), "the end of the platform's processes")


def main() -> int:
    """Run the benchmark; 0 when the first commit comes soon enough after the engine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sda-restart-") as directory:
        home = Path(directory)
        clock = MissionClock.starting_at(START_NS)
        clock.save(home)
        lake = Lake(Settings(home=home).lake_uri, clock, without_session)
        platform = Killable(home)
        warm_s: list[float] = []
        commit_s: list[float] = []

        def is_beyond(sequence: int) -> bool:
            return lake.head(RAW_RECORDS).sequence > sequence

        def has_more_than(commits: int) -> bool:
            return _commits(lake) > commits

        def has_observed(batches: int) -> bool:
            return _observed(lake) == batches * _RECORDS

        try:
            for _ in range(arguments.kills):
                wait_for(partial(platform.says, "the platform is up"), "the platform")
                platform.kill()
                began, platform = time.monotonic(), Killable(home)
                wait_for(partial(platform.says, "engine: warm\n"), "the engine")
                warm_s.append(time.monotonic() - began)
            for number in range(arguments.kills):
                wait_for(partial(platform.says, "the platform is up"), "the platform")
                _land(home, number, clock)
                wait_for(partial(is_beyond, number), "the batch's first commit")
                platform.kill()
                before = _commits(lake)
                began, platform = time.monotonic(), Killable(home)
                wait_for(partial(has_more_than, before), "the first commit")
                commit_s.append(time.monotonic() - began)
                wait_for(partial(has_observed, number + 1), "the rest of the batch")
        finally:
            platform.kill()
        problems = _problems(lake, arguments.kills * _RECORDS)
    if problems:
        raise SystemExit("; ".join(problems))
    return _report(warm_s, commit_s)


def _land(home: Path, number: int, clock: MissionClock) -> None:
    data = optical_file(number, _RECORDS)
    meta = describe_segment(
        data,
        feed="optical",
        segment_format="optical-jsonl",
        sealed_time_ns=clock.now_ns(),
        sealed_wall_time_ns=time.time_ns(),
    )
    seal(data, meta, Settings(home=home).landing_uri, stem=f"maui-{number}")


def _commits(lake: Lake) -> int:
    return sum(lake.head(table).sequence for table in TABLES)


def _observed(lake: Lake) -> int:
    return lake.log(OBSERVATIONS).row_count()


def _problems(lake: Lake, records: int) -> list[str]:
    """What was lost or done twice."""
    problems = [f"{t.name}: {gap}" for t in TABLES for gap in broken_chain(lake.log(t).commits())]
    for table in (RAW_RECORDS, OBSERVATIONS):
        keys = lake.log(table).rows(table.key)
        distinct = keys.group_by(list(table.key)).aggregate([]).num_rows
        if not keys.num_rows == distinct == records:
            problems.append(f"{table.name}: {keys.num_rows} rows, {distinct} of them distinct, of {records} records")
    return problems


def _report(warm_s: list[float], commit_s: list[float]) -> int:
    grid = Grid("s since start", "median", "max", box=None)
    for name, seconds in (("engine warm, nothing to do", warm_s), ("first commit, work undone", commit_s)):
        grid.add_row(name, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")
    console = Console(highlight=False, width=120)
    console.print(grid)
    beyond_s = statistics.median(commit_s) - statistics.median(warm_s)
    verdict = "holds" if beyond_s <= _BEYOND_ENGINE_S else "missed"
    console.print(
        f"{len(commit_s)} kills; nothing lost, nothing twice; beyond the engine's start {beyond_s:.1f} s "
        f"(bound ≤ {_BEYOND_ENGINE_S:.0f} s) {verdict}"
    )
    return int(verdict == "missed")


if __name__ == "__main__":
    sys.exit(main())
