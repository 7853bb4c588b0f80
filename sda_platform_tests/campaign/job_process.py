"""A run of a job in a process of its own, without daemon or queue: a second driver of a platform, or a twin's only one.

SDA_HOME=… SDA_SPARK_REMOTE=… python -m sda_platform_tests.campaign.job_process JOB
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from sda_platform.definitions import defs
from sda_platform.spark.engine import python_path
from sda_platform.spark.session import POOL_TAG

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class RunFailed(RuntimeError):
    """A run of a job failed; the text has the steps' errors."""


def run_job(job: str, home: Path, engine_address: str, settings: Mapping[str, str]) -> None:
    """Run ``job`` of the platform in ``home`` on a running engine. Raises RunFailed."""
    environment = {**os.environ, "PYTHONPATH": python_path(), **settings}
    environment |= {"SDA_HOME": str(home), "SDA_SPARK_REMOTE": engine_address}
    command = [sys.executable, "-m", "sda_platform_tests.campaign.job_process", job]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunFailed(f"{job} in {home}: {done.stderr[-2000:]}")


def main(job: str) -> int:
    """Run the job in the platform that the environment names; the exit code is 1 where a step failed."""
    definition = defs.resolve_job_def(job)
    pool = {POOL_TAG: definition.run_tags[POOL_TAG]}
    with dg.DagsterInstance.ephemeral() as instance:
        result = definition.execute_in_process(instance=instance, raise_on_error=False, tags=pool, run_config=_QUIET)
    failed = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    sys.stderr.write("\n".join(error.to_string() for error in failed if error))
    return 0 if result.success else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
