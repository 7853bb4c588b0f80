"""Dagster's queue of runs, at which the daemon looks twice a second: its own setting knows whole seconds only.

A batch waits there for half the interval on average before its alert is on the way.
"""

from dagster._core.run_coordinator.queued_run_coordinator import QueuedRunCoordinator


class PromptRunCoordinator(QueuedRunCoordinator):
    """The queue that the home's ``dagster.yaml`` names."""

    @property
    def dequeue_interval_seconds(self) -> float:  # type: ignore[override]
        """Time between two looks, which the daemon rounds up to half seconds."""
        return 0.5
