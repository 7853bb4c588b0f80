"""What the processes do that the worker host forks. Each function is the whole life of one of them.

Dagster is imported when a function is called: the forkserver has imported it by then, the worker host never does.
"""

import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from multiprocessing import parent_process
from typing import Any

from sda_platform import failpoints
from sda_platform.runtime.processes import describe_exit


def run_worker(arguments: str) -> None:
    """Execute a run as ``dagster api execute_run`` does, of which ``arguments`` is the JSON argument."""
    failpoints.hit("worker.forked")
    threading.Thread(target=_end_with_host, name="end with the worker host", daemon=True).start()
    sys.argv = ["dagster", "api", "execute_run", arguments]
    dagster_command()()


def do_nothing() -> None:
    """The work of a worker that only shows that workers can be started."""


def report_end(run_id: str, exit_code: int) -> None:
    """Record the end of a worker that left its run unfinished."""
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return
        if run.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run)
        else:
            instance.report_run_failed(run, f"The run's worker ended unexpectedly ({describe_exit(exit_code)}).")


def prepare_instance() -> None:
    """Set up the pools, and end the runs of an earlier worker host: see `run_launcher`."""
    import dagster as dg

    from sda_platform.runtime.run_launcher import end_abandoned_runs, reserve_pools

    with dg.DagsterInstance.get() as instance:
        reserve_pools(instance)
        end_abandoned_runs(instance)


@cache
def dagster_command() -> Callable[[], Any]:
    """Return the function behind the console script ``dagster`` of this environment."""
    (script,) = entry_points(group="console_scripts", name="dagster")
    command: Callable[[], Any] = script.load()
    return command


def _end_with_host() -> None:
    host = parent_process()
    if host is not None:
        host.join()
        os._exit(1)
