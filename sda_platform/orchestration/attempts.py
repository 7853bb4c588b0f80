"""Attempts at a batch, counted from Dagster's records of runs: how many there were, and whether another may follow.

A run that was killed or failed for a transient reason is followed by another under a new key, without limit but with
growing pauses: a backlog drains by itself when its cause is gone. A permanent failure is not repeated, because a repeat
would hide it. The zone's next segment, which makes another batch, or a person starts the pool again.

Failures also count for their cause. Where the last runs of a job all failed alike, another batch waits as well. So a
failing job leaves half of its pool's time to others.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

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
# From so many failures alike, another batch waits too, and as long as the last failed run took.
_ALIKE = 3
_LONGEST_REST_S = 900.0
_MOST_RUNS = 50
_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE)
_DIFFERS = re.compile(r"\b[0-9a-f]{8}(?:[0-9a-f-]*)\b|\d+(?:\.\d+)?")
# The errors of subscribers, by the names of their classes.
_AT_SUBSCRIBER = "Subscriber"


@dataclass(frozen=True)
class FailureStreak:
    """The newest runs of a job that all failed. ``alike``: how many of them, from the newest, for one cause.

    ``since_s`` and ``ended_s``: wall time at which the first and the last ended; ``took_s``: how long the last took.
    """

    runs: int = 0
    alike: int = 0
    last_run: str = ""
    reason: str = ""
    since_s: float = 0.0
    ended_s: float = 0.0
    took_s: float = 0.0

    @property
    def is_at_subscriber(self) -> bool:
        """Whether the subscriber is the cause, which keeps no run from its other work."""
        return self.reason.startswith(_AT_SUBSCRIBER)

    @classmethod
    def of(cls, instance: dg.DagsterInstance, job_name: str) -> "FailureStreak":
        """Return the streak of the job's newest runs; empty where the last one succeeded."""
        ended = instance.get_run_records(dg.RunsFilter(job_name=job_name, statuses=list(_ENDED)), limit=_MOST_RUNS)
        failed = list(takewhile(lambda record: record.dagster_run.status is dg.DagsterRunStatus.FAILURE, ended))
        if not failed:
            return cls()
        reasons = [outcome_of(record.dagster_run)[1] for record in failed]
        alike = list(takewhile(lambda reason: cause_of(reason) == cause_of(reasons[0]), reasons))
        ended_s = [record.end_time or record.update_timestamp.timestamp() for record in (failed[0], failed[-1])]
        return cls(
            len(failed),
            len(alike),
            failed[0].dagster_run.run_id,
            reasons[0],
            ended_s[1],
            ended_s[0],
            max(ended_s[0] - (failed[0].start_time or ended_s[0]), 0.0),
        )

    def rest_s(self) -> float:
        """Return seconds after the last failure in which the job starts no other batch."""
        if self.alike < _ALIKE or self.is_at_subscriber:
            return 0.0
        pause = pause_s(self.alike, base_s=_PAUSE_S, cap_s=_LONGEST_PAUSE_S, seed=self.last_run)
        return min(max(pause, self.took_s), _LONGEST_REST_S)


def cause_of(reason: str) -> str:
    """Return what failures have in common: the reason without numbers and ids, which differ from run to run."""
    return _DIFFERS.sub("#", reason)


