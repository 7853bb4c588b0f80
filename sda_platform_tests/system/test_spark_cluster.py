"""The platform on a standalone Spark cluster: both workers do its work, and a killed part of it loses nothing."""

import csv
import gc
import gzip
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import executors
from sda_platform.lake.commit import CommitReceipt, append
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import plan_windows
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform.recovery.verification import broken_chain
from sda_platform.simulation.world import simulate
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform.spark.session import attach
from sda_platform_tests.campaign.platform import frozen_until
from sda_platform_tests.support.delta_tables import lake_at, rows_of
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.segments import (
    START_NS,
    after,
    catalogue_of,
    described,
    land,
    radar_segment,
)
from sda_platform_tests.support.spark_cluster import SparkCluster
from sda_platform_tests.support.wheels import unpacked_wheel

pytestmark = pytest.mark.timeout(900)
LONG = pytest.mark.skipif(
    "SERVICES" not in os.environ,
    reason="takes minutes; the pipeline runs on the cluster here; see `make soak SERVICES=1`",
)
_ROWS, _TASKS = 40, 2
_PARQUET_END = b"PAR1"
_WAIT_S = 120.0
_HORIZON_H = 0.05
_TRUTH = Path(__file__).parents[1] / "data/screening/celestrak_2024-11-01_events_24h_5km.csv.gz"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master, two workers and a Connect server."""
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    wheel = unpacked_wheel(tmp_path_factory.mktemp("wheel"))
    with SparkCluster(tmp_path_factory.mktemp("cluster"), wheel).running() as started:
        yield started


class HeldCommit:
    """A commit of rows that Python functions on two executors make, each of which waits until it is let go."""

    def __init__(self, cluster: SparkCluster, lake: Lake, place: Path) -> None:
        self.lake, self._place = lake, place
        place.mkdir()
        self._session = attach(cluster.remote, "tests", lake_uri=lake.uri)
        self.receipt: CommitReceipt | None = None
        self.failure: Exception | None = None
        self._thread = Thread(target=self._commit, daemon=True)

    def begin(self) -> "HeldCommit":
        """Return when both tasks have begun."""
        self._thread.start()
        assert eventually(lambda: len(list(self._place.glob("task-*"))) >= _TASKS or self.failure is not None, _WAIT_S)
        assert self.failure is None, self.failure
        return self

    def let_go(self) -> None:
        """Let the tasks go on."""
        (self._place / "go").touch()

    def end(self) -> "HeldCommit":
        """Let the tasks go on, and return when the commit is decided."""
        self.let_go()
        self._thread.join(_WAIT_S)
        assert not self._thread.is_alive(), "the commit hangs"
        return self

    def _commit(self) -> None:
        head = self.lake.head(OBSERVATIONS)
        plan = plan_windows(OBSERVATIONS, head, (), now_ns=0, run_id="held")
        names = [f"{plan.sequence}-{number:03d}" for number in range(_ROWS)]
        rows = rows_of(OBSERVATIONS, ({"observation_id": name} for name in names)).drop_columns([COMMIT_SEQUENCE])
        try:
            self.receipt = append(self.lake.log(OBSERVATIONS), plan, self._held(self._session.createDataFrame(rows)))
        except Exception as error:
            self.failure = error

    def _held(self, frame: DataFrame) -> DataFrame:
        place = self._place

        def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            (place / f"task-{os.getpid()}").touch()
            while not (place / "go").exists():
                time.sleep(0.05)
            yield from batches

        return frame.repartition(_TASKS).mapInArrow(wait, frame.schema)


def require_once(lake: Lake, commits: int) -> None:
    log = lake.log(OBSERVATIONS)
    found = log.commits(None)
    assert [each.sequence for each in found] == list(range(commits, 0, -1))
    assert broken_chain(found) == []
    stored = sorted(log.rows(["observation_id"]).column("observation_id").to_pylist())
    assert stored == [f"{sequence}-{number:03d}" for sequence in range(1, commits + 1) for number in range(_ROWS)]


def test_the_collection_of_a_session_leaves_the_threads_that_all_sessions_share(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    """To shut them down there can wait for ever, if the collection interrupts the start of one of them."""
    kept, dropped = (attach(cluster.remote, "tests", lake_uri=f"{tmp_path}/{name}") for name in "ab")
    assert kept.range(1).toArrow().num_rows == dropped.range(1).toArrow().num_rows == 1
    shared = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool
    threads = shared()
    del dropped
    gc.collect()
    assert shared() is threads
    kept.stop()


def test_the_pipeline_runs_on_the_cluster(cluster: SparkCluster, tmp_path: Path) -> None:
    lake = f"{tmp_path}/lake"
    platform = Platform(tmp_path, attach(cluster.remote, "tests", lake_uri=lake), START_NS, remote=cluster.remote)
    data = radar_segment(30)
    platform.zone("radar").seal("a.radar", data, described(data))
    platform.run("observations_to_alerts", only=[RAW_RECORDS.name, OBSERVATIONS.name])
    assert platform.rows(OBSERVATIONS, "observation_id").num_rows == 30


@LONG
def test_screening_and_fusion_have_work_on_both_workers(
    cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the event log; the events are those that were published for these objects."""
    monkeypatch.setattr(executors, "MOST_IN_PROCESS", -1)
    met = published_events()
    objects = sorted({number for pair in met for number in pair})
    screening = ScreeningResource(scope="all", horizon_h=_HORIZON_H, objects_per_task=30, at_once=4)
    session = attach(cluster.remote, "tests", lake_uri=f"{tmp_path}/lake")
    platform = Platform(tmp_path, session, START_NS, screening, remote=cluster.remote)
    catalogue = catalogue_of(objects)
    land(platform.zone("elements"), "catalogue.csv", catalogue)
    platform.run("catalog_to_alerts", only=[ELEMENT_SETS.name, ORBITAL_CATALOG.name])
    screened_by = workers_of(cluster, lambda: platform.run("catalog_to_alerts", only=[CONJUNCTION_CANDIDATES.name]))
    rows = platform.rows(CONJUNCTION_CANDIDATES, "norad_id_1", "norad_id_2", "op").to_pylist()
    assert {row["op"] for row in rows} == {"insert"}
    assert Counter(tuple(sorted((row["norad_id_1"], row["norad_id_2"]))) for row in rows) == Counter(met)
    seen = simulate("nominal", start_time_ns=START_NS, duration_s=70, seed=7, objects=objects, catalogue=catalogue)
    platform.land(segment for segment in seen if segment.feed in ("radar", "isl"))
    platform.at(after(170))
    platform.run("observations_to_alerts", only=[RAW_RECORDS.name, OBSERVATIONS.name])
    fused_by = workers_of(cluster, lambda: platform.run("observations_to_alerts", only=[FUSED_TRACKS.name]))
    assert platform.rows(FUSED_TRACKS, "fit_id").num_rows > 0
    assert len(screened_by) >= 2, screened_by
    assert len(fused_by) >= 2, fused_by


