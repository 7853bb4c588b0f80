"""Sensors that start runs of a pool: for pending segments in its zones, and for unconsumed commits.

A tick lists file names: milliseconds, no JVM. Correctness does not depend on the run key — the table's log decides
what is new — so a tick may be lost or repeated. The run key is the batch's hash and an attempt: Dagster never runs a
key twice, so a failed batch needs a new attempt (`orchestration.attempts`). Work that a failed run left is found in
Dagster's records of the run; if those are lost as well, the tables' logs contain the unconsumed commits.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import dagster as dg

from sda_platform import failpoints
from sda_platform.counts import counted
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.lake.unconsumed import unconsumed_commits
from sda_platform.landing.orphans import orphaned_names
from sda_platform.landing.segments import WaitingSegment
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.attempts import (
    ZONE_TAG,
    Attempts,
    coming_run,
    is_stopped_by_red,
    unfinished_batch,
    unfinished_run,
    zone_run_to_repeat,
)
from sda_platform.orchestration.backlog import measured
from sda_platform.orchestration.declarations import jobs_of, served_by
from sda_platform.orchestration.jobs import Job
from sda_platform.orchestration.long_polling import until_found
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.zone_asset import landing_sensor_name, zone_key
from sda_platform.published import is_stopping

_SHOWN = 3
# The logs are read for what hardly ever is: work that neither a segment nor the record of a run would bring.
_UNREAD_INTERVAL_S = 30


def landing_sensor(job: Job, feeds: Sequence[str], interval_s: float, home: Path) -> dg.SensorDefinition:
    """Return the sensor of the landing zones ``feeds``, which one run of ``job`` empties together.

    With a sensor each, segments that arrive in several zones at once would start several runs, of which all but the
    first find nothing. The sensor looks every ``interval_s`` seconds, until the platform of ``home`` stops. It runs
    from the start.
    """

    @dg.sensor(
        name=landing_sensor_name(job),
        job_name=job.name,
        minimum_interval_seconds=max(1, round(interval_s)),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Starts a run of {job.name} when sealed segments wait in landing/{', '.join(feeds)}.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing: LandingResource) -> dg.SensorResult | dg.SkipReason:
        zones = [landing.zone(feed) for feed in feeds]
        return until_found(
            lambda: request_landing(context, zones, job, orphan_grace_s=landing.orphan_grace_s),
            interval_s,
            is_over=lambda: is_stopping(home),
        )

    return sensor


def request_landing(
    context: dg.SensorEvaluationContext,
    zones: Sequence[LandingZone],
    job: Job,
    *,
    orphan_grace_s: float,
    wall_s: float | None = None,
) -> dg.SensorResult | dg.SkipReason:
    """Request one run of ``job`` for the backlog of ``zones``, unless a queued run will process it.

    A run that failed after it had emptied the zones left unconsumed commits: it is requested again as well. Lone files
    that have not changed for ``orphan_grace_s`` count as backlog, to be reported and quarantined.
    """
    now_s = time.time() if wall_s is None else wall_s
    # What is consumed between the two looks at the directory is left out.
    found = {
        zone.feed: zone.waiting([*zone.pending_names(), *orphaned_names(zone, now_s - orphan_grace_s)])
        for zone in zones
    }
    names = [segment.name for waiting in found.values() for segment in waiting]
    where = "+".join(found)
    batch = batch_hash(found) if names else unfinished_batch(context.instance, job)
    if batch is None:
        return dg.SkipReason(f"{where}: no sealed segment is pending")
    backlog = f"{_described(names)} pending" if names else "no sealed segment is pending, but the last run failed"
    coming = coming_run(context.instance, job, batch)
    if coming:
        return dg.SkipReason(f"{where}: {backlog}; run {coming[:8]} will take them")
    attempts = Attempts.of(context.instance, job, batch)
    refusal = attempts.refusal(now_s)
    if refusal:
        return dg.SkipReason(f"{where}: {backlog}; {refusal}")
    arrived = [
        dg.AssetObservation(
            asset_key=zone_key(feed),
            metadata={"newest": waiting[-1].name, "batch": batch, **measured(waiting, now_s).metadata},
        )
        for feed, waiting in found.items()
        if waiting
    ]
    failpoints.hit("sensor.decided")
    return dg.SensorResult(
        [attempts.next_run(job, **{ZONE_TAG: "+".join(feed for feed, waiting in found.items() if waiting) or where})],
        asset_events=[] if attempts.made else arrived,
    )


def unconsumed_sensor(job: Job, tables: Sequence[Table]) -> dg.SensorDefinition:
    """Return the sensor of the commits of ``tables`` that the tables which ``job`` serves have not consumed."""
    readers = served_by(job)

    @dg.sensor(
        name=f"{job.name}_unconsumed",
        job_name=job.name,
        minimum_interval_seconds=_UNREAD_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Starts a run of {job.name} if its tables have unconsumed commits and no run is coming.",
    )
    def sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.RunRequest | dg.SkipReason:
        return request_unconsumed(context, lake.open(), job, readers, tables)

    return sensor


def request_unconsumed(
    context: dg.SensorEvaluationContext,
    store: Lake,
    job: Job,
    readers: Sequence[Table],
    tables: Sequence[Table],
    *,
    wall_s: float | None = None,
) -> dg.RunRequest | dg.SkipReason:
    """Request one run of ``job`` for commits of ``tables`` that ``readers`` have not consumed, unless one is queued.

    This needs no record of Dagster: after a loss of its database, the platform continues from its tables. Commits after
    a red one do not count, because no run may consume them. They count when it is repaired or acknowledged.
    """
    failed = zone_run_to_repeat(context.instance, job)
    if failed and not is_stopped_by_red(failed):
        return dg.SkipReason(f"run {failed.run_id[:8]} failed, which is for the sensor of its zone")
    heads = {table.name: store.log(table).head() for table in tables}
    red = [each for each in (store.readable(table) for table in tables) if each.withheld]
    upto = {each.table.name: each.head.sequence for each in red}
    behind = [(reader, found) for reader in readers if (found := unconsumed_commits(reader, heads, upto))]
    if not behind:
        reasons = "".join(f"; not to be read: {each.withheld}" for each in red)
        return dg.SkipReason(f"every commit was consumed{reasons}")
    unread = [
        f"{upto.get(source, heads[source].sequence)} of {source} for {reader.name}"
        for reader, sources in behind
        for source in sources
    ]
    waiting = f"commits up to {', '.join(unread)} wait"
    coming = [unfinished_run(context.instance, [reader.name], jobs_of(reader)) for reader, _ in behind]
    if all(coming):
        return dg.SkipReason(f"{waiting}; run {str(coming[0])[:8]} is under way and will read them")
    batch = _hash(unread)
    attempts = Attempts.of(context.instance, job, batch)
    refusal = attempts.refusal(time.time() if wall_s is None else wall_s)
    if refusal:
        return dg.SkipReason(f"{waiting}; {refusal}")
    context.log.info(waiting)
    return attempts.next_run(job)


def batch_hash(found: Mapping[str, Sequence[WaitingSegment]]) -> str:
    """Identity of what waits in each zone, by name and arrival: today's file is not yesterday's of the same name."""
    return _hash(f"{feed}/{segment.name}@{segment.came_s}" for feed, waiting in found.items() for segment in waiting)


def _hash(marks: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(marks)).encode()).hexdigest()[:16]


def _described(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{counted(len(names), 'segment')} ({shown})"
