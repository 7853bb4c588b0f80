"""Dagster's run launcher of the platform: a run is executed by a forked worker, which the worker host holds.

`dagster.yaml` names it. It sends requests to the worker host of its Dagster home (`run_workers`), which starts, checks
and interrupts workers. So any process of the instance can do so: the daemon launches, the webserver terminates.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClass, ConfigurableClassData, serialize_value

from sda_platform.orchestration.launch_breaker import LaunchBreaker
from sda_platform.runtime import guardian, worker_socket
from sda_platform.runtime.worker_socket import NoWorkerHost, WorkerHostError, WorkerHostSilent
from sda_platform.spark.pools import WARM_POOLS

LAUNCHER_TAG = "sda/launched_by"
_LAUNCHER = "worker host"
_HOST_WITHIN_S = 60.0
_LOOK_S = 0.1
_PROBE_WITHIN_S = 15.0


class ForkingRunLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """Launches runs in workers that are forked from a process which has imported the platform."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()  # type: ignore[no-untyped-call]  # Dagster's own is not typed

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """The configuration from which Dagster made this launcher."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """No options."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "ForkingRunLauncher":
        """Make the launcher from Dagster's configuration."""
        return cls(inst_data=inst_data, **config_value)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Start a worker for the run. Raises NoWorkerHost where no worker host answers within a minute."""
        run = context.dagster_run
        if context.job_code_origin is None:
            raise dg.DagsterInvariantViolationError(f"run {run.run_id} has no code location for its job")
        arguments = ExecuteRunArgs(context.job_code_origin, run.run_id, self._instance.get_ref())
        breaker = launch_breaker(self._home)
        try:
            self._await_host()
            # Not before: a host that starts ends the runs with this tag.
            self._instance.add_run_tags(run.run_id, {LAUNCHER_TAG: _LAUNCHER})
            self._ask("start", run.run_id, arguments=serialize_value(arguments))
        except WorkerHostError as error:
            breaker.failed(str(error))
            raise
        breaker.succeeded()

    def terminate(self, run_id: str) -> bool:
        """Interrupt the run's worker, which then ends the run as cancelled. Returns False where there is none."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return bool(self._ask("interrupt", run_id))

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Lets run monitoring call `check_run_worker_health`."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """RUNNING while a worker executes the run, NOT_FOUND when none does.

        A worker host that is slow to answer counts as at work: ending a live run is worse than waiting.
        """
        try:
            is_alive = self._ask("is_alive", run.run_id)
        except NoWorkerHost:
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the process that holds the run workers is gone")
        except WorkerHostSilent:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "the process that holds the run workers is slow")
        if is_alive:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "no worker executes it")

    def _ask(self, what: str, run_id: str, **details: str) -> Any:
        return worker_socket.ask(self._home, {"what": what, "run_id": run_id, **details})

    @property
    def _home(self) -> Path:
        return Path(self._instance.root_directory)

    def _await_host(self) -> None:
        """Wait for the worker host. Outside of a supervised platform, start one where there is none."""
        started = guardian.MARK in os.environ
        deadline = time.monotonic() + _HOST_WITHIN_S
        while True:
            try:
                worker_socket.ask(self._home, {"what": "ping"})
                return
            except NoWorkerHost:
                if time.monotonic() > deadline:
                    raise
            if not started:
                started = bool(_start_host(self._home))
            time.sleep(_LOOK_S)


def launch_breaker(home: Path) -> LaunchBreaker:
    """Return the breaker before the launches of the Dagster home ``home``."""
    return LaunchBreaker(home, lambda: bool(worker_socket.ask(home, {"what": "probe"}, _PROBE_WITHIN_S)))


def reserve_pools(instance: dg.DagsterInstance) -> None:
    """Set up the pools before the first run names one.

    Dagster sets up a pool when a queued run first names it, but counts it only at the next look at the queue. Two runs
    that are queued together at the very start would both be let in. Pools that exist are left out, because on Postgres
    Dagster fails to set up a pool twice.
    """
    storage = instance.event_log_storage
    for pool in set(WARM_POOLS) - set(storage.get_concurrency_keys()):
        storage.initialize_concurrency_limit_to_default(pool)


def end_abandoned_runs(instance: dg.DagsterInstance) -> list[str]:
    """End the runs whose workers ended with an earlier worker host, so that their pools are free; returns their ids.

    Run monitoring would find them too: after its first interval, and those that had not quite begun after a minute.
    """
    begun = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
    runs = instance.get_runs(dg.RunsFilter(statuses=begun, tags={LAUNCHER_TAG: _LAUNCHER}))
    for run in runs:
        instance.report_run_failed(run, "Its worker ended with the worker host that had started it.")
    return [run.run_id for run in runs]


def _start_host(home: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "sda_platform.runtime.run_workers"]
    return subprocess.Popen(command, env={**os.environ, "DAGSTER_HOME": str(home)}, stdin=subprocess.DEVNULL)