def published_events() -> list[tuple[int, int]]:
    """The pairs of the first published approaches within the horizon."""
    until_ns = START_NS + _HORIZON_H * 3600e9
    with gzip.open(_TRUTH, "rt") as file:
        rows = [row for row in csv.DictReader(file) if parse_iso_ns(row["tca_utc"]) < until_ns]
    return [(int(row["norad_lo"]), int(row["norad_hi"])) for row in rows]


def workers_of(cluster: SparkCluster, run: Callable[[], object]) -> Mapping[str, int]:
    """How many tasks of ``run`` each executor has ended, by the event log, which is written with a delay."""
    before = cluster.tasks_by_executor()
    run()
    found: Counter[str] = Counter()

    def is_spread() -> bool:
        nonlocal found
        found = Counter(cluster.tasks_by_executor())
        found.subtract(before)
        return sum(tasks > 0 for tasks in found.values()) >= 2

    eventually(is_spread, 10.0)
    return +found


@LONG
def test_both_workers_work_and_the_death_of_an_executor_or_a_worker_loses_nothing(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    lake = lake_at(tmp_path / "lake")
    HeldCommit(cluster, lake, tmp_path / "whole").begin().end()
    require_once(lake, 1)
    assert len({name for name, tasks in cluster.tasks_by_executor().items() if tasks and name != "driver"}) >= 2
    held = HeldCommit(cluster, lake, tmp_path / "executor").begin()
    os.kill(cluster.executors("worker-0")[0], signal.SIGKILL)
    assert held.end().receipt is not None, held.failure
    require_once(lake, 2)
    held = HeldCommit(cluster, lake, tmp_path / "worker").begin()
    cluster.kill("worker-1")
    assert held.end().receipt is not None, held.failure
    require_once(lake, 3)
    cluster.start("worker-1")


def test_a_worker_with_another_secret_is_refused(cluster: SparkCluster) -> None:
    cluster.start("worker-stranger", secret="0" * 32)
    assert eventually(lambda: "Failed to connect to master" in cluster.log("worker-stranger"), _WAIT_S)
    assert "Successfully registered" not in cluster.log("worker-stranger")
    assert "Successfully registered" in cluster.log("worker-0")


@LONG
def test_the_death_of_the_master_during_a_commit_loses_nothing(cluster: SparkCluster, tmp_path: Path) -> None:
    """A commit after its restart needs it: it assigns the executor that takes the place of a killed one."""
    lake = lake_at(tmp_path / "lake")
    held = HeldCommit(cluster, lake, tmp_path / "master").begin()
    cluster.kill("master")
    assert held.end().receipt is not None, held.failure
    require_once(lake, 1)
    cluster.start("master")
    os.kill(cluster.executors("worker-0")[0], signal.SIGKILL)
    held = HeldCommit(cluster, lake, tmp_path / "restarted").begin()
    assert held.end().receipt is not None, held.failure
    require_once(lake, 2)


@LONG
def test_the_death_of_the_connect_server_between_data_files_and_log_entry_loses_and_doubles_nothing(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    lake = lake_at(tmp_path / "lake")
    HeldCommit(cluster, lake, tmp_path / "first").begin().end()
    table = Path(lake.log(OBSERVATIONS).uri)
    entry = table / "_delta_log" / f"{lake.log(OBSERVATIONS).version() + 1:020d}.json"
    files = set(table.glob("*.parquet"))

    def are_written() -> bool:
        new = set(table.glob("*.parquet")) - files
        return len(new) == _TASKS and all(path.read_bytes().endswith(_PARQUET_END) for path in new)

    held = HeldCommit(cluster, lake, tmp_path / "struck").begin()
    held.let_go()
    assert frozen_until(cluster.pid("connect"), are_written, _WAIT_S)
    assert not entry.exists()
    cluster.kill("connect")
    cluster.start("connect")
    held.end()
    assert held.receipt is not None or disposition_of(held.failure or Exception()) is Disposition.TRANSIENT
    while lake.head(OBSERVATIONS).sequence < 3:
        HeldCommit(cluster, lake, tmp_path / f"after-{lake.head(OBSERVATIONS).sequence}").begin().end()
    require_once(lake, 3)
