"""Dagster's run launcher, able to tell that a run's worker is gone.

The code server notices a worker that dies under it, within a second. This launcher covers the case that the
code server died too, with the whole platform for instance: run monitoring asks it, hears that nobody executes
the run, and ends the run, which frees its pool.
"""

import dagster as dg
import grpc
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster._serdes import deserialize_value

_ANSWER_TIMEOUT_S = 10


class WatchedRunLauncher(DefaultRunLauncher):
    """DefaultRunLauncher with a health check of the run worker."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Tells run monitoring to ask."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """RUNNING while the code server that launched the run executes it, else NOT_FOUND.

        A code server that is merely slow to answer is taken to be at work: ending a live run is worse than
        waiting.
        """
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        if client is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        request = CanCancelExecutionRequest(run_id=run.run_id)
        try:
            answer = client.can_cancel_execution(request, timeout=_ANSWER_TIMEOUT_S)
        except DagsterUserCodeUnreachableError as error:
            cause = error.__cause__
            if isinstance(cause, grpc.RpcError) and cause.code() == grpc.StatusCode.UNAVAILABLE:
                return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "its code server is gone")
            return CheckRunHealthResult(WorkerStatus.RUNNING, "its code server is slow to answer")
        if deserialize_value(answer, CanCancelExecutionResult).can_cancel:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "its code server does not execute it")
