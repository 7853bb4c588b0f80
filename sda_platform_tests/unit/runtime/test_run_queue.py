"""The queue of runs that `dagster.yaml` names."""

import shutil
from pathlib import Path

import dagster as dg
from dagster._daemon.controller import create_daemon_of_type
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

ROOT = Path(__file__).parents[3]


def test_the_daemon_looks_at_the_queue_twice_a_second(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        daemon = create_daemon_of_type(QueuedRunCoordinatorDaemon.daemon_type(), instance)
    assert isinstance(daemon, QueuedRunCoordinatorDaemon)
    assert daemon.interval_seconds == 0.5
