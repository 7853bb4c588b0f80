"""The worker host with real workers: runs start, are interrupted and killed, and end with their host."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.launcher import LaunchRunContext, WorkerStatus

from sda_platform.runtime import worker_socket
from sda_platform.runtime.run_launcher import ForkingRunLauncher
from sda_platform.runtime.worker_socket import NoWorkerHost
from sda_platform.spark.engine import python_path
from sda_platform_tests.support.running_platform import eventually

pytestmark = pytest.mark.timeout(600)

CODE = """
import time
import dagster as dg

@dg.op
def work(context: dg.OpExecutionContext) -> None:
    while "endless" in context.run.tags:
        time.sleep(0.05)

@dg.job(executor_def=dg.in_process_executor)
def labour() -> None:
    work()
"""
CONFIGURATION = """
telemetry: {enabled: false}
run_launcher: {module: sda_platform.runtime.run_launcher, class: ForkingRunLauncher}
compute_logs: {module: sda_platform.runtime.run_logs, class: RunLogs, config: {base_dir: OUTPUTS}}
"""


class Host:
    """A worker host in a process of its own, and the instance that it serves."""

    def __init__(self, home: Path, code: Path) -> None:
        self.home, self._code = home, code
        self.start()

    def start(self) -> None:
        path = os.pathsep.join([str(self._code), python_path()])
        environment = {**os.environ, "DAGSTER_HOME": str(self.home), "PYTHONPATH": path, "SDA_HOME": str(self.home)}
        command = [sys.executable, "-m", "sda_platform.runtime.run_workers"]
        with (self.home / "host.log").open("a") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, process_group=0)
        eventually(lambda: self.answers() or self.process.poll() is not None, 240)
        assert self.answers(), (self.home / "host.log").read_text()

    def answers(self) -> bool:
        try:
            return bool(worker_socket.ask(self.home, {"what": "ping"}))
        except NoWorkerHost:
            return False

    def launch(self, instance: dg.DagsterInstance, **tags: str) -> dg.DagsterRun:
        import labour_code

        job = dg.reconstructable(labour_code.labour)
        run = instance.create_run_for_job(job.get_definition(), job_code_origin=job.get_python_origin(), tags=tags)
        instance.run_launcher.launch_run(LaunchRunContext(run, None))
        return run

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    directory = tmp_path_factory.mktemp("workers")
    (directory / "labour_code.py").write_text(CODE)
    home = directory / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text(CONFIGURATION.replace("OUTPUTS", str(directory / "outputs")))
    sys.path.insert(0, str(directory))
    found = Host(home, directory)
    yield found
    found.end()
    sys.path.remove(str(directory))


@pytest.fixture
def instance(host: Host) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(host.home)) as found:
        yield found


def status(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def becomes(instance: dg.DagsterInstance, run: dg.DagsterRun, wanted: dg.DagsterRunStatus) -> bool:
    return eventually(lambda: status(instance, run) is wanted, 120, pause_s=0.1)


def worker_of(host: Host, run: dg.DagsterRun) -> int:
    """Process id of the worker: to start a run that has one returns it."""
    return int(worker_socket.ask(host.home, {"what": "start", "run_id": run.run_id, "arguments": ""}))


def test_a_run_is_executed_by_a_worker_and_succeeds(host: Host, instance: dg.DagsterInstance) -> None:
    run = host.launch(instance)
    assert becomes(instance, run, dg.DagsterRunStatus.SUCCESS)
    is_alive = {"what": "is_alive", "run_id": run.run_id}
    assert eventually(lambda: worker_socket.ask(host.home, is_alive) is False, 60)
    assert not instance.run_launcher.terminate(run.run_id)


def test_a_terminated_run_is_cancelled(host: Host, instance: dg.DagsterInstance) -> None:
    run = host.launch(instance, endless="yes")
    assert becomes(instance, run, dg.DagsterRunStatus.STARTED)
    assert instance.run_launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING
    assert instance.run_launcher.terminate(run.run_id)
    assert becomes(instance, run, dg.DagsterRunStatus.CANCELED)


def test_a_run_whose_worker_is_killed_fails_without_a_monitor_r12(host: Host, instance: dg.DagsterInstance) -> None:
    run = host.launch(instance, endless="yes")
    assert becomes(instance, run, dg.DagsterRunStatus.STARTED)
    worker = worker_of(host, run)
    os.kill(worker, signal.SIGKILL)
    assert becomes(instance, run, dg.DagsterRunStatus.FAILURE)
    messages = [entry.message for entry in instance.all_logs(run.run_id)]
    assert [text for text in messages if "ended unexpectedly (by SIGKILL)" in text], messages


def test_an_unknown_request_is_refused_and_a_second_host_too(host: Host) -> None:
    with pytest.raises(worker_socket.WorkerHostError, match="unknown request"):
        worker_socket.ask(host.home, {"what": "dance"})
    second = subprocess.run(
        [sys.executable, "-m", "sda_platform.runtime.run_workers"],
        env={**os.environ, "DAGSTER_HOME": str(host.home), "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (second.returncode, second.stderr) == (1, f"another process holds the run workers of {host.home}\n")


def test_workers_end_with_their_host_and_the_next_host_ends_their_runs_r12(
    host: Host, instance: dg.DagsterInstance
) -> None:
    run = host.launch(instance, endless="yes")
    assert becomes(instance, run, dg.DagsterRunStatus.STARTED)
    worker = worker_of(host, run)
    host.process.kill()
    host.process.wait()
    assert isinstance(instance.run_launcher, ForkingRunLauncher)
    assert instance.run_launcher.check_run_worker_health(run).status is WorkerStatus.NOT_FOUND
    assert eventually(lambda: not Path(f"/proc/{worker}/environ").exists(), 30)
    host.start()
    assert status(instance, run) is dg.DagsterRunStatus.FAILURE
