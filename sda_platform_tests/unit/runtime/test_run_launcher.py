"""The run launcher and its socket, without a worker host or with a small one; `test_run_workers` has a real one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher import LaunchRunContext, WorkerStatus
from dagster._core.test_utils import create_run_for_test
from dagster._daemon import sensor

from sda_platform import failpoints
from sda_platform.runtime import guardian, run_launcher, worker_socket
from sda_platform.runtime.run_launcher import LAUNCHER_TAG, ForkingRunLauncher, end_abandoned_runs, reserve_pools
from sda_platform.runtime.run_worker import dagster_command
from sda_platform.runtime.worker_socket import NoWorkerHost, WorkerHostError, WorkerHostSilent
from sda_platform.spark.pools import WARM_POOLS
from sda_platform_tests.support.armed.sitecustomize import arm_daemon

OURS = {LAUNCHER_TAG: "worker host"}


@dg.job
def labour() -> None:
    """A job without work."""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    launcher = {"module": "sda_platform.runtime.run_launcher", "class": "ForkingRunLauncher"}
    pools = {"pools": {"granularity": "run", "default_limit": 1}}
    overrides = {"run_launcher": launcher, "concurrency": pools}
    with dg.instance_for_test(overrides=overrides, temp_dir=str(tmp_path)) as found:
        yield found


@contextmanager
def answering(home: Path, answer: dict[str, Any] | None) -> Iterator[list[dict[str, Any]]]:
    """A host that gives this answer to each request, or none; what it was asked."""
    asked: list[dict[str, Any]] = []
    done = threading.Event()
    listener = worker_socket.listen(home)

    def serve() -> None:
        while not done.is_set():
            with listener.accept() as connection:
                if done.is_set():
                    return
                asked.append(worker_socket.receive(connection))
                if answer is None:
                    done.wait()
                else:
                    worker_socket.send(connection, answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield asked
    finally:
        done.set()
        with pytest.raises((NoWorkerHost, WorkerHostSilent)):
            worker_socket.ask(home, {}, 0.2)
        thread.join()
        listener.close()


def test_dagster_makes_the_launcher_from_its_configuration(instance: dg.DagsterInstance) -> None:
    assert isinstance(instance.run_launcher, ForkingRunLauncher)
    assert instance.run_launcher.supports_check_run_worker_health


def test_a_request_is_answered_refused_or_not_answered_in_time(tmp_path: Path) -> None:
    with pytest.raises(NoWorkerHost, match=str(tmp_path)):
        worker_socket.ask(tmp_path, {"what": "ping"})
    with answering(tmp_path, {"value": [1, "two"]}) as asked:
        assert worker_socket.ask(tmp_path, {"what": "ping"}) == [1, "two"]
        assert asked == [{"what": "ping"}]
    with answering(tmp_path, {"error": "unknown"}), pytest.raises(WorkerHostError, match="unknown"):
        worker_socket.ask(tmp_path, {"what": "?"})
    with answering(tmp_path, None), pytest.raises(WorkerHostSilent):
        worker_socket.ask(tmp_path, {"what": "ping"}, 0.1)


def test_only_the_user_may_ask(tmp_path: Path) -> None:
    with worker_socket.listen(tmp_path):
        assert (tmp_path / worker_socket.SOCKET).stat().st_mode & 0o777 == 0o600


def test_a_socket_below_a_long_path_is_reached_from_nearby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ("d" * 120)
    home.mkdir()
    monkeypatch.chdir(home)
    with answering(home, {"value": True}):
        assert worker_socket.ask(home, {"what": "ping"}) is True


@pytest.mark.parametrize(
    ("answer", "status"),
    [({"value": True}, WorkerStatus.RUNNING), ({"value": False}, WorkerStatus.NOT_FOUND)],
)
def test_a_run_is_at_work_while_its_worker_lives_r12(
    instance: dg.DagsterInstance, answer: dict[str, Any], status: WorkerStatus
) -> None:
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
    with answering(Path(instance.root_directory), answer) as asked:
        assert instance.run_launcher.check_run_worker_health(run).status is status
    assert asked == [{"what": "is_alive", "run_id": run.run_id}]


def test_a_run_is_not_at_work_where_no_host_holds_workers_r12(instance: dg.DagsterInstance) -> None:
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
    assert instance.run_launcher.check_run_worker_health(run).status is WorkerStatus.NOT_FOUND


def test_a_new_host_ends_the_runs_of_an_earlier_one_and_leaves_the_others_r12(instance: dg.DagsterInstance) -> None:
    gone, unborn = (
        create_run_for_test(instance, status=status, tags=OURS)
        for status in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING)
    )
    create_run_for_test(instance, status=dg.DagsterRunStatus.NOT_STARTED)
    create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)  # another launcher's
    assert set(end_abandoned_runs(instance)) == {gone.run_id, unborn.run_id}
    ended = [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))]
    assert set(ended) == {gone.run_id, unborn.run_id}


def test_a_run_that_waits_for_a_host_is_not_one_that_a_new_host_ends_r12(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(guardian.MARK, "supervised, so no host is started here")
    monkeypatch.setattr(run_launcher, "_HOST_WITHIN_S", -1.0)
    origin = dg.reconstructable(labour).get_python_origin()
    run = create_run_for_test(instance, job_code_origin=origin, status=dg.DagsterRunStatus.STARTING)
    with pytest.raises(NoWorkerHost):
        instance.run_launcher.launch_run(LaunchRunContext(run, None))
    assert end_abandoned_runs(instance) == []
    with answering(Path(instance.root_directory), {"value": True}) as asked:
        instance.run_launcher.launch_run(LaunchRunContext(run, None))
    assert [request["what"] for request in asked] == ["ping", "start"]
    assert end_abandoned_runs(instance) == [run.run_id]


def test_the_pools_exist_before_the_first_run(instance: dg.DagsterInstance) -> None:
    reserve_pools(instance)
    assert set(WARM_POOLS) <= instance.event_log_storage.get_concurrency_keys()


def test_dagsters_command_is_the_console_script() -> None:
    assert dagster_command().__module__.startswith("dagster.")


def test_the_campaign_makes_dagsters_crash_points_failpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon: Any = sensor
    monkeypatch.setattr(daemon, "check_for_debug_crash", daemon.check_for_debug_crash)
    arm_daemon()
    points: list[str] = []
    failpoints.watch(points.append)
    try:
        daemon.check_for_debug_crash(None, "RUN_CREATED")
    finally:
        failpoints.watch(None)
    assert points == ["daemon.run_created"]
