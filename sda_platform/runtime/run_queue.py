"""Dagster's queue of runs, at which the daemon looks twice a second: its own setting knows whole seconds only.

A batch waits there for half the interval on average before its alert is on the way. While no run can be launched, runs
of the platform's pools stay in the queue (`orchestration.launch_breaker`).
"""

from pathlib import Path

from dagster._core.run_coordinator.queued_run_coordinator import QueuedRunCoordinator, RunQueueConfig

from sda_platform.runtime.run_launcher import launch_breaker
from sda_platform.spark.session import POOL_TAG

_NONE_STARTS = {"key": POOL_TAG, "limit": 0}


class PromptRunCoordinator(QueuedRunCoordinator):
    """The queue that the home's ``dagster.yaml`` names."""

    @property
    def dequeue_interval_seconds(self) -> float:  # type: ignore[override]
        """Time between two looks, which the daemon rounds up to half seconds."""
        return 0.5

    def get_run_queue_config(self) -> RunQueueConfig:
        """Return the limits of the queue, which the daemon reads at each look."""
        found: RunQueueConfig = super().get_run_queue_config()  # type: ignore[no-untyped-call,unused-ignore]
        if launch_breaker(Path(self._instance.root_directory)).allows():
            return found
        return found._replace(tag_concurrency_limits=[*found.tag_concurrency_limits, _NONE_STARTS])
