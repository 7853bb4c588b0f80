"""A run in a process of its own: it plans one commit, writes rows through a Spark Connect server, and reports.

It plans again after a conflict, as the next run would. A test may hold its statement in the engine (`hold`), stop it
at a failpoint, or kill it while the engine executes.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect.client.retries import DefaultPolicy

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import commit
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.errors import CommitConflict
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import CommitManifest, SegmentRef
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import Table
from sda_platform.orchestration.dispositions import disposition_of
from sda_platform.spark.engine import python_path
from sda_platform.spark.session import attach
from sda_platform_tests.support import injections
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.injections import Injection, armed
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.segments import START_NS

Write = Literal["append", "overwrite"]
TABLES: dict[str, Table] = {"append": OBSERVATIONS, "overwrite": ORBITAL_CATALOG}
_SESSION = "catalog"
_TIMEOUT_S = 180.0
# As `spark.session.RECONNECTING`, in seconds instead of minutes: each call of a run tries so often.
_RECONNECTING = DefaultPolicy(max_retries=6, max_backoff=1_000)


class Client:
    """One such process: run ``run_id`` of the platform whose lake is ``lake``, which writes rows with these ids."""

    def __init__(
        self, address: str, lake: Path, run_id: str, write: Write, ids: Sequence[int], *, stop_at: str = ""
    ) -> None:
        self._place = lake.parent / f"{lake.name}-{run_id}"
        self._place.mkdir()
        os.mkfifo(self._place / "gate")
        if stop_at:
            Injection(stop_at, "stop").arm(self._orders)
        command = [sys.executable, "-m", __name__, address, str(lake), run_id, write, str(self._place), *map(str, ids)]
        environment = {**os.environ, "PYTHONPATH": python_path(), **armed(self._orders)}
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def hold(self) -> "Client":
        """Return once the engine executes its statement, which then waits for `release`."""
        self._await((self._place / "begun").exists)
        return self

    def release(self) -> None:
        """Let its statement continue."""
        (self._place / "gate").write_text("")

    def kill(self) -> None:
        """SIGKILL; the engine is not told."""
        self._process.kill()
        self._process.wait()

    def await_stop(self) -> None:
        """Return once the process has stopped at its failpoint."""
        self._await(lambda: bool(injections.hits(self._orders)) and _state(self._process.pid) == "T")

    def go_on(self) -> None:
        """SIGCONT."""
        os.kill(self._process.pid, signal.SIGCONT)

    def report(self) -> list[str]:
        """What it reports, by lines: ``conflict``, ``receipt`` and its sequence, or an error's disposition and name."""
        told, _ = self._process.communicate(timeout=_TIMEOUT_S)
        return told.splitlines()

    def end(self) -> None:
        """Kill it if it is still there, and free a statement of it that is held."""
        if self._process.poll() is None:
            self.kill()
        try:
            os.close(os.open(self._place / "gate", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # no statement reads from the gate
            return

    @property
    def _orders(self) -> Path:
        return self._place / "orders"

    def _await(self, condition: Callable[[], bool]) -> None:
        if not eventually(lambda: condition() or self._process.poll() is not None, _TIMEOUT_S, pause_s=0.02):
            raise TimeoutError(f"{self._place.name}: its statement was never seen")
        if self._process.poll() is not None:
            raise RuntimeError(f"{self._place.name} ended early: {self.report()}")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def held_by(place: Path) -> commit.CommitEngine:
    """Spark, whose statement reports that it has begun and then waits at the gate in ``place``."""

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            (place / "begun").touch()
            (place / "gate").read_text()  # a named pipe: this returns when it was written to
            yield batch

    def engine(
        log: TableLog, plan: Plan, rows: DataFrame, mode: commit.Mode, where: str | None = None, /
    ) -> Callable[[CommitManifest], None]:
        return commit.with_spark(log, plan, rows.coalesce(1).mapInArrow(wait, rows.schema), mode, where)

    return engine


def write_rows(lake: Lake, table: Table, ids: Iterable[int]) -> CommitReceipt:
    """Plan, and write one row for each id: an append, or an overwrite that adds to what the plan found."""
    segment = SegmentRef("radar", f"{lake.run_id}.seg", "0" * 64, 1, 1)
    plan = lake.plan_landing(table, lake.head(table), [segment])
    rows = rows_of(table, [row_of(table, number) for number in ids])
    return lake.replace(plan, rows) if table.replaces_rows else lake.append(plan, rows)


def row_of(table: Table, number: int) -> dict[str, Any]:
    """A row that has this id."""
    return {table.key[0]: number if table.replaces_rows else str(number)}


def main(arguments: Sequence[str]) -> int:
    """Write, once more after a conflict, and say what came of it."""
    address, uri, run_id, write, place, *ids = arguments
    session = attach(address, _SESSION, lake_uri=uri)
    cast("Any", session).client.set_retry_policies([_RECONNECTING])
    lake = Lake(uri, MissionClock(START_NS, 0, 0.0), lambda: session, run_id)
    lake.requires_lineage = False
    lake.engine = held_by(Path(place))
    numbers = [int(number) for number in ids]
    try:
        sequence = write_rows(lake, TABLES[write], numbers).plan.sequence
    except CommitConflict:
        sys.stdout.write("conflict\n")
        lake.engine = commit.with_spark
        sequence = write_rows(lake, TABLES[write], numbers).plan.sequence
    except PySparkException as error:
        sys.stdout.write(f"{disposition_of(error)} {error.getCondition()}\n")
        return 0
    sys.stdout.write(f"receipt {sequence}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
