"""Do screening and ingest become faster with more executors? Measured with one and two, simulated with more.

    python benchmarks/scaling.py [--hours 2] [--records 400000] [--tasks 16] [--json FILE]

Starts a standalone Spark cluster of one worker with one core, then one of two, each with a Connect server. The
platform's own assets screen the whole real catalogue (all against all) and take in landed observations. Both clusters
must store the same candidates and the same observations before a figure counts. The event log of the cluster with one
executor has the durations of its tasks. A simulation assigns them to more executors. The simulation of two is compared
with the measured two.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.table import Table
from sda_platform.spark.session import attach
from sda_platform_tests.support.event_log import ExecutedTask, parallel_s, serial_s, tasks_of
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.segments import START_NS, catalogue_ids, catalogue_of, described, land, radar_segment
from sda_platform_tests.support.spark_cluster import SparkCluster
from sda_platform_tests.support.wheels import unpacked_wheel

EXECUTORS, SIMULATED = (1, 2), (1, 2, 4, 8, 16)
SEGMENT_RECORDS = 20_000
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Measured:
    """A run on the cluster."""

    wall_s: float
    tasks: list[ExecutedTask]
    serial_s: float
    rows: list[tuple[object, ...]]

    def simulated_s(self, executors: int) -> float:
        """How long the run would take on so many executors."""
        return self.serial_s + parallel_s(self.tasks, executors)


def measured(cluster: SparkCluster, run: Callable[[], None], rows: Callable[[], list[tuple[object, ...]]]) -> Measured:
    """Do ``run`` on the cluster; ``rows`` reads what it stored."""
    begin_s = time.time()
    run()
    end_s = time.time()
    time.sleep(1.0)  # the log of events is written with a delay
    tasks = tasks_of(cluster.events, begin_s, end_s)
    return Measured(end_s - begin_s, tasks, serial_s(tasks, begin_s, end_s), rows())


def stored(platform: Platform, table: Table, *columns: str) -> list[tuple[object, ...]]:
    """The rows of a table in those columns, sorted."""
    rows = platform.rows(table, *columns)
    return sorted(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))


def screening(cluster: SparkCluster, home: Path, arguments: argparse.Namespace) -> Measured:
    """All against all of the real catalogue, which is in its table already."""
    resource = ScreeningResource(
        scope="all", horizon_h=arguments.hours, objects_per_task=arguments.objects, at_once=arguments.tasks
    )
    session = attach(cluster.remote, "reader", lake_uri=str(home / "lake"))
    platform = Platform(home, session, START_NS, resource, remote=cluster.remote)
    land(platform.zone("elements"), "catalogue.csv", catalogue_of(catalogue_ids()))
    platform.run("catalog_to_alerts", only=[ELEMENT_SETS.name, ORBITAL_CATALOG.name])
    return measured(
        cluster,
        lambda: void(platform.run("catalog_to_alerts", only=[CONJUNCTION_CANDIDATES.name])),
        lambda: stored(platform, CONJUNCTION_CANDIDATES, "event_id", "tca_time_ns", "miss_distance_km"),
    )


def ingest(cluster: SparkCluster, home: Path, arguments: argparse.Namespace) -> Measured:
    """Landed radar observations to `raw_records` and `observations`; a small batch before warms the session."""
    session = attach(cluster.remote, "reader", lake_uri=str(home / "lake"))
    platform = Platform(home, session, START_NS, remote=cluster.remote)
    chosen = [RAW_RECORDS.name, OBSERVATIONS.name]
    for name, first, count in (("warm", 0, 100), ("bulk", 1_000, arguments.records)):
        for number in range(0, count, SEGMENT_RECORDS):
            data = radar_segment(min(SEGMENT_RECORDS, count - number), first_track=first + number)
            platform.zone("radar").seal(f"{name}-{number:09d}.radar", data, described(data))
        if name == "warm":
            platform.run("observations_to_alerts", only=chosen)
    return measured(
        cluster,
        lambda: void(platform.run("observations_to_alerts", only=chosen)),
        lambda: stored(platform, OBSERVATIONS, "observation_id"),
    )


def void(_result: object) -> None:
    """Nothing."""


def main() -> None:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description="Scaling of screening and ingest with executors.")
    parser.add_argument("--hours", type=float, default=2.0, help="horizon of the screening")
    parser.add_argument("--records", type=int, default=400_000, help="observations to take in")
    parser.add_argument("--tasks", type=int, default=16, help="tasks of a screening at once")
    parser.add_argument("--objects", type=int, default=500, help="primary objects of a sweep")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found: dict[str, dict[int, Measured]] = {"screening": {}, "ingest": {}}
    with tempfile.TemporaryDirectory(prefix="sda-scaling-") as place:
        work = Path(place)
        wheel = unpacked_wheel(work / "wheel")
        for executors in EXECUTORS:
            with SparkCluster(work / f"cluster-{executors}", wheel, workers=executors).running() as cluster:
                for name, part in (("screening", screening), ("ingest", ingest)):
                    one = part(cluster, work / f"{name}-{executors}", arguments)
                    found[name][executors] = one
                    at_work = len({task.executor for task in one.tasks})
                    count = f"{len(one.tasks)} tasks on {at_work} executors"
                    console.print(f"{name}, {executors} executors: {one.wall_s:.1f} s, {count}")
    for name, runs in found.items():
        if runs[1].rows != runs[2].rows or not runs[1].rows:
            sys.exit(f"{name}: the two clusters stored different rows")
    report(found, arguments.json)


def report(found: dict[str, dict[int, Measured]], file: Path | None) -> None:
    """Print the times and speed-ups, and write them to ``file``."""
    figures = {}
    grid = Grid("run", "rows", "serial", "tasks", *(f"{n} executors" for n in SIMULATED), "two measured", box=None)
    for name, runs in found.items():
        one, two = runs[1], runs[2]
        simulated = {n: one.simulated_s(n) for n in SIMULATED}
        figures[name] = {
            "measured_s": {n: run.wall_s for n, run in runs.items()},
            "serial_s": one.serial_s,
            "tasks": len(one.tasks),
            "task_s": sum(task.duration_s for task in one.tasks),
            "longest_task_s": max((task.duration_s for task in one.tasks), default=0.0),
            "simulated_s": simulated,
            "speed_up_measured": one.wall_s / two.wall_s,
            "speed_up_simulated": {n: simulated[1] / seconds for n, seconds in simulated.items()},
        }
        cells = [f"{seconds:.1f} s ({simulated[1] / seconds:.2f})" for seconds in simulated.values()]
        measured_two = f"{two.wall_s:.1f} s ({one.wall_s / two.wall_s:.2f})"
        grid.add_row(name, f"{len(one.rows):,}", f"{one.serial_s:.1f} s", str(len(one.tasks)), *cells, measured_two)
    console.print(grid)
    if file:
        file.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