@dataclass(frozen=True)
class Attempts:
    """The runs that were started for a batch. ``ended_s``: wall time at which the last of them ended.

    ``streak``: the failures of the job, whatever the batch.
    """

    batch: str
    made: int = 0
    last_run: str = ""
    ended_s: float = 0.0
    disposition: Disposition = Disposition.TRANSIENT
    reason: str = ""
    streak: FailureStreak = FailureStreak()

    @classmethod
    def of(cls, instance: dg.DagsterInstance, job: Job, batch: str) -> "Attempts":
        """Return the attempts of ``job`` at ``batch``; a run that Dagster repeated counts with the one it repeats."""
        records = instance.get_run_records(dg.RunsFilter(tags={BATCH_TAG: batch}))
        streak = FailureStreak.of(instance, job.name)
        if not records:
            return cls(batch, streak=streak)
        last = records[0]
        disposition, reason = outcome_of(last.dagster_run)
        return cls(
            batch,
            max(int(record.dagster_run.tags.get(ATTEMPT_TAG, "1")) for record in records),
            last.dagster_run.run_id,
            last.end_time or last.update_timestamp.timestamp(),
            disposition,
            reason,
            streak,
        )

    def refusal(self, wall_s: float) -> str | None:
        """Return why there is no further attempt now; None: there may be one."""
        rest_s = self.streak.rest_s()
        left_s = self.streak.ended_s + rest_s - wall_s
        # A job that need not rest does not, even where the sensor's clock is behind the one that ended the run.
        if rest_s > 0 and left_s > 0 and (self.made == 0 or self.disposition is Disposition.TRANSIENT):
            report = f"run {self.streak.last_run[:8]}: {self.streak.reason}"
            return f"{report}; {self.streak.alike} runs in a row failed alike: another one in {left_s:.0f} s"
        if self.made == 0:
            return None
        report = f"run {self.last_run[:8]}: {self.reason}"
        if self.disposition is not Disposition.TRANSIENT:
            return f"{report}; {self.disposition}, so not repeated: fix the cause, then start the job by hand"
        pause = pause_s(self.made, base_s=_PAUSE_S, cap_s=_LONGEST_PAUSE_S, seed=self.batch)
        wait_s = self.ended_s + pause - wall_s
        return f"{report}; attempt {self.made + 1} in {wait_s:.0f} s" if wait_s > 0 else None

    def next_run(self, job: Job, **tags: str) -> dg.RunRequest:
        """Return the request for one more attempt, in the pool of ``job``."""
        attempt = str(max(self.made, self.streak.alike) + 1)
        tags = {POOL_TAG: job.pool, BATCH_TAG: self.batch, ATTEMPT_TAG: attempt, **tags}
        return dg.RunRequest(run_key=f"{self.batch}:{attempt}", tags=tags)


def outcome_of(run: dg.DagsterRun) -> tuple[Disposition, str]:
    """Return the facts of a run that left work behind, from its tags."""
    if FAILURE_TAG in run.tags:
        return Disposition(run.tags[FAILURE_TAG]), run.tags.get(REASON_TAG, "failed")
    name, value = _STEP_FAILED
    if run.tags.get(name) == value:
        return Disposition.INVARIANT, "a check that blocks is red"
    killed = run.status is dg.DagsterRunStatus.FAILURE
    return Disposition.TRANSIENT, "its worker was killed" if killed else "left them there"


def is_stopped_by_red(run: dg.DagsterRun) -> bool:
    """Return whether a failed run ended at a red table: its own check blocked it, or a plan refused to read on."""
    if FAILURE_TAG in run.tags:
        return run.tags.get(REASON_TAG, "").startswith(TableIsRed.__name__)
    name, value = _STEP_FAILED
    return run.tags.get(name) == value


def coming_run(instance: dg.DagsterInstance, job: Job, batch: str) -> str | None:
    """Return the run that will process the backlog: one of the job that has not begun, or one requested for
    this batch.
    """
    waiting = dg.RunsFilter(job_name=job.name, statuses=list(_WAITING))
    working = dg.RunsFilter(tags={BATCH_TAG: batch}, statuses=list(_UNFINISHED))
    records = instance.get_run_records(waiting, limit=1) or instance.get_run_records(working, limit=1)
    return records[0].dagster_run.run_id if records else None


def unfinished_run(instance: dg.DagsterInstance, tables: Iterable[str], jobs: Iterable[Job]) -> str | None:
    """A run that has not ended and makes one of ``tables``: one of ``jobs``, which make them, or of chosen assets."""
    makers, names = {job.name for job in jobs}, set(tables)
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(_UNFINISHED))):
        run = record.dagster_run
        chosen = {key.to_user_string() for key in run.asset_selection or ()}
        if chosen & names if run.asset_selection else run.job_name in makers:
            return str(run.run_id)
    return None


def unfinished_run_of(instance: dg.DagsterInstance, *jobs: Job) -> str | None:
    """A run of one of ``jobs`` that has not ended, queued or started."""
    found = (dg.RunsFilter(job_name=job.name, statuses=list(_UNFINISHED)) for job in jobs)
    records = (record for each in found for record in instance.get_run_records(each, limit=1))
    return next((str(record.dagster_run.run_id) for record in records), None)


def unfinished_batch(instance: dg.DagsterInstance, job: Job) -> str | None:
    """Return the batch of the job's last run, if that run was started for zones and failed."""
    run = zone_run_to_repeat(instance, job)
    return run.tags.get(BATCH_TAG) if run else None


def zone_run_to_repeat(instance: dg.DagsterInstance, job: Job) -> dg.DagsterRun | None:
    """Return the job's last run, if it failed and was started for zones, whose sensor then repeats it, or logs
    why not.
    """
    records = instance.get_run_records(dg.RunsFilter(job_name=job.name), limit=1)
    run = records[0].dagster_run if records else None
    return run if run and run.status is dg.DagsterRunStatus.FAILURE and ZONE_TAG in run.tags else None
