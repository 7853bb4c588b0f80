"""The queue of runs that `dagster.yaml` names."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.launcher import LaunchRunContext
from dagster._core.test_utils import create_run_for_test
from dagster._daemon.controller import create_daemon_of_type
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.runtime import run_launcher, run_queue, worker_socket
from sda_platform_tests.support.run_records import recorded_run

ROOT = Path(__file__).parents[3]


def test_the_daemon_looks_at_the_queue_twice_a_second(tmp_path: Path) -> None:
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        daemon = create_daemon_of_type(QueuedRunCoordinatorDaemon.daemon_type(), instance)
    assert isinstance(daemon, QueuedRunCoordinatorDaemon)
    assert daemon.interval_seconds == 0.5


@dg.job
def labour() -> None:
    """A job without work."""


def test_while_no_worker_starts_runs_stay_in_the_queue_and_then_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's own look at the queue, with a worker host that cannot start a process."""
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    breaker = run_launcher.launch_breaker(tmp_path)
    monkeypatch.setattr(run_queue, "launch_breaker", lambda home: breaker)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        daemon = create_daemon_of_type(QueuedRunCoordinatorDaemon.daemon_type(), instance)
        assert isinstance(daemon, QueuedRunCoordinatorDaemon)
        waiting = {recorded_run(instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.QUEUED) for _ in range(2)}

        def chosen() -> set[str]:
            config = instance.get_concurrency_config()
            return {run.run_id for run in daemon._get_runs_to_dequeue(instance, config, None)}

        assert chosen() == waiting
        for _ in range(3):
            breaker.failed("OSError: Too many open files")
        assert chosen() == set()
        breaker.succeeded()
        assert chosen() == waiting


def test_a_launch_that_fails_counts_and_one_that_succeeds_ends_the_count(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(instance.root_directory)
    origin = dg.reconstructable(labour).get_python_origin()
    monkeypatch.setattr(worker_socket, "ask", lambda home, request, within_s=0.0: answers[request["what"]]())

    def refuse() -> None:
        raise worker_socket.WorkerHostError("OSError: Too many open files")

    answers: dict[str, Callable[[], object]] = {"ping": lambda: True, "start": refuse}
    monkeypatch.setattr(worker_socket, "ask", lambda home, request: answers[request["what"]]())
    for number in (1, 2, 3):
        run = create_run_for_test(instance, job_code_origin=origin, status=dg.DagsterRunStatus.STARTING)
        with pytest.raises(worker_socket.WorkerHostError):
            instance.run_launcher.launch_run(LaunchRunContext(run, None))
        assert run_launcher.launch_breaker(home).record().failures == number
    answers["start"] = lambda: 1
    run = create_run_for_test(instance, job_code_origin=origin, status=dg.DagsterRunStatus.STARTING)
    instance.run_launcher.launch_run(LaunchRunContext(run, None))
    assert run_launcher.launch_breaker(home).record().failures == 0


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    launcher = {"module": "sda_platform.runtime.run_launcher", "class": "ForkingRunLauncher"}
    with dg.instance_for_test(overrides={"run_launcher": launcher}, temp_dir=str(tmp_path)) as found:
        yield found
