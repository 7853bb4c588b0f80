"""Attempts at a batch, counted from Dagster's records of runs: how many there were, and whether another may follow.

A run that was killed or failed for a transient reason is followed by another under a new key, without limit but with
growing pauses: a backlog drains by itself when its cause is gone. A permanent failure is not repeated, because a repeat
would hide it. The zone's next segment, which makes another batch, or a person starts the pool again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import dagster as dg

from sda_platform.lake.errors import TableIsRed
from sda_platform.orchestration.dispositions import Disposition
from sda_platform.orchestration.jobs import Job
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG
from sda_platform.resilience import pause_s
from sda_platform.spark.session import POOL_TAG

ZONE_TAG = "sda/zone"
BATCH_TAG = "sda/batch"
ATTEMPT_TAG = "sda/attempt"

_WAITING = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING)
_UNFINISHED = (*_WAITING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
# Dagster's own tag (dagster._core.storage.tags.RUN_FAILURE_REASON_TAG) on a run of which a step failed.
_STEP_FAILED = ("dagster/failure_reason", "STEP_FAILURE")
_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True)
class Attempts:
    """The runs that were started for a batch. ``ended_s``: wall time at which the last of them ended."""

    batch: str
    made: int = 0
    last_run: str = ""
    ended_s: float = 0.0
    disposition: Disposition = Disposition.TRANSIENT
    reason: str = ""

    @classmethod
    def of(cls, instance: dg.DagsterInstance, batch: str) -> "Attempts":
        """The attempts at ``batch``; a run that Dagster repeated by itself counts with the attempt it repeats."""
        records = instance.get_run_records(dg.RunsFilter(tags={BATCH_TAG: batch}))
        if not records:
            return cls(batch)
        last = records[0]
        disposition, reason = outcome_of(last.dagster_run)
        return cls(
            batch,
            max(int(record.dagster_run.tags.get(ATTEMPT_TAG, "1")) for record in records),
            last.dagster_run.run_id,
            last.end_time or last.update_timestamp.timestamp(),
            disposition,
            reason,
        )

    def refusal(self, wall_s: float) -> str | None:
        """Why there is no further attempt now; None: there may be one."""
        if self.made == 0:
            return None
        report = f"run {self.last_run[:8]}: {self.reason}"
        if self.disposition is not Disposition.TRANSIENT:
            return f"{report}; {self.disposition}, so not repeated: fix the cause, then start the job by hand"
        pause = pause_s(self.made, base_s=_PAUSE_S, cap_s=_LONGEST_PAUSE_S, seed=self.batch)
        wait_s = self.ended_s + pause - wall_s
        return f"{report}; attempt {self.made + 1} in {wait_s:.0f} s" if wait_s > 0 else None

    def next_run(self, job: Job, **tags: str) -> dg.RunRequest:
        """The request for one more attempt, in the pool of ``job``."""
        attempt = str(self.made + 1)
        tags = {POOL_TAG: job.pool, BATCH_TAG: self.batch, ATTEMPT_TAG: attempt, **tags}
        return dg.RunRequest(run_key=f"{self.batch}:{attempt}", tags=tags)


def outcome_of(run: dg.DagsterRun) -> tuple[Disposition, str]:
    """The facts of a run that left work behind, from its tags."""
    if FAILURE_TAG in run.tags:
        return Disposition(run.tags[FAILURE_TAG]), run.tags.get(REASON_TAG, "failed")
    name, value = _STEP_FAILED
    if run.tags.get(name) == value:
        return Disposition.INVARIANT, "a check that blocks is red"
    killed = run.status is dg.DagsterRunStatus.FAILURE
    return Disposition.TRANSIENT, "its worker was killed" if killed else "left them there"


def is_stopped_by_red(run: dg.DagsterRun) -> bool:
    """Whether a failed run ended at a red table: its own check blocked it, or a plan refused to read on."""
    if FAILURE_TAG in run.tags:
        return run.tags.get(REASON_TAG, "").startswith(TableIsRed.__name__)
    name, value = _STEP_FAILED
    return run.tags.get(name) == value


def coming_run(instance: dg.DagsterInstance, job: Job, batch: str) -> str | None:
    """The run that will process the backlog: one of the job that has not begun, or one requested for this batch."""
    waiting = dg.RunsFilter(job_name=job.name, statuses=list(_WAITING))
    working = dg.RunsFilter(tags={BATCH_TAG: batch}, statuses=list(_UNFINISHED))
    records = instance.get_run_records(waiting, limit=1) or instance.get_run_records(working, limit=1)
    return records[0].dagster_run.run_id if records else None


def unfinished_run(instance: dg.DagsterInstance, pools: Iterable[str]) -> str | None:
    """A run of one of ``pools`` that has not ended."""
    found = dg.RunsFilter(tags={POOL_TAG: list(pools)}, statuses=list(_UNFINISHED))
    records = instance.get_run_records(found, limit=1)
    return records[0].dagster_run.run_id if records else None


def unfinished_batch(instance: dg.DagsterInstance, job: Job) -> str | None:
    """The batch of the job's last run, if that run was started for zones and failed."""
    run = zone_run_to_repeat(instance, job)
    return run.tags.get(BATCH_TAG) if run else None


def zone_run_to_repeat(instance: dg.DagsterInstance, job: Job) -> dg.DagsterRun | None:
    """The job's last run, if it failed and was started for zones, whose sensor then repeats it, or logs why not."""
    records = instance.get_run_records(dg.RunsFilter(job_name=job.name), limit=1)
    run = records[0].dagster_run if records else None
    return run if run and run.status is dg.DagsterRunStatus.FAILURE and ZONE_TAG in run.tags else None
