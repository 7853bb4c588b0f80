"""Landing sensors: what waits in the zones becomes one run of a lane.

A tick lists file names: milliseconds, no JVM. Correctness does not depend on the run key — the table's log decides
what is new — so a tick may be lost or repeated. The run key is the batch's hash and an attempt: Dagster never runs a
key twice, so a failed batch needs a new attempt (`lake.failures.attempts`).
"""

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import dagster as dg

from sda_platform import faults
from sda_platform.lake.failures.attempts import (
    ATTEMPT_TAG,
    BATCH_TAG,
    ZONE_TAG,
    Attempts,
    coming_run,
    unfinished_batch,
)
from sda_platform.lake.landing.backlog import measured
from sda_platform.lake.landing.orphans import orphaned_names
from sda_platform.lake.landing.segments import WaitingSegment
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.resource import LandingResource
from sda_platform.lake.spark.session import LANE_TAG

_SHOWN = 3


def landing_sensor(feed: str, job: Any, lane: str, interval_s: int) -> dg.SensorDefinition:
    """The sensor of one landing zone; running from the start, because a platform that needs toggling does nothing."""

    @dg.sensor(
        name=f"{feed}_landing",
        job=job,
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Starts a run of the {lane} lane when sealed segments wait in landing/{feed}.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing: LandingResource) -> dg.SensorResult | dg.SkipReason:
        return request_landing(context, landing.zone(feed), job.name, lane, orphan_grace_s=landing.orphan_grace_s)

    return sensor


def request_landing(
    context: dg.SensorEvaluationContext,
    zone: LandingZone,
    job_name: str,
    lane: str,
    *,
    orphan_grace_s: float,
    wall_s: float | None = None,
) -> dg.SensorResult | dg.SkipReason:
    """One run of ``lane`` for what waits in ``zone``, unless a run that will take it is on its way.

    A run that failed after it had emptied the zone left its work further down: it is asked for again as well. Lone
    files that have not changed for ``orphan_grace_s`` wait too: to be told and quarantined.
    """
    now_s = time.time() if wall_s is None else wall_s
    names = [*zone.pending_names(), *orphaned_names(zone, now_s - orphan_grace_s)]
    found = zone.waiting(names)
    batch = batch_hash(found) if names else unfinished_batch(context.instance, lane, zone.feed)
    if batch is None:
        return dg.SkipReason(f"{zone.feed}: no sealed segment is pending")
    waiting = f"{_described(names)} pending" if names else "no sealed segment is pending, but the last run failed"
    coming = coming_run(context.instance, lane, batch)
    if coming:
        return dg.SkipReason(f"{zone.feed}: {waiting}; run {coming[:8]} will take them")
    attempts = Attempts.of(context.instance, batch)
    refusal = attempts.refusal(now_s)
    if refusal:
        return dg.SkipReason(f"{zone.feed}: {waiting}; {refusal}")
    attempt = attempts.made + 1
    tags = {LANE_TAG: lane, ZONE_TAG: zone.feed, BATCH_TAG: batch, ATTEMPT_TAG: str(attempt)}
    arrived = dg.AssetObservation(
        asset_key=["landing", zone.feed],
        metadata={"newest": names[-1] if names else "none", "batch": batch, **measured(found, now_s).metadata},
    )
    faults.reach("sensor.decided")
    return dg.SensorResult(
        [dg.RunRequest(run_key=f"{batch}:{attempt}", job_name=job_name, tags=tags)],
        asset_events=[arrived] if attempt == 1 else [],
    )


def batch_hash(waiting: Sequence[WaitingSegment]) -> str:
    """Identity of a set of waiting segments, by name and arrival: today's file is not yesterday's of the same name."""
    marks = sorted(f"{segment.name}@{segment.came_s}" for segment in waiting)
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()[:16]


def _described(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{len(names)} segment{'s' if len(names) != 1 else ''} ({shown})"
