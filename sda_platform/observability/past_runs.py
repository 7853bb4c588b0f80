"""The newest runs of the platform, as Dagster records them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import dagster as dg

from sda_platform.orchestration.attempts import outcome_of
from sda_platform.units import SECOND_NS

_STATES: Final = {
    dg.DagsterRunStatus.NOT_STARTED: "queued",
    dg.DagsterRunStatus.QUEUED: "queued",
    dg.DagsterRunStatus.SUCCESS: "success",
    dg.DagsterRunStatus.FAILURE: "failure",
    dg.DagsterRunStatus.CANCELED: "canceled",
}
"""By Dagster's; all others are of a run that is under way."""


@dataclass(frozen=True)
class PastRun:
    """A run: its state; when it began (wall) and how long it took; of a failed one, class and reason."""

    run_id: str
    job: str
    state: str
    begun_time_ns: int
    lasted_s: float | None
    failure: str
    reason: str
    url: str


def past_runs(
    instance: dg.DagsterInstance, ui_url: str, state: str | None = None, most: int | None = None
) -> Iterator[PastRun]:
    """Yield the runs, the newest first, at most ``most``; only those in ``state``, where one is given."""
    statuses = [each for each in dg.DagsterRunStatus if state in (None, _STATES.get(each, "started"))]
    for record in instance.get_run_records(dg.RunsFilter(statuses=statuses), limit=most):
        run, begun_s = record.dagster_run, record.start_time or record.create_timestamp.timestamp()
        has_failed = run.status is dg.DagsterRunStatus.FAILURE
        failure, reason = map(str, outcome_of(run)) if has_failed else ("", "")
        yield PastRun(
            run.run_id,
            run.job_name,
            _STATES.get(run.status, "started"),
            round(begun_s * SECOND_NS),
            record.end_time - begun_s if record.end_time else None,
            failure,
            reason,
            f"{ui_url}/runs/{run.run_id}",
        )
