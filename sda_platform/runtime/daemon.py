"""Dagster's daemon, looking for due sensors every second instead of every five, with the pools free and set up.

    python -m sda_platform.runtime.daemon -w WORKSPACE

A landing sensor may tick every two seconds, but Dagster's sensor loop wakes only every five, and half of that would be
the largest idle part of an alert's 30 seconds. Dagster has no setting for it; a tick of ours costs milliseconds.
"""

import os
import sys

import dagster as dg
from dagster._core.launcher import WorkerStatus

from sda_platform import failpoints
from sda_platform.settings import require_known_variables
from sda_platform.spark.pools import WARM_POOLS

SENSOR_LOOP_S = 1


def quicken_sensors() -> None:
    """Let the sensor loop of this process wake every `SENSOR_LOOP_S`."""
    from dagster._daemon import sensor

    if not hasattr(sensor, "MIN_INTERVAL_LOOP_TIME"):
        raise RuntimeError("this Dagster paces its sensor loop by another name than MIN_INTERVAL_LOOP_TIME")
    sensor.MIN_INTERVAL_LOOP_TIME = SENSOR_LOOP_S


def mark_crash_points() -> None:
    """Let Dagster's own crash points of a sensor's tick be ours: ``daemon.run_created``, ``daemon.run_launched``, …"""
    from dagster._daemon import sensor

    if not hasattr(sensor, "check_for_debug_crash"):
        raise RuntimeError("this Dagster marks its sensor loop's crash points by another name")
    sensor.check_for_debug_crash = lambda _flags, key: failpoints.hit(f"daemon.{key.lower()}")


def reserve_pools(instance: dg.DagsterInstance) -> None:
    """Make the pools' pools known before the first run asks for one.

    Dagster sets up a pool when a queued run first names it, but counts it only from the next look at the queue on:
    two runs that are queued together at the very start would both be let in.
    """
    for pool in WARM_POOLS:
        instance.event_log_storage.initialize_concurrency_limit_to_default(pool)


def end_abandoned_runs(instance: dg.DagsterInstance) -> list[str]:
    """End the runs whose workers died with an earlier platform, so that their pools are free; returns their ids.

    Run monitoring would find them, too: after its first pause, and those that had not quite begun after a minute.
    """
    begun = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
    abandoned = []
    for run in instance.get_runs(dg.RunsFilter(statuses=begun)):
        health = instance.run_launcher.check_run_worker_health(run)
        if health.status is WorkerStatus.NOT_FOUND:
            instance.report_run_failed(run, f"Its worker ended with the platform that ran it: {health.msg}.")
            abandoned.append(run.run_id)
    return abandoned


def main(arguments: list[str]) -> None:
    """Run the daemon; the arguments are those of `dagster-daemon run`."""
    require_known_variables(os.environ)
    from dagster._daemon.cli import main as daemon_command

    quicken_sensors()
    mark_crash_points()
    with dg.DagsterInstance.get() as instance:
        reserve_pools(instance)
        end_abandoned_runs(instance)
    sys.argv = ["dagster-daemon", "run", *arguments]
    daemon_command()


if __name__ == "__main__":
    main(sys.argv[1:])
