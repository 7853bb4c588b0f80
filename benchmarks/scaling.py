"""Do screening and ingest become faster with more executors? Measured with one and two, simulated with more.

    python benchmarks/scaling.py [--hours 2] [--records 400000] [--tasks 16] [--json FILE]

Starts a standalone Spark cluster of one worker with one core, then one of two, each with a Connect server. The
platform's own assets screen the whole real catalogue (all against all) and take in landed observations. Both clusters
must store the same candidates and observations before a figure counts. Small runs before warm every executor, because
its first tasks load classes and compile kernels. The event log of the cluster with one executor has the durations
of its tasks. A simulation assigns them to more executors.

The simulation of two is compared with the measured two, and the difference is divided. Simulated from the tasks of the
two executors themselves, it shows the error of the model. The rest is that the same tasks take longer on two executors,
because driver, client and executors share the cores of this machine.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
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
SEGMENT_RECORDS, WARM_TRACKS = 20_000, 100
_LOG_DELAY_S = 1.0
"""How late the event log is written."""
_WARM_TASKS, _MOST_WARM_UPS = 4, 8
console = Console(highlight=False, soft_wrap=True, width=200)


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

    @property
    def task_s(self) -> float:
        """The sum of the durations of its tasks."""
        return sum(task.duration_s for task in self.tasks)


def measured(cluster: SparkCluster, run: Callable[[], None], rows: Callable[[], list[tuple[object, ...]]]) -> Measured:
    """Do ``run`` on the cluster; ``rows`` reads what it stored."""
    begin_s = time.time()
    run()
    end_s = time.time()
    time.sleep(_LOG_DELAY_S)
    tasks = tasks_of(cluster.events, begin_s, end_s)
    return Measured(end_s - begin_s, tasks, serial_s(tasks, begin_s, end_s), rows())


def stored(platform: Platform, table: Table, *columns: str) -> list[tuple[object, ...]]:
    """The rows of a table in those columns, sorted."""
    rows = platform.rows(table, *columns)
    return sorted(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))


def warmed(cluster: SparkCluster, executors: int, run: Callable[[int], object]) -> None:
    """Repeat ``run`` until each executor has ended some of its tasks."""
    before = Counter(cluster.tasks_by_executor())
    for number in range(_MOST_WARM_UPS):
        run(number)
        time.sleep(_LOG_DELAY_S)
        done = Counter(cluster.tasks_by_executor())
        done.subtract(before)
        if sum(tasks >= _WARM_TASKS for tasks in done.values()) >= executors:
            return
    console.print(f"[yellow]not every executor had work in {_MOST_WARM_UPS} warm-ups[/yellow]")


def screening(cluster: SparkCluster, executors: int, home: Path, arguments: argparse.Namespace) -> Measured:
    """All against all of the real catalogue, which is in its table already."""
    session = attach(cluster.remote, "reader", lake_uri=str(home / "lake"))

    def with_catalogue(place: Path, objects: Sequence[int], per_task: int) -> Platform:
        resource = ScreeningResource(
            scope="all", horizon_h=arguments.hours, objects_per_task=per_task, at_once=arguments.tasks
        )
        platform = Platform(place, session, START_NS, resource, remote=cluster.remote)
        land(platform.zone("elements"), "catalogue.csv", catalogue_of(objects))
        platform.run("catalog_to_alerts", only=[ELEMENT_SETS.name, ORBITAL_CATALOG.name])
        return platform

    def small(number: int) -> None:
        platform = with_catalogue(home / f"warm-{number}", catalogue_ids()[::100], 20)
        platform.run("catalog_to_alerts", only=[CONJUNCTION_CANDIDATES.name])

    warmed(cluster, executors, small)
    platform = with_catalogue(home, catalogue_ids(), arguments.objects)
    return measured(
        cluster,
        lambda: void(platform.run("catalog_to_alerts", only=[CONJUNCTION_CANDIDATES.name])),
        lambda: stored(platform, CONJUNCTION_CANDIDATES, "event_id", "tca_time_ns", "miss_distance_km"),
    )


def ingest(cluster: SparkCluster, executors: int, home: Path, arguments: argparse.Namespace) -> Measured:
    """Landed radar observations to `raw_records` and `observations`."""
    session = attach(cluster.remote, "reader", lake_uri=str(home / "lake"))
    platform = Platform(home, session, START_NS, remote=cluster.remote)
    chosen = [RAW_RECORDS.name, OBSERVATIONS.name]

    def land_tracks(name: str, first: int, count: int) -> None:
        for number in range(0, count, SEGMENT_RECORDS):
            data = radar_segment(min(SEGMENT_RECORDS, count - number), first_track=first + number)
            platform.zone("radar").seal(f"{name}-{number:09d}.radar", data, described(data))

    def small(number: int) -> None:
        land_tracks(f"warm-{number}", WARM_TRACKS * number, WARM_TRACKS)
        platform.run("observations_to_alerts", only=chosen)

    warmed(cluster, executors, small)
    land_tracks("bulk", WARM_TRACKS * _MOST_WARM_UPS, arguments.records)
    return measured(
        cluster,
        lambda: void(platform.run("observations_to_alerts", only=chosen)),
        lambda: [row for row in stored(platform, OBSERVATIONS, "native_track_id", "observation_id") if is_bulk(row)],
    )


def is_bulk(row: tuple[object, ...]) -> bool:
    """Whether an observation is none of the warm-ups, which differ in number."""
    return int(str(row[0]).rpartition(":")[2]) >= WARM_TRACKS * _MOST_WARM_UPS


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
                    one = part(cluster, executors, work / f"{name}-{executors}", arguments)
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
    columns = ("run", "rows", "serial", "tasks", *(f"{n} executors" for n in SIMULATED))
    grid = Grid(*columns, "two measured", "two from own tasks", "their tasks slower by", box=None)
    for name, runs in found.items():
        one, two = runs[1], runs[2]
        simulated = {n: one.simulated_s(n) for n in SIMULATED}
        figures[name] = {
            "measured_s": {n: run.wall_s for n, run in runs.items()},
            "serial_s": one.serial_s,
            "tasks": len(one.tasks),
            "task_s": one.task_s,
            "longest_task_s": max((task.duration_s for task in one.tasks), default=0.0),
            "simulated_s": simulated,
            "two_simulated_from_their_own_tasks_s": two.simulated_s(2),
            "serial_of_two_s": two.serial_s,
            "tasks_slower_on_two": two.task_s / one.task_s,
            "speed_up_measured": one.wall_s / two.wall_s,
            "speed_up_simulated": {n: simulated[1] / seconds for n, seconds in simulated.items()},
        }
        cells = [f"{seconds:.1f} s ({simulated[1] / seconds:.2f})" for seconds in simulated.values()]
        measured_two = f"{two.wall_s:.1f} s ({one.wall_s / two.wall_s:.2f})"
        difference = [f"{two.simulated_s(2):.1f} s", f"{two.task_s / one.task_s:.2f}"]
        facts = [name, f"{len(one.rows):,}", f"{one.serial_s:.1f} s", str(len(one.tasks))]
        grid.add_row(*facts, *cells, measured_two, *difference)
    console.print(grid)
    if file:
        file.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
