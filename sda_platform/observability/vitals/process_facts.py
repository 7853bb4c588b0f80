"""The facts of processes, runs, disks and backups, from the operating system, Dagster's records and the collectors."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.observability.vitals.facts import (
    BackupFacts,
    CollectorFacts,
    DaemonFacts,
    DiskFacts,
    FailingJob,
    ProcessFacts,
    RunFacts,
)
from sda_platform.orchestration.attempts import ATTEMPT_TAG, FailureStreak
from sda_platform.orchestration.jobs import JOBS
from sda_platform.published import COLLECTOR, published
from sda_platform.recovery.backups import made_s, newest_backup
from sda_platform.retention_settings import RetentionSettings
from sda_platform.spark.session import POOL_TAG

_STARTED = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
_QUEUED = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED)
_RECENT_S, _MOST_RUNS = 3600.0, 500


def collector_facts(home: Path, *, is_expected: bool) -> CollectorFacts | None:
    """Read the report of the collector of ``home``; None where none runs and none is expected."""
    control = published(home, COLLECTOR)
    if control is None:
        return CollectorFacts("no collector runs, although one is configured") if is_expected else None
    try:
        return CollectorFacts(problems=tuple(fetch_report(control)["problems"]))
    except NoReport as error:
        return CollectorFacts(str(error))


def daemon_facts(instance: dg.DagsterInstance, wall_s: float) -> DaemonFacts:
    """Read when Dagster's daemon wrote its newest heartbeat."""
    beats = [status.timestamp for status in instance.get_daemon_heartbeats().values()]
    return DaemonFacts(max(wall_s - max(beats), 0.0) if beats else None)


def run_facts(instance: dg.DagsterInstance, wall_s: float) -> list[RunFacts]:
    """Return the runs that have not ended, with the time in their state."""
    records = instance.get_run_records(dg.RunsFilter(statuses=[*_STARTED, *_QUEUED]))
    found = []
    for record in records:
        run = record.dagster_run
        state, since_s = "queued", record.create_timestamp.timestamp()
        if run.status in _STARTED:
            state, since_s = "started", record.start_time or since_s
        found.append(RunFacts(run.run_id, run.job_name, run.tags.get(POOL_TAG, ""), state, wall_s - since_s))
    return found


def repeated_runs(instance: dg.DagsterInstance, wall_s: float) -> list[tuple[str, str]]:
    """Return ids and jobs of the runs of the last hour that were another attempt at a batch."""
    recent = dg.RunsFilter(created_after=datetime.fromtimestamp(wall_s - _RECENT_S, UTC))
    runs = (record.dagster_run for record in instance.get_run_records(recent, limit=_MOST_RUNS))
    return [(run.run_id, run.job_name) for run in runs if run.tags.get(ATTEMPT_TAG, "1") != "1"]


def failing_jobs(instance: dg.DagsterInstance, wall_s: float) -> list[FailingJob]:
    """Return the jobs whose newest run failed, with how many did in a row."""
    streaks = {job.name: FailureStreak.of(instance, job.name) for job in JOBS}
    return [
        FailingJob(job, streak.runs, streak.reason, streak.is_at_subscriber, wall_s - streak.since_s)
        for job, streak in streaks.items()
        if streak.runs
    ]


def disk_facts(places: Iterable[str]) -> list[DiskFacts]:
    """Return the file systems of these places, each once; what is in an object store or not there yet has none."""
    found: dict[int, DiskFacts] = {}
    for place in places:
        path = next((each for each in (Path(place), *Path(place).parents) if each.exists()), None)
        if "://" in place or path is None:
            continue
        usage = shutil.disk_usage(path)
        found.setdefault(path.stat().st_dev, DiskFacts(place, usage.free, usage.total))
    return list(found.values())


def backup_facts(settings: RetentionSettings, wall_s: float) -> BackupFacts | None:
    """Return the age of the newest backup; None where ``settings`` have no place for backups."""
    if not settings.backup:
        return None
    newest = newest_backup(Path(settings.backup))
    made = made_s(newest) if newest else None
    age_s = None if made is None else max(wall_s - made, 0.0)
    return BackupFacts(settings.backup, age_s, settings.backup_max_age_s)


def processes_of(state: Mapping[str, Any]) -> Sequence[ProcessFacts]:
    """Return the processes that ``platform.json`` lists, and whether each is alive."""
    return [
        ProcessFacts(name, _is_alive(each["pid"]), each["restarts"], each.get("is_exhausted", False))
        for name, each in state.get("processes", {}).items()
    ]


def _is_alive(pid: int | None) -> bool:
    try:
        if pid is None:
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
