"""What a run worker does, from the moment that it is forked. Imports nothing itself: the forkserver has."""

from typing import Any

from sda_platform import failpoints


def run_worker(*arguments: Any) -> None:
    """Execute the run that Dagster's server started this process for."""
    failpoints.hit("worker.forked")
    from dagster._grpc.impl import start_run_in_subprocess

    start_run_in_subprocess(*arguments)  # type: ignore[no-untyped-call]
